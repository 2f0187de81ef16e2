"""Rates of products, Choleskys, triangular solves and copies at the shapes of a problem.

A step cannot be faster than its arithmetic at the best rates that any library reaches on the machine. Each
timed backend therefore measures its own rates through its `Ops`, and one process measures BLAS and LAPACK as
NumPy and SciPy call them. A rate is that of the fastest call. Through `Ops`, one call is a chain of
operations, each on the result of the previous one. The cost of starting a compiled function is then shared
by the whole chain, and no two operations run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from svgpbench.benchmarks.timed_calls import first_call, warm_up
from svgpbench.config import Positive
from svgpbench.ops import Array, Ops
from svgpbench.runs.worker_setup import forget_programs

Floats = npt.NDArray[np.floating[Any]]

CHAIN = 8
"""Number of operations per call through `Ops`."""

LARGE = 1 << 23
"""Number of entries of an array that fits in no cache."""


class Rates(NamedTuple):
    """FLOP/s of each kind of arithmetic, and bytes/s read and written by a copy."""

    products: Positive
    choleskys: Positive
    solves: Positive
    cached: Positive  # of arrays as large as the problem's
    memory: Positive  # of arrays that fit in no cache


class Sizes(NamedTuple):
    """Sizes that determine the shapes of a problem's arithmetic."""

    M: int  # inducing points
    b: int  # rows of a batch
    P: int = 1  # latents


class _Operands(NamedTuple):
    """Matrices whose products, factors and solves stay near 1."""

    A: Floats  # [M, M], symmetric, near the identity
    L: Floats  # [M, M], its Cholesky factor
    W: Floats  # [M, b]
    V: Floats  # [b, M]


def _operands(sizes: Sizes) -> _Operands:
    M, b, _ = sizes
    rng = np.random.default_rng(0)
    # by Gershgorin A's eigenvalues are within 0.2 of 1: no chain of eight overflows or vanishes
    noise = rng.uniform(-0.1, 0.1, (M, M)) / M
    A = np.eye(M) + noise + noise.T
    # E[W Wᵀ] = I, so that eight products with W and its transpose stay far from overflow
    W = rng.standard_normal((M, b)) / np.sqrt(b)
    return _Operands(A, np.linalg.cholesky(A), W, np.ascontiguousarray(W.T))


class _Work(NamedTuple):
    """Call to be timed, with its number of FLOPs or bytes."""

    kind: str  # a field of `Rates`
    amount: float
    call: Callable[[], Any]


def measure_ops(ops: Ops, sizes: Sizes) -> Rates:
    """Measure the rates that a backend reaches through its `Ops`."""
    return _best(_through_ops(ops, sizes))


def measure_blas(sizes: Sizes, threads: int) -> Rates:
    """Measure the rates that BLAS, LAPACK and NumPy's copies reach in float64."""
    return _best(_through_blas(sizes, threads))


def best_of(rates: Sequence[Rates]) -> Rates:
    """Return the best rate of each kind."""
    return Rates(*map(max, zip(*rates, strict=True)))


def _best(all_work: Iterator[_Work]) -> Rates:
    rates = dict.fromkeys(Rates._fields, 0.0)
    for work in all_work:
        first_call(work.call)
        rates[work.kind] = max(rates[work.kind], work.amount / warm_up(work.call))
    return Rates(**rates)


def _through_ops(ops: Ops, sizes: Sizes) -> Iterator[_Work]:
    M, b, P = sizes
    A, L, W, V = (ops.asarray(x) for x in _operands(sizes))

    def work(kind: str, amount: float, f: Callable[..., Array], *operands: Array) -> _Work:
        # all chains are one function to PyTorch, which runs the ninth program of a function eagerly
        forget_programs(ops)
        run = ops.jit(f)

        def call() -> Array:
            result = run(*operands)
            ops.sync(result)
            return result

        return _Work(kind, amount, call)

    def chained(kind: str, amount: float, step: Callable[..., Array], *operands: Array) -> _Work:
        """Return `CHAIN` steps, each of `amount`. The chain starts from the last array of `operands`."""

        def chain(*arrays: Array) -> Array:
            *constants, start = arrays
            return ops.scan(lambda c, _: step(*constants, c), start, (), length=CHAIN)

        return work(kind, CHAIN * amount, chain, *operands)

    for leading in dict.fromkeys(((), (P,) if P > 1 else ())):
        copies = P if leading else 1
        square, wide = (ops.asarray(np.tile(x, (*leading, 1, 1))) for x in _operands(sizes)[1:3])
        yield chained("products", 2 * copies * M * M * b, lambda a, c: a @ c, A, wide)
        yield chained("products", 2 * copies * M**3, lambda a, c: a @ c, A, square)
        yield chained("products", 4 * copies * M * M * b, lambda w, v, c: (c @ w) @ v, W, V, square)
        # a factor, read as the lower half of a symmetric matrix, is positive definite too
        yield chained("choleskys", copies * M**3 / 3, ops.cholesky, square)
        for right, columns in ((wide, b), (square, M)):
            for transpose in (False, True):

                def solve(a: Array, c: Array, transpose: bool = transpose) -> Array:
                    return ops.solve_triangular(a, c, transpose=transpose)

                yield chained("solves", copies * M * M * columns, solve, L, right)
    for kind, x in (("cached", W), ("memory", ops.zeros((LARGE,)))):
        entries = M * b if kind == "cached" else LARGE
        byte_count = 2 * entries * np.dtype(ops.dtype).itemsize
        yield work(kind, byte_count, lambda c: c + 1.0, x)  # a chain might be fused into one pass


def _through_blas(sizes: Sizes, threads: int) -> Iterator[_Work]:
    M = sizes.M
    # column-major: SciPy's wrappers copy row-major arrays, which would count as arithmetic
    A, L, W, V = map(np.asfortranarray, _operands(sizes))
    for x, y in ((A, W), (W, V), (A, A)):
        flops = 2 * x.size * y.shape[1]
        yield _Work("products", flops, lambda x=x, y=y: blas.dgemm(1.0, x, y))  # type: ignore[misc]
    # clean=0: SciPy then does not zero the other triangle, which is no work of LAPACK
    yield _Work("choleskys", M**3 / 3, lambda: lapack.dpotrf(A, lower=1, clean=0))
    for right in (W, A):
        for transpose in (0, 1):
            yield _Work(
                "solves",
                M * right.size,
                lambda x=right, t=transpose: blas.dtrsm(1.0, L, x, lower=1, trans_a=t),  # type: ignore[misc]
            )
    W_copy = np.empty_like(W)
    yield _Work("cached", 2 * W.nbytes, lambda: np.copyto(W_copy, W))
    source, target = np.zeros(LARGE), np.ones(LARGE)
    source += 1.0  # untouched zeros are one page, read repeatedly
    parts = [slice(i * LARGE // threads, (i + 1) * LARGE // threads) for i in range(threads)]
    # NumPy's copyto releases the GIL, so that the threads copy side by side
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        yield _Work("memory", 2 * source.nbytes, copy)
