"""A wrong number in a file of a whole run, and a file that nobody checks, are both red."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from checks_of_runs import check_run
from oracle_checks import checks_of
from oracle_files import HERE, Oracle, OracleError, read_oracle

from svgpbench.backends import load_backend

NUDGE = 1.0 + 1e-6
DIAGONAL, ORTH = "diagonal-precision_exact_gaussian_full", "orth_natgrad-newton_gaussian_full"
PLANTED = [
    (DIAGONAL, "elbo"),
    (DIAGONAL, "nlpd"),
    (DIAGONAL, "rmse"),
    (DIAGONAL, "variance"),
    (DIAGONAL, "lengthscales"),
    (DIAGONAL, "noise_variance"),
    (DIAGONAL, "Z"),
    (DIAGONAL, "g"),
    (ORTH, "Z"),
    (ORTH, "Z_gamma"),
    ("q-svgp_natgrad_bernoulli-probit_minibatch", "error_rate"),
]


def nudged(value: Any) -> Any:
    """The value with its first number moved a little."""
    return [nudged(value[0]), *value[1:]] if isinstance(value, list) else value * NUDGE


@pytest.mark.parametrize(("run", "key"), PLANTED)
@pytest.mark.parametrize("point", [0, -1], ids=["first", "last"])
def test_a_number_moved_by_a_millionth_is_red(run: str, key: str, point: int) -> None:
    oracle = read_oracle(HERE / f"em_run_{run}.json")
    expected = copy.deepcopy(dict(oracle.expected))
    expected["trace"][point][key] = nudged(expected["trace"][point][key])
    planted = Oracle(oracle.name, oracle.kind, oracle.settings, oracle.inputs, expected)
    with pytest.raises(AssertionError, match=key):
        check_run(load_backend("numpy"), planted)


def test_a_batch_in_another_order_is_red() -> None:
    oracle = read_oracle(HERE / "em_run_t-svgp_untied_bernoulli-probit_minibatch.json")
    inputs = copy.deepcopy(dict(oracle.inputs))
    inputs["e_batches"][1] = inputs["e_batches"][1][::-1]
    with pytest.raises(AssertionError, match="iteration 2"):
        check_run(
            load_backend("numpy"),
            Oracle(oracle.name, oracle.kind, oracle.settings, inputs, oracle.expected),
        )


def written(folder: Path, name: str, **content: Any) -> Oracle:
    (folder / name).write_text(json.dumps(content))
    return read_oracle(folder / name)


def test_a_kind_or_likelihood_that_nothing_serves_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="unknown kind"):
        checks_of(written(tmp_path, "mystery_gaussian.json", expected={"riddle": 1.0}))
    rows = [{"likelihood": "gamma", "y": 1.0, "mean": 0.0, "var": 1.0}]
    with pytest.raises(OracleError, match="no likelihood 'gamma'"):
        checks_of(written(tmp_path, "scalar_expectations.json", expected={"rows": rows}))
