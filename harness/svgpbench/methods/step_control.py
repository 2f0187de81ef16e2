"""Step control of natural gradients: halve the rate until the new state is acceptable.

A method halves until its new precision is positive definite. Guarded steps of any method halve until the
bound of the batch has not fallen (see `training/guard.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jaxtyping import Bool, Float

from svgpbench.ops import Array, Ops

State = TypeVar("State")
Evidence = TypeVar("Evidence")

MOST_HALVINGS = 40
"""A rate times 2⁻⁴⁰ is no step: if that fails too, the state failed before the step."""


def halve_while(
    ops: Ops,
    failed: Callable[[Evidence], Bool[Array, ""]],
    trial: Callable[[Array], tuple[State, Evidence]],
    rate: Float[Array, ""],
    *,
    extra_halving: bool = False,
) -> tuple[State, Float[Array, ""]]:
    """Return the first of trial(rate), trial(rate/2), … that has not failed, and the number of halvings.

    `trial` returns a state and the evidence by which `failed` judges it. Without a halving the cost is that
    of one trial. A nearly singular state, and everything computed from it, amplifies rounding errors. So with
    `extra_halving`, a rate that was halved is halved once more.
    """

    def halve(carry: tuple[Array, State, Evidence, Array]) -> tuple[Array, State, Evidence, Array]:
        rate, _, _, count = carry
        return 0.5 * rate, *trial(0.5 * rate), count + 1.0

    def unfinished(carry: tuple[Array, State, Evidence, Array]) -> Array:
        _, _, evidence, count = carry
        return failed(evidence) & (count < MOST_HALVINGS)

    carry = ops.while_loop(unfinished, halve, (rate, *trial(rate), ops.zeros(())))
    if extra_halving:
        halved = ops.where(carry[3] > 0.0, carry[3] + 1.0, carry[3])
        carry = ops.while_loop(lambda c: c[3] < halved, halve, carry)
    return carry[1], carry[3]


def halve_until_positive(
    ops: Ops,
    trial: Callable[[Array], tuple[State, Array]],
    rate: Float[Array, ""],
    *,
    extra_halving: bool = False,
) -> tuple[State, Float[Array, ""]]:
    """Return the first of trial(rate), trial(rate/2), … whose factor exists, and the number of halvings.

    `trial` returns a state and the Cholesky factor [..., M, M] of its precision, NaN if the precision is
    not positive definite. A method that damps keeps the sum of the halvings in its state, as `halvings`.
    """

    def failed(chol: Float[Array, "... M M"]) -> Bool[Array, ""]:
        # `d > 0` is false for NaN too, where `d <= 0` would let NaN pass
        d = ops.diagonal(chol)
        return ops.sum(ops.where(d > 0.0, ops.zeros(d.shape), ops.zeros(d.shape) + 1.0)) > 0.0

    return halve_while(ops, failed, trial, rate, extra_halving=extra_halving)
