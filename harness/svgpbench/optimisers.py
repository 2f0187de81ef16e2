"""Adam over trees of arrays (Kingma and Ba 2015, Algorithm 1), stated as ascent."""

from __future__ import annotations

from typing import NamedTuple

from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """First and second moments, and the powers β₁ᵗ, β₂ᵗ that correct their bias."""

    mean: Tree
    square: Tree
    power1: Array  # []
    power2: Array  # []


def adam_start(ops: Ops, parameters: Tree) -> AdamState:
    """The state before the first step."""
    zeros = tree_map(lambda x: 0.0 * x, parameters)
    one = ops.zeros(()) + 1.0
    return AdamState(zeros, zeros, one, one)


def adam_ascent(
    ops: Ops, state: AdamState, parameters: Tree, gradient: Tree, rate: Array
) -> tuple[Tree, AdamState]:
    """One step up the gradient."""
    mean = tree_map(lambda m, g: BETA1 * m + (1.0 - BETA1) * g, state.mean, gradient)
    square = tree_map(lambda s, g: BETA2 * s + (1.0 - BETA2) * g * g, state.square, gradient)
    power1, power2 = state.power1 * BETA1, state.power2 * BETA2

    def move(x: Array, m: Array, s: Array) -> Array:
        return x + rate * (m / (1.0 - power1)) / (ops.sqrt(s / (1.0 - power2)) + EPSILON)

    return tree_map(move, parameters, mean, square), AdamState(mean, square, power1, power2)
