"""Functions of the `Ops` contract on small arrays, with NumPy's result or to be differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from svgpbench.checks.kit.numbers import Floats, numbers, positive_definite
from svgpbench.ops import Array, Ops

X = numbers(2, 3, 4)
POSITIVE = np.exp(X)
FORWARD: dict[str, tuple[Callable[[Ops, Array], Array], Callable[[Floats], Any], Floats]] = {
    "exp": (lambda ops, x: ops.exp(x), np.exp, X),
    "log": (lambda ops, x: ops.log(x), np.log, POSITIVE),
    "log1p": (lambda ops, x: ops.log1p(x), np.log1p, np.array([1e-12, -1e-9, 0.5, 30.0])),
    "sqrt": (lambda ops, x: ops.sqrt(x), np.sqrt, POSITIVE),
    "abs": (lambda ops, x: ops.abs(x), np.abs, X),
    "maximum of a number": (lambda ops, x: ops.maximum(x, 0.25), lambda x: np.maximum(x, 0.25), X),
    "maximum of an array": (
        lambda ops, x: ops.maximum(x, x[:1, ...] * x[:1, ...]),
        lambda x: np.maximum(x, x[:1] ** 2),
        X,
    ),
    "where": (
        lambda ops, x: ops.where(x > 0.0, x, 2.0 * x),
        lambda x: np.where(x > 0, x, 2 * x),
        X,
    ),
    "where, broadcast": (
        lambda ops, x: ops.where(x[..., :1] > 0.0, x, x[:1, ...]),
        lambda x: np.where(x[..., :1] > 0, x, x[:1]),
        X,
    ),
    "softplus": (
        lambda ops, x: ops.softplus(x),
        lambda x: np.logaddexp(x, 0),
        np.linspace(-60, 60, 241),
    ),
    "sum": (lambda ops, x: ops.sum(x), np.sum, X),
    "sum over an axis": (lambda ops, x: ops.sum(x, axis=-2), lambda x: x.sum(-2), X),
    "sum over axes, kept": (
        lambda ops, x: ops.sum(x, axis=(0, -1), keepdims=True),
        lambda x: x.sum((0, -1), keepdims=True),
        X,
    ),
    "max": (lambda ops, x: ops.max(x, axis=-1), lambda x: x.max(-1), X),
    "max, kept": (
        lambda ops, x: ops.max(x, axis=-2, keepdims=True),
        lambda x: x.max(-2, keepdims=True),
        X,
    ),
    "concat": (
        lambda ops, x: ops.concat([x, 2.0 * x[:, :1, :], x], axis=-2),
        lambda x: np.concatenate([x, 2 * x[:, :1], x], axis=-2),
        X,
    ),
    "concat along the first axis": (
        lambda ops, x: ops.concat((x[1:, ...], x), axis=0),
        lambda x: np.concatenate((x[1:], x)),
        X,
    ),
    "erfc": (lambda ops, x: ops.erfc(x), scipy.special.erfc, X),
    "lgamma": (lambda ops, x: ops.lgamma(x), scipy.special.gammaln, POSITIVE),
    "digamma": (lambda ops, x: ops.digamma(x), scipy.special.digamma, POSITIVE),
    "sin": (lambda ops, x: ops.sin(x), np.sin, 4.0 * X),
    "cos": (lambda ops, x: ops.cos(x), np.cos, 4.0 * X),
    "sort": (lambda ops, x: ops.sort(x), np.sort, X),
    "sort along an axis": (lambda ops, x: ops.sort(x, axis=1), lambda x: np.sort(x, axis=1), X),
    "reshape": (lambda ops, x: ops.reshape(x, (4, -1)), lambda x: x.reshape(4, -1), X),
    "broadcast_to": (
        lambda ops, x: ops.broadcast_to(x[:, :1, :], (5, 2, 3, 4)),
        lambda x: np.broadcast_to(x[:, :1], (5, 2, 3, 4)),
        X,
    ),
    "matrix_transpose": (
        lambda ops, x: ops.matrix_transpose(x),
        lambda x: np.swapaxes(x, -1, -2),
        X,
    ),
    "flip": (
        lambda ops, x: ops.flip(x, axis=(-2, -1)),
        lambda x: x[..., ::-1, ::-1],
        X,
    ),
    "tril": (lambda ops, x: ops.tril(x), np.tril, X),
    "take": (
        lambda ops, x: ops.take(x, ops.asarray(np.array([2, 0, 2])), axis=-2),
        lambda x: np.take(x, [2, 0, 2], axis=-2),
        X,
    ),
    "take of the first axis": (
        lambda ops, x: ops.take(x, ops.asarray(np.array([1])), axis=0),
        lambda x: x[[1]],
        X,
    ),
    "diagonal": (
        lambda ops, x: ops.diagonal(x),
        lambda x: np.diagonal(x, axis1=-2, axis2=-1),
        numbers(2, 3, 3),
    ),
    "operators with Python numbers": (
        lambda ops, x: (2.0 * x + 1.0 - x / 3.0) ** 2 - 1.0 / (2.0 + x * x),
        lambda x: (2 * x + 1 - x / 3) ** 2 - 1 / (2 + x * x),
        X,
    ),
    "indexing and matmul": (
        lambda ops, x: (x @ x[..., :1, :, None][..., 0, :, :])[..., 0],
        lambda x: (x @ x[..., :1, :, None][..., 0, :, :])[..., 0],
        X,
    ),
}


def solve_case(lower: bool, transpose: bool) -> Callable[..., Array]:
    """Return a triangular solve as a function of both arguments."""
    return lambda ops, a, b: ops.solve_triangular(a, b, lower=lower, transpose=transpose)


def symmetric_cholesky(ops: Ops, a: Array) -> Array:
    """Return the Cholesky factor of the symmetric part, so that its gradient is symmetric."""
    return ops.cholesky(0.5 * (a + ops.matrix_transpose(a)))


TRIANGULAR = numbers(2, 3, 3) + 3.0 * np.eye(3)
SMALL = numbers(2, 3)
# 1.46 is beside the zero of digamma, and lgamma is 0 at 2
GAMMA_ARGUMENTS = np.array([0.3, 1.07, 1.46, 2.0, 7.3, 400.0])
DIFFERENTIABLE: dict[str, tuple[Callable[..., Array], list[Floats]]] = {
    "cholesky": (symmetric_cholesky, [positive_definite(2, 3, 3)]),
    "cholesky of one matrix": (symmetric_cholesky, [positive_definite(3, 3)]),
    **{
        f"solve, {'lower' if lower else 'upper'}{', transposed' if transpose else ''}": (
            solve_case(lower, transpose),
            [TRIANGULAR, numbers(2, 3, 2)],
        )
        for lower in (True, False)
        for transpose in (True, False)
    },
    "solve, factor broadcast": (solve_case(True, False), [TRIANGULAR[:1], numbers(2, 3, 2)]),
    "solve, right side broadcast": (solve_case(True, True), [TRIANGULAR, numbers(3, 2)]),
    "diagonal": (lambda ops, x: ops.diagonal(x), [numbers(2, 3, 3)]),
    "erfc": (lambda ops, x: ops.erfc(x), [SMALL]),
    "lgamma": (lambda ops, x: ops.lgamma(x), [GAMMA_ARGUMENTS]),
    "digamma": (lambda ops, x: ops.digamma(x), [GAMMA_ARGUMENTS]),
    "sin, cos": (lambda ops, x: ops.sin(4.0 * x) + 2.0 * ops.cos(3.0 * x), [SMALL]),
    "tril": (lambda ops, x: ops.tril(x) * x, [numbers(2, 3, 3)]),
    "flip": (lambda ops, x: ops.flip(x, axis=(-2, -1)) * x, [numbers(2, 3, 3)]),
    "take": (lambda ops, x: ops.take(x, ops.asarray(np.array([2, 0, 2])), axis=1) ** 2, [SMALL]),
    "where": (lambda ops, x: ops.where(x > 0.0, x * x, -3.0 * x), [SMALL]),
    "maximum": (lambda ops, x: ops.maximum(x * x, 0.05), [SMALL]),
    "abs": (lambda ops, x: ops.abs(x) * x, [SMALL]),
    "exp, log, sqrt, log1p": (
        lambda ops, x: ops.exp(-x) + ops.log(x) * ops.sqrt(x) + ops.log1p(x),
        [np.exp(SMALL)],
    ),
    "softplus": (lambda ops, x: ops.softplus(3.0 * x), [SMALL]),
    "sum": (lambda ops, x: ops.sum(x * x, axis=(0, 1), keepdims=True) * x, [SMALL]),
    "reshape and broadcast": (
        lambda ops, x: ops.broadcast_to(ops.reshape(x * x, (3, 2)), (4, 3, 2)),
        [SMALL],
    ),
    "concat": (
        lambda ops, a, b: ops.concat([a * b, b, a], axis=1) ** 2,
        [numbers(2, 3), numbers(2, 1)],
    ),
    "matmul": (
        lambda ops, a, b: ops.matrix_transpose(a) @ (a @ b[..., None])[..., 0][..., None],
        [numbers(2, 3, 3), SMALL],
    ),
    "indexing": (lambda ops, x: x[:, None, 1:] * x[..., :1, None], [SMALL]),
}
