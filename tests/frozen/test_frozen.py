"""The comparison with the snapshot: a moved number is named, and so is an intended one that did not move."""

from __future__ import annotations

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("frozen_run", HERE / "run.py")
assert SPEC is not None and SPEC.loader is not None
run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(run)


def test_what_moved_came_or_went_is_named() -> None:
    before = {"a": "1", "b": "2", "gone": "3"}
    moved = run.differences(before, {"a": "1", "b": "5", "new": "4"})
    assert moved == {"b": "2 -> 5", "gone": "3 -> gone", "new": "not there -> 4"}
    assert run.differences(before, before) == {}


def test_an_intended_difference_is_no_mistake_until_it_is_none() -> None:
    moved = {"b": "2 -> 5"}
    assert run.judge("ids", moved, {}) == ["ids: b: 2 -> 5"]
    assert run.judge("ids", moved, {"b": "the unit changed"}) == []
    (line,) = run.judge("ids", {}, {"b": "the unit changed"})
    assert line == "ids: b is as in the snapshot; take it out of intended.toml"


def test_ids_are_computed_from_configurations_and_are_those_that_are_stored() -> None:
    facts = run.ids()
    assert facts and all("another id" not in fact for fact in facts.values())
