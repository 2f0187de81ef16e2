"""The papers' contradictions name claims and parts of the ledger, and the page has its grades."""

from __future__ import annotations

import dataclasses

import pytest

from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError
from svgpbench.papers import load_paper, paper_folders
from svgpbench.papers.contradictions import (
    Contradiction,
    DecidingClaim,
    contradictions,
    contradictions_as_markdown,
)
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import Judged, Part
from svgpbench.stats.effects import Effect


def test_every_claim_and_part_that_is_named_is_in_the_ledger() -> None:
    parts = {
        claim.id: {part.says for part in claim.parts}
        for name in paper_folders()
        for claim in load_paper(name).claims
    }
    named = [one for each in contradictions() for one in each.claims]
    assert len(contradictions()) == 16
    assert {one.id for one in named} <= parts.keys()
    assert [
        (one.id, says) for one in named for says in one.parts if says not in parts[one.id]
    ] == []


def judged(grade: Grade, *parts: tuple[str, Grade], command: str = "run it") -> Judged:
    claim = load_paper("kobe2021").claims[0]
    found = tuple(Part(says, "condition", Judgement(of, (Effect("x", of),))) for says, of in parts)
    return Judged(claim, grade, "theory", "a finding", "", found, {}, (command,))


def contradiction(*claims: DecidingClaim) -> Contradiction:
    return Contradiction(about="it", one="A.", other="B.", settled_by="C.", claims=claims)


def test_grades_are_those_of_the_ledger_and_what_has_not_run_says_how() -> None:
    one = contradiction(DecidingClaim(id="a", parts=("second",)), DecidingClaim(id="b"))
    both = (("first", Grade.holds), ("second", Grade.fails))
    ledger = {"a": judged(Grade.mixed, *both), "b": judged(Grade.not_run, command="run b")}
    page = contradictions_as_markdown([one], ledger)
    assert page.startswith("## 1. it\n\n* A.\n* **But** B.\n\n**What settles it:** C.\n\n* **a**, ")
    assert "`mixed`\n  * second: `fails`\n* **b**, " in page and "first" not in page
    assert page.endswith("`not run`\n  * not run yet; it rests on `run b`")
    with pytest.raises(UserError, match="part of a 'third'"):
        third = DecidingClaim(id="a", parts=("third",))
        contradictions_as_markdown([contradiction(third)], ledger)


def test_a_part_with_stand_ins_is_found_by_what_it_says() -> None:
    part = Part("a < b", "core", Judgement(Grade.holds, ()), stand_ins=("a (long)", "b"))
    assert part.title == "a < b (a (long), b)"
    one = contradiction(DecidingClaim(id="a", parts=("a < b",)))
    found = dataclasses.replace(judged(Grade.holds), parts=(part,))
    assert contradictions_as_markdown([one], {"a": found}).endswith("  * a < b: `holds`")


def test_contradictions_are_of_all_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["claims", "--contradictions", "--paper", "kobe2021"]) == 2
    assert "stands alone" in capsys.readouterr().err
