"""The least time that a step's arithmetic takes on the machine, and where the rest of its time goes.

FLOPs are those of the code that is timed, counted on shapes by the counting backend: every product in
full, 2mnk, a symmetric result too, where a routine that makes half of it would need half; Cholesky n³/3,
triangular solve n²k; K(Z, Z), its factor and the blocks of the batch are inside unless the step holds
them. Elementwise work (kernel functions of distances, quadrature, Monte Carlo, Adam) has no rate of its
own: it is counted and left out of the least time. Bytes are those that must move, whatever is fused: each
argument read once, each result written once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from svgpbench.benchmarks.timing.cases import STEPS, build_case
from svgpbench.benchmarks.timing.problems import Problem
from svgpbench.benchmarks.timing.rates import Rates, best_of
from svgpbench.config import Positive
from svgpbench.cost import CountingBackend, Tally
from svgpbench.ops import Tree
from svgpbench.plugins import new_backend
from svgpbench.tree import leaves

Amount = Annotated[FiniteFloat, Field(ge=0)]


class Work(NamedTuple):
    """FLOPs by kind and bytes of one step."""

    products: Amount
    choleskys: Amount
    solves: Amount
    elementwise: Amount
    least_bytes: Positive  # arguments and results
    unfused_bytes: Amount  # every operation reads its arrays and writes its result

    @property
    def flops(self) -> float:
        """Of all kinds."""
        return self.products + self.choleskys + self.solves + self.elementwise

    @property
    def intensity(self) -> float:
        """FLOPs a byte that must move."""
        return self.flops / self.least_bytes


def work_of(problem: Problem, method: str, step: str) -> Work:
    """The work of a timed step, counted without running it; raises as `build_case`."""
    ops: CountingBackend = new_backend("counting")  # type: ignore[assignment]
    case = build_case(ops, problem, method, step)
    result, counted = ops.count(lambda: case.step(*case.arguments))
    tally = Tally(*counted)
    whole = (
        *(tally.product_flops, tally.cholesky_flops, tally.solve_flops, tally.elementwise_flops),
        *(_bytes(case.arguments) + _bytes(result), tally.bytes),
    )
    return Work(*(amount / STEPS[step] for amount in whole))


def _bytes(tree: Tree) -> int:
    return sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in leaves(tree))


def least_seconds(work: Work, rates: Rates) -> float:
    """Arithmetic at its rates, or moving what must move: whichever is longer."""
    return max(_arithmetic(work, rates), work.least_bytes / max(rates.cached, rates.memory))


def _arithmetic(work: Work, rates: Rates) -> float:
    return (
        work.products / rates.products
        + work.choleskys / rates.choleskys
        + work.solves / rates.solves
    )


@dataclass(frozen=True)
class Spent:
    """Where the seconds of a step go; they add up to what was measured."""

    floor: float  # the least time at the best rates seen on the machine
    own_rates: float  # more, at the rates that the backend reaches itself
    dispatch: float  # what the step takes where every array is tiny
    rest: float  # memory, elementwise work, small operations; below 0 where work hides dispatch

    @property
    def seconds(self) -> float:
        """What was measured."""
        return self.floor + self.own_rates + self.dispatch + self.rest


def spend(
    seconds: float, work: Work, rates: Mapping[str, Rates], source: str, dispatch: float | None
) -> Spent:
    """The shares of a step's `seconds` on the backend `source`; `rates` are of all that measured.

    Dispatch that was not measured is in the rest.
    """
    machine = best_of(list(rates.values()))
    own = machine._replace(
        **{kind: getattr(rates[source], kind) for kind in ("products", "choleskys", "solves")}
    )
    floor = least_seconds(work, machine)
    more = least_seconds(work, own) - floor
    start = dispatch or 0.0
    return Spent(floor, more, start, seconds - floor - more - start)
