"""docs/json.md: every field that a command prints with `--json` is on the page, with its type."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from guide import DOCS
from typer.core import TyperGroup
from typer.main import get_command

from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.checks.completeness import Skip
from svgpbench.checks.identities import IdentityResult
from svgpbench.checks.matrix import MatrixEntry
from svgpbench.checks.quick import BackendAgreement, QuickReport
from svgpbench.checks.report import Report
from svgpbench.checks.rounding import Rounding
from svgpbench.cli.application import app, exit_code

RESULTS = DOCS.parent / "results"
SECTION = re.compile(r"^## `([\w -]+)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]+) \| ([^|`]+) \| .+ \|$", re.MULTILINE)
KINDS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "number": (int, float),
    "flag": bool,
    "object": dict,
}
EXPERIMENT = """
name = "tides"
backends = ["numpy"]
inducing = { count = 5 }
split = { kind = "k-fold", folds = 5, run_folds = [0] }
training = { em_iterations = 2, m_steps = 2 }
methods = [{ name = "t-svgp" }, { name = "q-svgp" }]
[[problems]]
data = [{ name = "tides", path = "t.csv", target = "y", task = "regression" }]
likelihood = { name = "gaussian" }
"""


class Field(NamedTuple):
    """A row of the page: the pattern of a path, and the types of its value."""

    path: re.Pattern[str]
    types: str


def fields(section: str) -> list[Field]:
    """Return the fields of a section; `{NAME}` in a path stands for any key."""
    rows: list[Field] = []
    for paths, types in ROW.findall(section):
        for path in re.findall(r"`([^`]+)`", paths):
            pattern = ".+".join(re.escape(x) for x in re.split(r"\{\w+\}", path))
            rows.append(Field(re.compile(pattern), types))
    return rows


PAGE = {name: fields(text) for name, text in SECTION.findall((DOCS / "json.md").read_text("utf-8"))}


def fits(value: Any, types: str) -> bool:
    """Return True if a value has one of the types."""
    if value is None:
        return types.endswith("?")
    if (listed := types.removesuffix("?")).endswith("[]"):
        return isinstance(value, list) and all(fits(x, listed[:-2]) for x in value)
    kinds = types.removesuffix("?").split(" or ")
    return any(
        isinstance(value, KINDS[x]) and isinstance(value, bool) == (x == "flag") for x in kinds
    )


def not_on_page(value: Any, declared: list[Field], path: str = "") -> Iterator[str]:
    """Yield the paths that no field covers, or that have another type."""
    types = [field.types for field in declared if field.path.fullmatch(path)]
    if types:
        if not any(fits(value, x) for x in types):
            yield f"{path} is {value!r:.60}, not {' or '.join(types)}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from not_on_page(inner, declared, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from not_on_page(inner, declared, f"{path}[]")
    else:
        yield f"{path} ({value!r:.60})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, an experiment and its records."""
    folder = tmp_path_factory.mktemp("json")
    X = np.random.default_rng(0).normal(size=(60, 2))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.sin(X[:, 0]) + 0.1 * X[:, 1]})
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet")
    (folder / "tides.toml").write_text(EXPERIMENT)
    return folder


COMMANDS = [
    "run tides.toml",
    "table tides.toml",
    "table tides.toml --kind pareto",
    "compare t-svgp q-svgp --experiment tides.toml",
    "verify tides.toml --sample 1",
    f"claims adam2021-05 adam2021-16 --results {RESULTS}",
    "advise airfoil",
    f"leaderboard --results {RESULTS / 'suite'}",
    "cost t-svgp --M 20 --exponents",
    "cost t-svgp --M 20 --peak-flops 1e9 --bandwidth 1e9",
    "inducing t.csv --target y --count 5",
    "doctor",
    "list",
    "fetch boston kuka --dry-run",
    "data show t.csv --target y",
    "data show sonar",
    "data audit sonar",
    "data split boston --folds 3",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_field_of_a_command_is_on_the_page(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exit_code([*command.split(), "--json"])
    words = command.split()
    name = " ".join(words[:2] if words[0] == "data" else words[:1])
    assert list(not_on_page(json.loads(out.getvalue()), PAGE[name])) == []


def test_every_field_of_a_timing_is_on_the_page() -> None:
    for path in sorted((RESULTS / "speed").glob("*.json")):
        report = SpeedReport.from_json(json.loads(path.read_text("utf-8"))).to_json()
        assert list(not_on_page(report, PAGE["speed"])) == [], path.name


def test_every_field_of_a_check_is_on_the_page() -> None:
    report = Report(
        backends=["numpy"],
        full=False,
        entries=[MatrixEntry("case", "values", 0.0, "mean", ("numpy", "jax"), 1e-9)],
        identities=[IdentityResult(1, "alike", "numpy", 0.0, 1e-9)],
        rounding=[Rounding(45, 0.0, 0.0, 1e-9)],
        failures=["a process"],
        notes=["a note"],
        skips=[Skip("slate", "identity 7", "", "no autodiff")],
    )
    jax = BackendAgreement("jax", 1.5, {"values": 0.0}, ["a difference"])
    for each in (report, QuickReport(10, [jax])):
        assert list(not_on_page(json.loads(json.dumps(each.to_json())), PAGE["check"])) == []


def commands_with_json(command: Any, name: str = "") -> Iterator[str]:
    if isinstance(command, TyperGroup):
        for key, inner in command.commands.items():
            yield from commands_with_json(inner, f"{name} {key}".strip())
    elif any("--json" in parameter.opts for parameter in command.params):
        yield name


def test_every_command_with_json_has_a_section() -> None:
    assert set(commands_with_json(get_command(app))) == PAGE.keys()


def test_a_field_that_is_missing_or_of_another_type_is_seen() -> None:
    declared = fields("| `rows[].a`, `by.{NAME}` | number? | numbers |\n")
    assert list(not_on_page({"rows": [{"a": 1, "b": 2}], "by": {"x": None}}, declared)) == [
        "rows[].b (2)"
    ]
    assert list(not_on_page({"by": {"x": True}}, declared)) == ["by.x is True, not number?"]
