"""What a part of a claim says of planted records, and the verdicts by short names."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pydantic import TypeAdapter

from svgpbench.papers.predicates import AnyPredicate
from svgpbench.papers.verdict import Finding, Verdict

YES: Final = Verdict.reproduced
NO: Final = Verdict.not_reproduced
PARTLY: Final = Verdict.partly
OPEN: Final = Verdict.undecided


def part(predicate: str, **keys: Any) -> AnyPredicate:
    """A part of a claim as a paper's file states it; raises `ValidationError` as that does."""
    adapter: TypeAdapter[AnyPredicate] = TypeAdapter(AnyPredicate)
    stated = {"says": "planted", "artefact": "fig1", "predicate": predicate}
    return adapter.validate_python(stated | keys)


def judged(frame: pd.DataFrame, predicate: str, **keys: Any) -> Finding:
    """What such a part finds in a frame."""
    return part(predicate, **keys).judge(frame)
