"""Floor of a step: the least time of its arithmetic on the machine, and shares of the remaining time.

FLOPs are those of the timed code, counted from shapes by the counting backend. A product counts 2mnk in
full, even if its result is symmetric and a routine could compute only half. A Cholesky factor counts n³/3,
a triangular solve n²k. K(Z, Z), its factor and the blocks of the batch count unless the step holds them.
Elementwise work (kernel functions of distances, quadrature, Monte Carlo, Adam) has no rate of its own: it is
counted but left out of the least time. Bytes are those that must move, whatever is fused: each argument is
read once and each result written once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from svgpbench.backends import new_backend
from svgpbench.benchmarks.timing.cases import STEPS, build_case
from svgpbench.benchmarks.timing.problems import TimedProblem
from svgpbench.benchmarks.timing.rates import Rates, best_of
from svgpbench.config import Positive
from svgpbench.cost import CountingBackend, Tally
from svgpbench.ops import Tree
from svgpbench.tree import leaves

Amount = Annotated[FiniteFloat, Field(ge=0)]


class StepWork(NamedTuple):
    """FLOPs by kind, and bytes, of one step."""

    products: Amount
    choleskys: Amount
    solves: Amount
    elementwise: Amount
    least_bytes: Positive  # arguments and results
    unfused_bytes: Amount  # if every operation reads its arrays and writes its result

    @property
    def flops(self) -> float:
        """FLOPs of all kinds."""
        return self.products + self.choleskys + self.solves + self.elementwise

    @property
    def intensity(self) -> float:
        """FLOPs per byte that must move."""
        return self.flops / self.least_bytes


def work_of(problem: TimedProblem, method: str, step: str, dtype: str = "float64") -> StepWork:
    """Count the work of a timed step without running it. Raises as `build_case` does."""
    ops: CountingBackend = new_backend("counting", dtype=dtype)  # type: ignore[assignment]
    case = build_case(ops, problem, method, step)
    result, counted = ops.count(lambda: case.step(*case.arguments))
    tally = Tally(*counted)
    amounts = (
        *(tally.product_flops, tally.cholesky_flops, tally.solve_flops, tally.elementwise_flops),
        *(_bytes(case.arguments) + _bytes(result), tally.bytes),
    )
    return StepWork(*(amount / STEPS[step] for amount in amounts))


def _bytes(tree: Tree) -> int:
    return sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in leaves(tree))


def least_seconds(work: StepWork, rates: Rates) -> float:
    """Return the time of the arithmetic or of moving the least bytes, whichever is longer."""
    arithmetic = (
        work.products / rates.products
        + work.choleskys / rates.choleskys
        + work.solves / rates.solves
    )
    # arithmetic and memory overlap at best: the longer of both is the least time
    # the higher bandwidth: a step whose arrays lie in cache must not be below its floor
    return max(arithmetic, work.least_bytes / max(rates.cached, rates.memory))


@dataclass(frozen=True)
class CostSplit:
    """Shares of the seconds of a step, which add up to the measured time."""

    floor: float  # the least time at the best rates seen on the machine
    own_rates: float  # additional time at the backend's own rates
    dispatch: float  # time of the step if every array is tiny
    rest: float  # memory, elementwise work, small operations; below 0 if work hides dispatch

    @property
    def seconds(self) -> float:
        """Measured seconds."""
        return self.floor + self.own_rates + self.dispatch + self.rest


def spend(
    seconds: float, work: StepWork, rates: Mapping[str, Rates], source: str, dispatch: float | None
) -> CostSplit:
    """Split the `seconds` of a step on the backend `source` into shares.

    `rates` has those of every source. Dispatch that was not measured counts as rest.
    """
    # the floor is that of the machine, not of a library: the best rate of each kind, whoever reached it
    machine = best_of(list(rates.values()))
    # bandwidths stay the machine's: slower copies of a backend count as rest
    backend = machine._replace(
        **{kind: getattr(rates[source], kind) for kind in ("products", "choleskys", "solves")}
    )
    floor = least_seconds(work, machine)
    own_rates = least_seconds(work, backend) - floor
    start = dispatch or 0.0
    return CostSplit(floor, own_rates, start, seconds - floor - own_rates - start)
