"""The claims that were asked for, judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from svgpbench.errors import unknown
from svgpbench.papers import Paper
from svgpbench.report.ahead import ahead
from svgpbench.report.verdicts import Judged, judge


def judged_claims(
    papers: Sequence[Paper],
    results: Path,
    ids: Sequence[str] = (),
    on_done: Callable[[str], None] = lambda claim: None,
) -> list[tuple[Paper, Judged]]:
    """Claims of some papers with what the records in a folder say of them, all where no id is given.

    `on_done` is called with each claim that was computed. Raises `UserError` with the nearest id for one
    that there is not.
    """
    known = [claim.id for paper in papers for claim in paper.claims]
    for one in ids:
        if one not in known:
            raise unknown("claim", one, known)
    asked = set(ids or known)
    with ahead(papers, asked, on_done) as given:
        return [
            (paper, one)
            for paper in papers
            for one in judge(
                paper, [claim for claim in paper.claims if claim.id in asked], results, given.claim
            )
        ]
