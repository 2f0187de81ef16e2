"""`--json`: one valid JSON value, and every field is on docs/json.md with its type."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from command_line import Cli
from command_table import COMMANDS, SLOW, leaf_commands, name_of
from committed_records import RESULTS
from stand_ins import put_in

from svgpbench.benchmarks.timing.report import SpeedReport

SECTION = re.compile(r"^## `([\w -]+)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]+) \| ([^|`]+) \| .+ \|$", re.MULTILINE)
KINDS: dict[str, Any] = {"text": str, "number": (int, float), "flag": bool, "object": dict}


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


PAGE = {
    name: fields(text)
    for name, text in SECTION.findall((RESULTS.parent / "docs/json.md").read_text("utf-8"))
}


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


WITH_JSON = {name for name, has_json in leaf_commands().items() if has_json}
LINES = {
    line: code
    for code in (0, 1)
    for line in COMMANDS[code]
    if name_of(line) in WITH_JSON and f"{line} --json" not in COMMANDS[2]
}


def no_number(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize(
    "line",
    [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW or "committed" in x)) for x in LINES],
)
def test_a_command_prints_json_of_the_fields_on_the_page(
    in_workplace: Cli, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    put_in(line, monkeypatch)
    outcome = in_workplace(*shlex.split(line), "--json")
    assert outcome.code == LINES[line], outcome.err
    printed: Any = json.loads(outcome.out, parse_constant=no_number)
    assert printed
    assert list(not_on_page(printed, PAGE[name_of(line)])) == []


def test_every_field_of_a_timing_is_on_the_page() -> None:
    for path in sorted((RESULTS / "speed").glob("*.json")):
        report = SpeedReport.from_json(json.loads(path.read_text("utf-8"))).to_json()
        assert list(not_on_page(report, PAGE["speed"])) == [], path.name


def test_every_command_with_json_has_a_section_and_a_line() -> None:
    assert {name_of(line) for line in LINES} == WITH_JSON == PAGE.keys()


def test_a_field_that_is_missing_or_of_another_type_is_seen() -> None:
    declared = fields("| `rows[].a`, `by.{NAME}` | number? | numbers |\n")
    assert list(not_on_page({"rows": [{"a": 1, "b": 2}], "by": {"x": None}}, declared)) == [
        "rows[].b (2)"
    ]
    assert list(not_on_page({"by": {"x": True}}, declared)) == ["by.x is True, not number?"]
