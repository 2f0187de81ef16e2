"""Judge the requested claims, and compute the frames of figures at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from svgpbench.errors import unknown
from svgpbench.papers import Paper
from svgpbench.papers.evidence.records import ComputedFrame
from svgpbench.papers.grading import Judged, judge
from svgpbench.papers.precomputed import ahead
from svgpbench.papers.reproduction import Chosen, draws, frames_of


def judged_claims(
    papers: Sequence[Paper],
    results: Path,
    ids: Sequence[str] = (),
    on_done: Callable[[str], None] = lambda claim: None,
) -> list[tuple[Paper, Judged]]:
    """Judge the claims of some papers from the records in a folder; without `ids` all claims.

    `on_done` is called with the id of each claim that a worker process has computed. Raises `UserError`
    with the nearest id if an id is unknown.
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


@contextmanager
def judged_and_drawn(
    chosen: Sequence[Chosen], results: Path
) -> Iterator[tuple[list[tuple[Paper, list[Judged]]], ComputedFrame]]:
    """Yield each paper with its judged claims, and a function that returns the frames of figures.

    The frames are computed while claims are judged. Raises `UserError` if a figure is declared wrongly.
    """
    asked = {claim.id for each in chosen for claim in each.claims}
    figures = [frame for each in chosen for one in draws(each) for frame in frames_of(one)]
    papers = [each.paper for each in chosen]
    with ahead(papers, asked, lambda name: None, figures) as given:
        judged = [
            (each.paper, judge(each.paper, each.claims, results, given.claim)) for each in chosen
        ]
        yield judged, given.frame
