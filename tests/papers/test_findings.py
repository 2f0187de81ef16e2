"""A finding is a template filled from the parts of a claim."""

from __future__ import annotations

import pytest

from svgpbench.papers.findings import fill, placeholders, with_explanation
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.stats.effects import Effect

NLPD = Judgement(
    Grade.mixed,
    (
        Effect("airfoil", "better", 0.02, 0.01, 0.03, held=True),
        Effect("boston", "worse", -0.04, -0.05, -0.03, held=False),
        Effect("pima", "better", 0.06, 0.05, 0.07, held=True),
        Effect("sonar", "undecided", 0.0, -0.1, 0.1, "9 splits would decide"),
        Effect("tamielectric", "not learned", note="no method learns this data set"),
    ),
    note="holds at 5 %, fails at 1 %",
)
SPEED = Judgement(Grade.holds, (Effect("M = 100", "", 4.987, 4.8, 5.2, held=True),))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{nlpd.held} of {nlpd.cases}", "2 of 4"),
        ("{nlpd.failed} against, {nlpd.open} open", "1 against, 1 open"),
        ("for {nlpd.where_held}", "for airfoil, pima"),
        ("not {nlpd.where_failed}, perhaps {nlpd.where_open}", "not boston, perhaps sonar"),
        ("{nlpd.least} to {nlpd.most}", "-0.04 to 0.06"),
        ("{nlpd.low} to {nlpd.high}", "-0.1 to 0.1"),
        ("{nlpd.value}", "0.01"),
        ("{nlpd.value@pima}", "0.06"),
        ("{speed.value:.1f} times [{speed.low}, {speed.high}]", "5.0 times [4.8, 5.2]"),
        ("{speed.value@M = 100:.2f}", "4.99"),
        ("{speed.value@M = 500}", "–"),
        ("{speed.where_failed}", "none"),
        ("{nlpd.grade}; {nlpd.note}; {speed.note}", "mixed; holds at 5 %, fails at 1 %; –"),
    ],
)
def test_a_template_is_filled_from_the_parts(template: str, text: str) -> None:
    assert fill(template, {"nlpd": NLPD, "speed": SPEED}) == text


def test_many_names_are_shortened() -> None:
    many = Judgement(Grade.holds, tuple(Effect(f"set {at}", "", held=True) for at in range(7)))
    assert fill("{a.where_held}", {"a": many}) == "set 0, set 1, set 2, set 3 and 3 more"


def test_a_template_says_which_keys_it_needs() -> None:
    assert placeholders("{a.value} of {b.held}") == [("a", "value"), ("b", "held")]
    with pytest.raises(ValueError, match="a part has no 'valeu'"):
        placeholders("{a.valeu}")
    with pytest.raises(ValueError, match="a part has no 'held'"):
        placeholders("{a.held@pima}")
    with pytest.raises(ValueError, match="a brace"):
        placeholders("{a}")


def test_a_mixed_claim_says_what_divides_it() -> None:
    halves = [("first half", NLPD), ("second half", SPEED)]
    said = with_explanation("It is so.", Grade.mixed, halves)
    assert said == "It is so. By part: first half: holds at 5 %, fails at 1 %; second half: holds."
    cases = Judgement(Grade.mixed, NLPD.effects)
    said = with_explanation("It is so.", Grade.mixed, [("NLPD", cases)])
    assert said == "It is so. By part: NLPD: fails for boston, holds for 2 others."


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"a": True, "b": False, "c": False}, "holds for a, fails for 2 others"),
        ({"a": True, "b": True, "c": True, "d": False}, "fails for d, holds for 3 others"),
        ({"a": True, "b": False}, "holds for a, fails for b"),
    ],
)
def test_the_rarer_cases_are_named(outcomes: dict[str, bool], expected: str) -> None:
    effects = tuple(Effect(of, "", held=held) for of, held in outcomes.items())
    mixed = Judgement(Grade.mixed, effects)
    assert (
        with_explanation("So.", Grade.mixed, [("it holds", mixed)])
        == f"So. By part: it holds: {expected}."
    )


def test_an_open_claim_says_what_would_decide() -> None:
    wide = Judgement(Grade.open, NLPD.effects)
    said = with_explanation("It may be so.", Grade.open, [("NLPD", wide), ("speed", SPEED)])
    assert said == "It may be so. Open: 9 splits would decide."
    assert with_explanation("It is so.", Grade.holds, [("NLPD", NLPD)]) == "It is so."


def test_an_open_claim_has_two_different_notes_of_open_parts() -> None:
    notes = ("5 would decide", "5 would decide", "7 would decide", "9 would decide")
    effects = tuple(Effect(f"set {at}", "undecided", note=note) for at, note in enumerate(notes))
    decided = Judgement(Grade.fails, (Effect("a", "undecided", note="of a part that fails"),))
    said = with_explanation(
        "So?", Grade.open, [("a", decided), ("b", Judgement(Grade.open, effects))]
    )
    assert said == "So? Open: 5 would decide. Open: 7 would decide."
