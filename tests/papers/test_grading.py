"""How the parts of a claim make its grade, its kind, its fidelity and what it says, on planted residuals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from planted_grades import DIRECTION, MIXED, NO, OPEN, YES, part
from pydantic import ValidationError

from svgpbench.papers import Claim, Paper, load_paper
from svgpbench.papers.evidence.computed import Computation
from svgpbench.papers.grades import Fidelity, Grade, Judgement
from svgpbench.papers.grading import Judged, Part, effect_of, judge
from svgpbench.papers.schema import Artefact
from svgpbench.stats.effects import Effect
from svgpbench.stats.rules import LASTING, VARIANTS

RESIDUALS = pd.DataFrame(
    {"check": ["near", "far", "edge", "none"], "residual": [1e-12, 0.5, 1.5e-8, float("nan")]}
)
"""`identity` within 1e-8: holds, fails, fails unless thresholds are doubled, open."""

AT = {"what": "planted", "settings": "planted"}
TIMING = {"kind": "timing", "record": "speed/none.json", "problems": ["tiny"], "steps": ["e_step"]}
ARTEFACTS: dict[str, dict[str, Any]] = {
    "algebra": {"evidence": {"kind": "computed"}},
    "timed": {"evidence": TIMING},
    "learned": {"evidence": {"kind": "training", "plan": "adam2021-fig4"}},
    "walked": {"evidence": {"kind": "stability", "folder": "survival"}},
    "printed": {},
    "smaller": {"smaller": "two folds"},
    "other": {"missing": "the authors' data"},
}


def paper() -> Paper:
    whole = load_paper("adam2021")
    made = tuple(Artefact(id=name, **AT, **keys) for name, keys in ARTEFACTS.items())
    return replace(whole, about=whole.about.model_copy(update={"artefacts": made}), experiments={})


def residual(check: str, role: str = "core", **keys: Any) -> dict[str, Any]:
    """A part on one residual."""
    of = part("identity", checks=[check], **keys).model_copy(update={"artefact": "algebra"})
    return of.model_dump() | {"says": f"{check} {role}", role: True} if role else of.model_dump()


def judged(
    *parts: dict[str, Any], results: Path = Path("nowhere"), computed: bool = True, **keys: Any
) -> Judged:
    stated: dict[str, Any] = {
        "id": "adam2021-01", "title": "planted", "where": "here", "kind": "exact", "fidelity": "algebra",
        "claim": "planted", "predicate": "planted", "depends_on": "nothing", "finding": "It is so.",
        "artefacts": ["algebra"], "parts": parts,
    }  # fmt: skip
    claim = Claim.model_validate(stated | keys)
    computation = Computation(RESIDUALS) if computed else None
    (one,) = judge(paper(), [claim], results, lambda *_: computation)
    return one


@pytest.mark.parametrize(
    ("core", "others", "grade"),
    [
        (["near"], {}, YES),
        (["far"], {}, NO),
        (["near", "far"], {}, MIXED),
        (["near", "none"], {}, OPEN),
        # an erratum that holds corrects a claim that holds, and no other
        (["near"], {"near": "erratum"}, Grade.corrected),
        (["near"], {"far": "erratum"}, YES),
        (["far"], {"near": "erratum"}, NO),
        (["near"], {"near": "erratum", "far": "erratum"}, Grade.corrected),
        # a condition is shown and decides nothing, held or not
        (["near"], {"far": ""}, YES),
        (["far"], {"near": ""}, NO),
    ],
)
def test_core_parts_decide_and_an_erratum_corrects(
    core: list[str], others: dict[str, str], grade: Grade
) -> None:
    parts = [residual(check) for check in core]
    parts += [residual(check, role) for check, role in others.items()]
    correction = "the sign" if "erratum" in others.values() else ""
    one = judged(*parts, correction=correction)
    assert one.grade == grade
    assert ("The correction: the sign." in one.finding) == (grade == Grade.corrected)
    roles = [len(one.parts_of_role(role)) for role in ("core", "erratum", "condition")]
    assert roles == [len(core), *(list(others.values()).count(x) for x in ("erratum", ""))]


def test_steadiness_combines_all_core_parts_and_names_what_turns() -> None:
    one = judged(residual("near"), residual("edge"), residual("far", ""))
    assert one.grade == MIXED
    assert one.turns == {"threshold doubled": YES}
    assert one.steady == "holds: threshold doubled"
    assert set(one.steadiness) == set(VARIANTS)
    assert judged(residual("near")).steady == "steady"
    corrected = judged(residual("edge"), residual("near", "erratum"), correction="the sign")
    assert corrected.turns == {"threshold doubled": Grade.corrected}


@pytest.mark.parametrize(
    ("artefacts", "kind"),
    [
        (["algebra"], "theory"),
        (["algebra", "printed"], "experiments"),
        (["printed", "other", "smaller"], "experiments"),
        (["walked"], "experiments"),
        (["timed"], "speed"),
        (["algebra", "learned"], "speed"),
    ],
)
def test_the_kind_of_a_claim_is_that_of_what_decides_it(artefacts: list[str], kind: str) -> None:
    one = judged(artefacts=artefacts)
    assert (one.kind, one.grade) == (kind, Grade.not_run)
    # artefacts that decide nothing do not count
    assert judged(residual("near"), artefacts=["algebra", *artefacts]).kind == "theory"
    assert judged(artefacts=artefacts, ours=True).kind == "ours"


def test_the_fidelity_of_a_claim_is_the_one_that_it_states() -> None:
    assert judged(artefacts=["smaller"], fidelity="our settings").fidelity == Fidelity.ours
    with pytest.raises(ValidationError, match="fidelity"):
        judged(artefacts=["smaller"], fidelity="near")


def test_whether_a_grade_lasts_is_said_of_experiments_alone() -> None:
    assert judged(residual("near")).lasts == ""
    one = replace(judged(residual("near")), kind="experiments")
    assert one.lasts == "yes"
    other = replace(one, steadiness={**one.steadiness, LASTING: Grade.open})
    assert (other.lasts, other.steady) == ("open", "steady")


@pytest.mark.parametrize(
    ("artefacts", "why"),
    [
        (["algebra"], "no predicate in code"),
        (["algebra", "printed", "timed", "other"], "no experiment: printed, other"),
        (["walked", "learned"], "no predicate in code"),
    ],
)
def test_a_claim_without_parts_says_what_is_missing(artefacts: list[str], why: str) -> None:
    assert judged(artefacts=artefacts).finding == why


def test_only_core_parts_say_why_a_claim_has_not_run(tmp_path: Path) -> None:
    of_record = part("ratio", methods=("a", "b"), at_least=1.0).model_dump()
    one = judged(
        residual("near"),
        of_record | {"artefact": "timed"},
        computed=False,
        artefacts=["algebra", "timed"],
        results=tmp_path,
    )
    assert (one.finding, one.steady, one.condition) == ("nothing computes it", "", "")
    assert [p.why_not for p in one.parts] == [
        "nothing computes it", f"no record speed/none.json in {tmp_path}",
    ]  # fmt: skip
    assert one.commands[0].startswith("svgpbench speed ")


def test_what_cannot_be_tested_has_no_grade_and_says_why() -> None:
    one = judged(residual("near", ""), untestable="the data have no names")
    assert (one.grade, one.steady) == (Grade.not_testable, "")
    assert one.finding == "It is so. Not testable here: the data have no names."


ONE, TWO, BARE = (Effect("a", "better", 1.5, 1.25, 1.75), Effect("b", "better", 2.5, 2.0, 3.0),
                  Effect("c", "", 0.5))  # fmt: skip


@pytest.mark.parametrize(
    ("effects", "text"),
    [
        ((ONE,), "+1.5 [+1.25, +1.75]"),
        ((ONE, TWO), "2 better"),
        ((ONE, replace(TWO, outcome="worse")), "1 better, 1 worse"),
        (
            (replace(ONE, outcome=""), replace(TWO, outcome="")),
            "+1.5 [+1.25, +1.75]; +2.5 [+2, +3]",
        ),
        ((replace(ONE, outcome=""), BARE), ""),
        ((Effect("d", "undecided"),), "undecided"),
        ((), ""),
    ],
)
def test_an_effect_is_an_interval_or_a_count_of_outcomes(
    effects: tuple[Effect, ...], text: str
) -> None:
    assert effect_of([Judgement(DIRECTION, effects)]) == text
    claim = judged(residual("near"))
    parts = (
        Part("core", "core", Judgement(YES, effects)),
        Part("a condition", "condition", Judgement(NO, (TWO,))),
    )
    shown = replace(claim, parts=parts)
    assert shown.effect == text
    assert shown.only_effect == (effects[0] if len(effects) == 1 else None)
