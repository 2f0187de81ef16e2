"""Cases in a process started by asv: set up as in a worker, compared with NumPy, compiled and warm.

A case that cannot be timed raises `NotImplementedError`, so that asv skips it. `asv run --show-stderr`
prints the reason.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from svgpbench.backends import framework_missing, load_backend
from svgpbench.benchmarks import timed_calls
from svgpbench.benchmarks.timing.cases import STEPS, TimedCase, build_case
from svgpbench.benchmarks.timing.floor import least_seconds, work_of
from svgpbench.benchmarks.timing.problems import make_problem
from svgpbench.benchmarks.timing.rates import Sizes, best_of, measure_blas, measure_ops
from svgpbench.errors import UserError
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.worker_setup import pin, worker_environment

from .equivalence import reference_elsewhere, why_not_timed

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # constants of malloc.h


def threads() -> int:
    """Return SVGPBENCH_SPEED_THREADS, or by default the number of usable cores, at most 2."""
    return int(os.environ.get("SVGPBENCH_SPEED_THREADS", min(2, len(usable_cores()))))


def set_up(backend: str, device: str) -> None:
    """Set variables, memory allocation, cores and threads of this process as in a worker."""
    os.environ.update(worker_environment(device, threads()))
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        # glibc read its variables when this process started
        libc.mallopt(M_MMAP_MAX, int(os.environ["MALLOC_MMAP_MAX_"]))
        libc.mallopt(M_TRIM_THRESHOLD, int(os.environ["MALLOC_TRIM_THRESHOLD_"]))
    pin(backend, threads(), usable_cores()[: threads()])


def build(step: str, backend: str, method: str, problem: str, dtype: str, device: str) -> TimedCase:
    """Build a case without calling it. Raises `NotImplementedError` if it cannot run."""
    name, _, mode = backend.partition(":")
    try:
        if missing := framework_missing(name):
            raise UserError(missing)
        set_up(name, device)
        return build_case(
            load_backend(name, mode, dtype, device), make_problem(problem), method, step
        )
    except UserError as error:
        raise NotImplementedError(str(error)) from None


@functools.cache
def first_call(
    step: str, backend: str, method: str, problem: str, dtype: str, device: str
) -> tuple[float, TimedCase]:
    """Return the seconds of the case's first call, and the case.

    Raises `NotImplementedError` if its figure differs from NumPy's. The result is cached, because asv calls
    `setup` before each sample.
    """
    case = build(step, backend, method, problem, dtype, device)
    seconds, result = timed_calls.first_call(case.call)
    expected = reference_elsewhere(problem, method, step)
    if why := why_not_timed(case.figure(result), expected, dtype):
        raise NotImplementedError(why)
    return seconds, case


@functools.cache
def floor_ratio(
    step: str, backend: str, method: str, problem: str, dtype: str, device: str
) -> float:
    """Return the time of the fastest step divided by the least time of its arithmetic.

    The least time is at the best rates of the backend and BLAS. Raises `NotImplementedError` if the work of
    the step cannot be counted.
    """
    _, case = first_call(step, backend, method, problem, dtype, device)
    built = make_problem(problem)
    try:
        work = work_of(built, method, step, dtype)
    except (UserError, NotImplementedError) as error:
        raise NotImplementedError(f"no floor: {error}") from None
    rows = max(len(built.y), len(built.y_new))
    sizes = Sizes(len(built.Z), rows, built.model().latents)
    rates = best_of([measure_ops(case.ops, sizes), measure_blas(sizes, threads())])
    return timed_calls.warm_up(case.call) / STEPS[step] / least_seconds(work, rates)


@functools.cache
def warm(step: str, backend: str, method: str, problem: str, dtype: str, device: str) -> TimedCase:
    """Return the case of `first_call` after warm-up calls."""
    _, case = first_call(step, backend, method, problem, dtype, device)
    timed_calls.warm_up(case.call)
    return case
