"""Every reference file on every backend: values that other software computed.

`SVGPBENCH_ORACLES=DIR` reads another folder of such files.
"""

from __future__ import annotations

import pytest
from oracle_checks import Check, checks_of
from oracle_files import Oracle, OracleError, oracle_folder, oracle_paths, read_oracle

from svgpbench.ops import Ops


def cases() -> list[object]:
    """One (file, check) each; a skip or a malformed file is a case too, so that it is seen."""
    try:
        paths = oracle_paths(oracle_folder())
    except OracleError as error:
        return [pytest.param(None, error, id="folder")]
    found: list[object] = []
    for path in paths:
        if path.suffix != ".json":
            reason = pytest.mark.skip(reason=f"{path.name}: not a JSON file")
            found.append(pytest.param(None, None, id=path.name, marks=reason))
            continue
        try:
            oracle = read_oracle(path)
            checks = checks_of(oracle)
        except OracleError as error:
            found.append(pytest.param(None, error, id=path.name))
            continue
        for name, check in checks.items():
            title = f"{path.name}: {name}" if name else path.name
            found.append(pytest.param(oracle, check, id=title))
    return found


@pytest.mark.parametrize(("oracle", "check"), cases())
def test_backend_reproduces_reference_values(
    ops: Ops, oracle: Oracle | None, check: Check | OracleError
) -> None:
    message = str(check) if oracle is None or isinstance(check, OracleError) else ""
    if not message:
        try:
            check(ops, oracle)
        except OracleError as error:
            message = str(error)
    if message:
        pytest.fail(message, pytrace=False)
