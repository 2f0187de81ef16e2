"""What claims and figures are computed from, ahead of both and several at a time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import scipy.linalg  # noqa: F401  the BLAS that threads are limited of
from threadpoolctl import threadpool_limits

from svgpbench.papers import Paper
from svgpbench.papers.evidence.records import ComputedFrame, compute, computed_frame
from svgpbench.papers.grading import Compute, is_computed
from svgpbench.runs.cores import usable_cores


class Given(NamedTuple):
    """What gives a computation, that of a claim and the frame of a figure, by paper and name."""

    claim: Compute
    frame: ComputedFrame


@contextmanager
def ahead(
    papers: Iterable[Paper],
    asked: set[str],
    on_done: Callable[[str], None],
    figures: Iterable[tuple[str, str]] = (),
) -> Iterator[Given]:
    """What gives computations, all claims that are asked for and all `figures` being computed meanwhile.

    A process a core, each on one thread; in this process where there is one of them or one core.
    `on_done` is called with each claim's id and figure's name, in another thread.
    """
    claims = [
        (paper.name, claim.id)
        for paper in papers
        for claim in paper.claims
        if claim.id in asked and is_computed(paper, claim)
    ]
    drawn = list(figures)
    jobs = min(len(usable_cores()), len(claims) + len(drawn))
    if jobs < 2:
        yield Given(compute, computed_frame)
        return
    # not forked: this process has threads
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin) as pool:
        with _ctrl_c_held():
            of_claims = {key: pool.submit(compute, *key) for key in claims}
            of_figures = {key: pool.submit(computed_frame, *key) for key in drawn}
        futures: list[tuple[tuple[str, str], Future[Any]]] = [*of_claims.items()]
        for (_, name), future in [*futures, *of_figures.items()]:
            future.add_done_callback(partial(_tell, on_done, name))
        try:
            yield Given(
                lambda paper, claim: of_claims[paper, claim].result(),
                lambda paper, name: of_figures[paper, name].result(),
            )
        finally:
            pool.shutdown(cancel_futures=True)


def _tell(on_done: Callable[[str], None], name: str, _: Future[Any]) -> None:
    on_done(name)


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Processes that start meanwhile get none before they have begun: it would end them in a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """On one core, and silent at Ctrl-C, which the whole group of processes gets."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threadpool_limits(1)
