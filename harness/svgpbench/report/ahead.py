"""Claims computed ahead of their verdicts, several at a time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context

import scipy.linalg  # noqa: F401  the BLAS that threads are limited of
from threadpoolctl import threadpool_limits

from svgpbench.papers import Paper
from svgpbench.report.evidence import Computation, compute
from svgpbench.report.verdicts import Compute, is_computed
from svgpbench.runner.cores import usable_cores


@contextmanager
def ahead(
    papers: Iterable[Paper], asked: set[str], on_done: Callable[[str], None]
) -> Iterator[Compute]:
    """What gives the computation of a claim, all that are asked for being computed meanwhile.

    A process a core, each on one thread; in this process where there is one claim or one core.
    `on_done` is called with each claim's id, in another thread.
    """
    wanted = [
        (paper.name, claim.id)
        for paper in papers
        for claim in paper.claims
        if claim.id in asked and is_computed(paper, claim)
    ]
    jobs = min(len(usable_cores()), len(wanted))
    if jobs < 2:
        yield compute
        return
    # not forked: this process has threads
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin) as pool:
        with _ctrl_c_held():
            futures = {key: pool.submit(compute, *key) for key in wanted}
        for (_, claim), future in futures.items():
            future.add_done_callback(partial(_tell, on_done, claim))
        try:
            yield lambda paper, claim: futures[paper, claim].result()
        finally:
            pool.shutdown(cancel_futures=True)


def _tell(on_done: Callable[[str], None], claim: str, _: Future[Computation | None]) -> None:
    on_done(claim)


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
