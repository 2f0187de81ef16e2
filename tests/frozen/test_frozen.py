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


def test_a_check_is_named_by_what_is_the_same_on_every_machine() -> None:
    row = {"case": "m | l | k | float64", "group": "values", "worst": 1e-15, "ok": True}
    here = {**row, "where": "values/kl", "pair": ["numpy", "jax"]}
    there = {**row, "where": "values/elbo", "pair": ["numpy", "torch"], "worst": 2e-15}
    identity = {"name": "one", "statement": "1 = 1.", "backend": "jax", "worst": 0.0, "ok": True}
    rounding = [{"m_steps": 45, "ok": True}, {"m_steps": 105, "ok": True}]

    def facts(*matrix: dict[str, object], ok: bool = True) -> dict[str, str]:
        others = [identity, {**identity, "backend": "torch", "ok": ok}]
        return run.outcomes({"matrix": matrix, "identities": others, "rounding": rounding})

    assert facts(here) == facts(there)
    assert facts(here) == {
        "matrix m | l | k | float64 values": "ok", "identities 1 = 1.": "ok", "rounding": "ok"
    }  # fmt: skip
    assert facts(here, ok=False)["identities 1 = 1."] == "not within its tolerance"
    rounding[0]["ok"] = False
    assert facts(here)["rounding"] == "not within its tolerance"
    names = run.json.loads(run.SNAPSHOT.read_text("utf-8"))["check"]
    assert all(name.startswith(("matrix ", "identities ")) or name == "rounding" for name in names)
    assert not any(name.endswith((" jax", " torch", "/kl")) for name in names)


def test_a_cell_without_data_is_no_difference_and_one_that_fails_is() -> None:
    verdicts = [
        {"cell_id": "a", "verdict": "chaotic", "reason": ""},
        {"cell_id": "b", "verdict": "not run", "reason": "skipped: elevators cannot be fetched"},
        {"cell_id": "c", "verdict": "not run", "reason": "error: a shape"},
        {"cell_id": "d", "verdict": "different", "reason": ""},
    ]
    found = run.verdict_facts(verdicts)
    moved = run.differences(dict.fromkeys("abcd", "same"), found)
    assert moved == {"c": "same -> not run: error: a shape", "d": "same -> different"}


def test_the_sample_is_that_of_the_snapshot() -> None:
    records = [x for x in run.records_in(run.RESULTS).records if x.status in run.FINAL]
    ids = {record.cell_id for record in run.draw_sample(records, run.SAMPLE)}
    assert ids == set(run.json.loads(run.SNAPSHOT.read_text("utf-8"))["cells"])


def test_ids_are_computed_from_configurations_and_are_those_that_are_stored() -> None:
    facts = run.ids()
    assert facts and all("another id" not in fact for fact in facts.values())
