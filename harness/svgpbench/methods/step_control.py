"""Step control of natural gradients: halve the rate until the new precision is positive definite."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jaxtyping import Bool, Float

from svgpbench.ops import Array, Ops

State = TypeVar("State")

MOST_HALVINGS = 40
"""A rate times 2⁻⁴⁰ is no step: if that fails too, the state failed before the step."""


def halve_until_positive(
    ops: Ops,
    trial: Callable[[Array], tuple[State, Array]],
    rate: Float[Array, ""],
    *,
    extra_halving: bool = False,
) -> tuple[State, Float[Array, ""]]:
    """Return the first of trial(rate), trial(rate/2), … whose factor exists, and the number of halvings.

    `trial` returns a state and the Cholesky factor [..., M, M] of its precision, NaN if the precision is
    not positive definite. Without a halving the cost is that of one trial. A method that damps keeps the
    sum of the halvings in its state, as `halvings`. A nearly singular state, and everything computed
    from it, amplifies rounding errors. So with `extra_halving`, a rate that was halved is halved once more.
    """
    zero = ops.zeros(())

    def failed(chol: Float[Array, "... M M"]) -> Bool[Array, ""]:
        d = ops.diagonal(chol)
        return ops.sum(ops.where(d > 0.0, ops.zeros(d.shape), ops.zeros(d.shape) + 1.0)) > 0.0

    def halve(carry: tuple[Array, State, Array, Array]) -> tuple[Array, State, Array, Array]:
        rate, _, _, count = carry
        state, chol = trial(0.5 * rate)
        return 0.5 * rate, state, chol, count + 1.0

    def unfinished(carry: tuple[Array, State, Array, Array]) -> Array:
        _, _, chol, count = carry
        return failed(chol) & (count < MOST_HALVINGS)

    carry = ops.while_loop(unfinished, halve, (rate, *trial(rate), zero))
    if extra_halving:
        halved = ops.where(carry[3] > 0.0, carry[3] + 1.0, carry[3])
        carry = ops.while_loop(lambda c: c[3] < halved, halve, carry)
    return carry[1], carry[3]
