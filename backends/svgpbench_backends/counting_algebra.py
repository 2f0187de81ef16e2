"""Cholesky factors and triangular solves on shapes; their adjoints are products and solves."""

from __future__ import annotations

import math

from svgpbench_backends.counting_arrays import (
    ShapeArray,
    attach,
    broadcast,
    constant,
    copied,
    record,
    sum_to,
)
from svgpbench_backends.counting_arrays import transpose as transposed
from svgpbench_backends.counting_tape import Node


def cholesky(a: ShapeArray) -> ShapeArray:
    """Return a Cholesky factor and count n³/3 FLOPs; its adjoint is a product and two solves."""
    _check_square(a)
    matrices = math.prod(a.shape[:-2])
    flops = matrices * a.shape[-1] ** 3 // 3
    a.ledger.factorised(matrices)
    out = record(a.ledger, (a,), a.shape, a.dtype, flops, kind="cholesky")
    L = constant(out)

    def rule(g: ShapeArray) -> ShapeArray:
        """Return ½ L⁻ᵀ (Φ + Φᵀ) L⁻¹ with Φ = tril(LᵀL̄) (Murray 2016, arXiv:1602.07527, Eq. 8)."""
        half = solve_triangular(L, copied(transposed(L) @ g), transpose=True)
        s = solve_triangular(L, transposed(half), transpose=True)
        return 0.5 * (s + transposed(s))

    return attach(out, (a, rule))


def solve_triangular(
    a: ShapeArray, b: ShapeArray, *, lower: bool = True, transpose: bool = False
) -> ShapeArray:
    """Return the solution and count n²k FLOPs.

    The adjoint is a solve for b̄ = a⁻ᵀx̄, and one more product for ā = −tril(b̄xᵀ).
    """
    _check_square(a)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"no solve of shapes {a.shape} and {b.shape}")
    shape = (*broadcast(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    flops = math.prod(shape) * a.shape[-1]
    out = record(a.ledger, (a, b), shape, b.dtype, flops, kind="solve")
    nodes = [x.node for x in (a, b) if x.node is not None]
    if nodes:
        matrix, a_shape = constant(a), a.shape
        x = constant(out) if a.node is not None else None
        b_shape = b.shape if b.node is not None else None

        def pull(g: ShapeArray) -> list[ShapeArray]:
            b_bar = solve_triangular(matrix, g, transpose=not transpose)
            cotangents = []
            if x is not None:
                # ax = b has ā = −b̄xᵀ, and aᵀx = b has the transpose of that
                u, v = (x, b_bar) if transpose else (b_bar, x)
                cotangents.append(sum_to(copied(-(u @ transposed(v))), a_shape))
            if b_shape is not None:
                cotangents.append(sum_to(b_bar, b_shape))
            return cotangents

        out.node = Node(nodes, pull)
    return out


def _check_square(a: ShapeArray) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"shape {a.shape} is not square")
