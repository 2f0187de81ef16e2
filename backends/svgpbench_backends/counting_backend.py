"""The counting backend: it runs a method on shapes and counts FLOPs, bytes moved and live memory.

A product of m × k and k × n costs 2mnk FLOPs. A Cholesky factor of n × n costs n³/3, and its adjoint one
product and two solves. A triangular solve with k right-hand sides costs n²k, and its adjoint one solve and
one product. Elementwise operations cost 1 per entry (exp and log too), and a sum of n numbers n − 1. The
time to count does not depend on shapes: n = 10⁷ is counted as fast as n = 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from svgpbench.ops import Array, Capabilities, Tree
from svgpbench.tree import leaves, rebuild, tree_map
from svgpbench_backends.counting_algebra import cholesky, solve_triangular
from svgpbench_backends.counting_arrays import (
    ShapeArray,
    attach,
    broadcast_to,
    constant,
    copied,
    elementwise,
    no_numbers,
    record,
    reshape,
    scattered,
    total,
    transpose,
    view,
)
from svgpbench_backends.counting_ledger import Counted, Ledger
from svgpbench_backends.counting_tape import Node, reverse_pass

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


class CountingOps:
    """Backend of shapes without numbers; `count` runs a function and returns its cost."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        ("shapes",), ("float64", "float32"), ("cpu",), computes=False
    )
    name = "counting"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        self.mode, self.dtype, self.device = mode, dtype, device
        self._ledger, self._dtype = Ledger(), np.dtype(dtype)
        self._differentiating = False

    def count(self, f: Callable[[], S]) -> tuple[S, Counted]:
        """Return the result of `f()` and its cost; the peak includes memory alive before the call."""
        self._ledger.restart()
        out = f()
        return out, self._ledger.counted()

    def _new(self, shape: Sequence[int], dtype: np.dtype[Any] | None = None) -> ShapeArray:
        return record(self._ledger, (), tuple(shape), dtype or self._dtype)

    # --- making and reading arrays -------------------------------------------------------------
    def asarray(self, x: npt.ArrayLike) -> Array:
        x = np.asarray(x)
        return self._new(x.shape, self._dtype if x.dtype.kind == "f" else x.dtype)

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        raise no_numbers()

    def zeros(self, shape: Sequence[int]) -> Array:
        return self._new(shape)

    def eye(self, n: int) -> Array:
        return self._new((n, n))

    # --- elementwise ---------------------------------------------------------------------------
    def exp(self, x: Array) -> Array:
        out = elementwise(x)
        value = constant(out)
        return attach(out, (x, lambda g: g * value))

    def log(self, x: Array) -> Array:
        value = constant(x)
        return attach(elementwise(x), (x, lambda g: g / value))

    def log1p(self, x: Array) -> Array:
        value = constant(x)
        return attach(elementwise(x), (x, lambda g: g / (1.0 + value)))

    def sqrt(self, x: Array) -> Array:
        out = elementwise(x)
        value = constant(out)
        return attach(out, (x, lambda g: 0.5 * g / value))

    def _smooth(self, x: Array) -> Array:
        """Return the shape of a function whose slope is one more function of x, times g."""
        value = constant(x)
        return attach(elementwise(x), (x, lambda g: g * elementwise(value)))

    def abs(self, x: Array) -> Array:
        return self._smooth(x)

    def softplus(self, x: Array) -> Array:
        return self._smooth(x)

    def maximum(self, x: Array, y: Array | float) -> Array:
        a, b = constant(x), constant(y)
        return attach(
            elementwise(x, y),
            (x, lambda g: g * elementwise(a, b)),  # where x is the larger
            (y, lambda g: g * elementwise(a, b)),
        )

    def where(self, condition: Array, x: Array, y: Array) -> Array:
        dtypes = (a.dtype for a in (x, y) if isinstance(a, ShapeArray))
        out = elementwise(condition, x, y, dtype=next(dtypes, self._dtype))
        return attach(
            out,
            (x, lambda g: elementwise(condition, g, dtype=g.dtype)),
            (y, lambda g: elementwise(condition, g, dtype=g.dtype)),
        )

    def erfc(self, x: Array) -> Array:
        return self._smooth(x)

    def sin(self, x: Array) -> Array:
        return self._smooth(x)

    def cos(self, x: Array) -> Array:
        return self._smooth(x)

    def lgamma(self, x: Array) -> Array:
        return self._smooth(x)

    def digamma(self, x: Array) -> Array:
        return self._smooth(x)

    # --- shapes and sums -----------------------------------------------------------------------
    matrix_transpose = staticmethod(transpose)
    reshape = staticmethod(reshape)
    broadcast_to = staticmethod(broadcast_to)

    def sum(
        self, x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
    ) -> Array:
        return total(x, axis, keepdims=keepdims)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        return total(constant(x), axis, keepdims=keepdims)  # as many comparisons as additions

    def sort(self, x: Array, *, axis: int = -1) -> Array:
        return copied(constant(x))

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        before = range(xs[0].ndim)[axis]  # number of axes before `axis`
        ends = np.cumsum([x.shape[before] for x in xs]).tolist()
        if len({(*x.shape[:before], *x.shape[before + 1 :]) for x in xs}) > 1:
            raise ValueError(f"shapes {[x.shape for x in xs]} do not join along axis {axis}")
        shape = (*xs[0].shape[:before], ends[-1], *xs[0].shape[before + 1 :])
        all_before = (slice(None),) * before

        def part(end: int, size: int) -> Callable[[ShapeArray], ShapeArray]:
            return lambda g: g[(*all_before, slice(end - size, end))]

        rules = [(x, part(end, x.shape[before])) for x, end in zip(xs, ends, strict=True)]
        return attach(record(self._ledger, xs, shape, xs[0].dtype), *rules)

    def flip(self, x: Array, *, axis: tuple[int, ...]) -> Array:
        return attach(copied(x), (x, copied))

    def tril(self, x: Array) -> Array:
        return attach(copied(x), (x, copied))

    def take(self, x: Array, indices: Array, *, axis: int) -> Array:
        full, before = x.shape, range(x.ndim)[axis]
        shape = (*full[:before], *indices.shape, *full[before + 1 :])
        # a gather reads the entries that it picks, not all of x
        read = indices.bytes_moved + math.prod(shape) * x.dtype.itemsize
        out = record(self._ledger, (), shape, x.dtype, read=read)

        def spread(g: ShapeArray) -> ShapeArray:
            return record(self._ledger, (g, indices), full, g.dtype, g.entries)

        return attach(out, (x, spread))

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        return record(self._ledger, (x, indices, values), x.shape, x.dtype, values.entries)

    # --- linear algebra ------------------------------------------------------------------------
    def diagonal(self, x: Array) -> Array:
        full = x.shape
        return view(x, (*full[:-2], min(full[-2:])), lambda g: scattered(g, full))

    cholesky = staticmethod(cholesky)
    solve_triangular = staticmethod(solve_triangular)

    # --- autodiff and control flow -------------------------------------------------------------
    def stop_gradient(self, x: Tree) -> Tree:
        return tree_map(constant, x)

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        def call(tree: Tree, *args: Tree) -> tuple[Array, Tree]:
            if self._differentiating:
                raise NotImplementedError("a gradient inside a gradient is not counted")
            self._differentiating = True
            try:
                watched = [constant(leaf) for leaf in leaves(tree)]
                starts = [Node() for _ in watched]
                for leaf, node in zip(watched, starts, strict=True):
                    leaf.node = node
                value = f(rebuild(tree, iter(watched)), *args)
            finally:
                self._differentiating = False
            del watched
            return constant(value), rebuild(
                tree, iter(self._gradients(value, starts, leaves(tree)))
            )

        return call

    def _gradients(
        self, value: ShapeArray, starts: list[Node], tree: list[ShapeArray]
    ) -> list[ShapeArray]:
        if value.shape != ():
            raise ValueError(f"a gradient is of a number, not of shape {value.shape}")
        if value.node is None:
            return [self.zeros(x.shape) for x in tree]
        gradients = reverse_pass(value.node, self._new(()), starts)
        return [
            self.zeros(x.shape) if g is None else g for x, g in zip(tree, gradients, strict=True)
        ]

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        """Run two turns, and count the second for all later ones: it has freed the first one's memory."""
        shapes = [x.shape for x in leaves(carry)]
        for times in (min(length, 1), length - 1):
            if times > 0:
                with self._ledger.repeated(times):
                    carry = step(carry, tree_map(lambda leaf: leaf[0], xs))
                if [x.shape for x in leaves(carry)] != shapes:
                    raise ValueError("the carry of a scan changed its shape")
        return self._undifferentiated(carry, "scan")

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        """Count the condition once and no turn, since the number of turns depends on values."""
        condition(carry)
        return self._undifferentiated(carry, "while_loop")

    def _undifferentiated(self, carry: S, what: str) -> S:
        if any(x.node is not None for x in leaves(carry)):
            raise NotImplementedError(f"{what} is not differentiated through")
        return carry

    def jit(self, f: F) -> F:
        return f

    # --- measuring -----------------------------------------------------------------------------
    def sync(self, x: Tree) -> None:
        """Do nothing: there is nothing to wait for."""

    def peak_memory(self) -> int | None:
        return self._ledger.peak
