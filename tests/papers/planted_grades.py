"""What a part of a claim says of planted records, and the grades by short names."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pydantic import TypeAdapter

from svgpbench.papers import Claim
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import Judged, judge_part
from svgpbench.papers.predicates.all_predicates import AnyPredicate
from svgpbench.stats.rules import RULES, VARIANTS, Rules

YES: Final = Grade.holds
NO: Final = Grade.fails
MIXED: Final = Grade.mixed
DIRECTION: Final = Grade.direction
OPEN: Final = Grade.open
AB: Final[dict[str, Any]] = {"metric": "nlpd", "methods": ("A", "B")}
"""Keys of the comparison that most parts here have."""


def part(predicate: str, **keys: Any) -> AnyPredicate:
    """A part of a claim as a paper's file states it; raises `ValidationError` as that does."""
    adapter: TypeAdapter[AnyPredicate] = TypeAdapter(AnyPredicate)
    stated = {"says": "planted", "artefact": "fig1", "predicate": predicate}
    return adapter.validate_python(stated | keys)


def graded(claim: Claim, grade: Grade) -> Judged:
    """Return a claim on experiments with that grade, and nothing found for it."""
    return Judged(claim, grade, "experiments", "", "", (), {}, ())


def judged(frame: pd.DataFrame, predicate: str, rules: Rules = RULES, **keys: Any) -> Judgement:
    """Judge a part by planted records; as a core part it has its own grade under each variant."""
    if rules != RULES:
        return part(predicate, **keys).judge(frame, rules)
    core = part(predicate, **keys).model_copy(update={"core": True})
    judgement, under = judge_part(core, frame)
    grades = {name: varied.grade for name, varied in under.items()}
    assert grades == {name: core.judge(frame, each).grade for name, each in VARIANTS.items()}
    return judgement
