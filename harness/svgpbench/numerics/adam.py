"""Adam over trees of arrays (Kingma and Ba 2015, Algorithm 1), as ascent."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from jaxtyping import Float

from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

T = TypeVar("T")  # a tree

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """First and second moments, and the powers β₁ᵗ, β₂ᵗ that correct their bias.

    A power is one scalar, or a tree like the moments if entries are of different ages.
    """

    mean: Tree
    square: Tree
    power1: Tree
    power2: Tree


def adam_start(ops: Ops, parameters: Tree) -> AdamState:
    """Return the state before the first step."""
    # distinct arrays: torch.compile would compile one program for shared arrays, and another after a step
    first, second = (tree_map(lambda x: 0.0 * x, parameters) for _ in range(2))
    power1, power2 = (ops.zeros(()) + 1.0 for _ in range(2))
    return AdamState(first, second, power1, power2)


def for_each(parameters: Tree, power: Tree) -> Tree:
    """Return a power for every array of `parameters`."""
    if isinstance(parameters, tuple) and not isinstance(power, tuple):
        return tree_map(lambda _: power, parameters)
    return power


def adam_ascent(
    ops: Ops, state: AdamState, parameters: T, gradient: T, rate: Float[Array, ""]
) -> tuple[T, AdamState]:
    """Take one Adam step up the gradient; return the new parameters and state."""
    mean = tree_map(lambda m, g: BETA1 * m + (1.0 - BETA1) * g, state.mean, gradient)
    square = tree_map(lambda s, g: BETA2 * s + (1.0 - BETA2) * g * g, state.square, gradient)
    power1 = tree_map(lambda p: BETA1 * p, state.power1)
    power2 = tree_map(lambda p: BETA2 * p, state.power2)

    def move(x: Array, m: Array, s: Array, p1: Array, p2: Array) -> Array:
        # ε is added outside the root and after both corrections, as in Algorithm 1; the ε̂ of their
        # Sec. 2 gives other steps at the same value
        return x + rate * (m / (1.0 - p1)) / (ops.sqrt(s / (1.0 - p2)) + EPSILON)

    powers = (for_each(parameters, power1), for_each(parameters, power2))
    ascended: T = tree_map(move, parameters, mean, square, *powers)
    return ascended, AdamState(mean, square, power1, power2)
