"""Compute the frames of claims and figures in parallel, before they are needed, and run other work beside."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple, ParamSpec, TypeVar

import scipy.linalg  # noqa: F401  loads the BLAS whose threads are limited
from threadpoolctl import threadpool_limits

from svgpbench.papers import Paper
from svgpbench.papers.evidence.computed import ComputedFrame, compute, computed_frame
from svgpbench.papers.grading import Compute, is_computed
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.parent_process import end_with

P = ParamSpec("P")
T = TypeVar("T")


class PrecomputedResults(NamedTuple):
    """Functions that return a claim's computation and a figure's frame, by (paper, name).

    `executor` runs other work after them, in the same processes.
    """

    claim: Compute
    frame: ComputedFrame
    executor: Executor


class InProcess(Executor):
    """An executor that calls each function at once, in this process."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


NOT_PRECOMPUTED = PrecomputedResults(compute, computed_frame, InProcess())
"""Results that are computed in this process when they are requested."""


@contextmanager
def precompute(
    papers: Iterable[Paper],
    ids: set[str],
    on_done: Callable[[str], None],
    figures: Iterable[tuple[str, str]] = (),
) -> Iterator[PrecomputedResults]:
    """Start computing the claims `ids` and all `figures`, and yield functions that return the results.

    One worker process per core is started. With one core or one computation, it runs in this process when
    requested, and `on_done` is not called. Otherwise `on_done` is called, in another thread, with the id of
    each computed claim and the name of each computed figure. A computation has one BLAS thread, because its
    matrices are small.
    """
    claims = [
        (paper.name, claim.id)
        for paper in papers
        for claim in paper.claims
        if claim.id in ids and is_computed(paper, claim)
    ]
    figures = list(figures)
    jobs = min(len(usable_cores()), len(claims) + len(figures))
    if jobs < 2:
        with threadpool_limits(1):
            yield NOT_PRECOMPUTED
        return
    # spawned, not forked: this process has threads
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin) as pool:
        # Ctrl-C, which would print a traceback, is blocked in processes started meanwhile, until `_begin`
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            computations = {key: pool.submit(compute, *key) for key in claims}
            frames = {key: pool.submit(computed_frame, *key) for key in figures}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        futures: list[tuple[tuple[str, str], Future[Any]]] = [*computations.items()]
        for (_, name), future in [*futures, *frames.items()]:
            future.add_done_callback(lambda _, name=name: on_done(name))  # type: ignore[misc]
        try:
            yield PrecomputedResults(
                lambda paper, claim: computations[paper, claim].result(),
                lambda paper, name: frames[paper, name].result(),
                pool,
            )
        finally:
            # after an error nobody reads what has not begun
            pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Initialise a worker: one BLAS thread, ended with its parent, and by Ctrl-C without a traceback."""
    end_with(os.getppid())
    # before it is unblocked: a Ctrl-C that came meanwhile is delivered at the next line
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threadpool_limits(1)
