"""Judge the requested claims, and compute the frames of figures at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from svgpbench.errors import unknown
from svgpbench.papers import Paper
from svgpbench.papers.grading import Judged, judge
from svgpbench.papers.precomputed import PrecomputedResults, precompute
from svgpbench.papers.reproduction import frames_of
from svgpbench.papers.selection import PaperSelection


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
    known_ids = [claim.id for paper in papers for claim in paper.claims]
    for claim_id in ids:
        if claim_id not in known_ids:
            raise unknown("claim", claim_id, known_ids)
    requested = set(ids or known_ids)
    ledger: list[tuple[Paper, Judged]] = []
    with precompute(papers, requested, on_done) as precomputed:
        for paper in papers:
            claims = [claim for claim in paper.claims if claim.id in requested]
            judged = judge(paper, claims, results, precomputed.claim)
            ledger += [(paper, claim) for claim in judged]
    return ledger


@contextmanager
def judged_and_drawn(
    selections: Sequence[PaperSelection], results: Path
) -> Iterator[tuple[list[tuple[Paper, list[Judged]]], PrecomputedResults]]:
    """Yield each paper with its judged claims, and what draws its figures.

    The frames of figures are computed while claims are judged. Raises `UserError` if a figure is declared
    wrongly.
    """
    papers = [selection.paper for selection in selections]
    ids = {claim.id for selection in selections for claim in selection.claims}
    figures = [
        frame
        for selection in selections
        for artefact in selection.artefacts
        for frame in frames_of(selection.paper, artefact)
    ]
    with precompute(papers, ids, lambda name: None, figures) as precomputed:
        ledger = [
            (selection.paper, judge(selection.paper, selection.claims, results, precomputed.claim))
            for selection in selections
        ]
        yield ledger, precomputed
