"""Scaling laws of measured cells: exponents with intervals, and predictions for sizes that were not run.

An E-step and the gradient of an M-step depend on the data only through sums over rows. The cost of N rows
on k workers therefore has three parts: a fixed cost on each worker, the cost of N/k rows on each worker,
and a reduction of P(M² + M) numbers in ⌈log₂ k⌉ rounds over the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.stats import linregress, t

from svgpbench.benchmarks.scaling.measure import AXES, ScalingReport
from svgpbench.benchmarks.timing.problems import Shape

NUMBER = 8  # bytes per float64
LEVEL = 0.95
FEWEST = 3
"""Least number of rungs of a ladder for a fit."""


class FittedSlope(NamedTuple):
    """Slope d log y / d log x, with its 95 % interval from the residuals of a straight-line fit."""

    slope: float
    low: float
    high: float
    points: int


def fit_slope(x: Sequence[float], y: Sequence[float]) -> FittedSlope:
    """Fit a slope by least squares in logarithms. At least three points are needed."""
    line = linregress(np.log(x), np.log(y))
    half = float(t.ppf((1 + LEVEL) / 2, len(x) - 2)) * float(line.stderr)
    return FittedSlope(
        float(line.slope), float(line.slope) - half, float(line.slope) + half, len(x)
    )


class FittedExponent(NamedTuple):
    """Exponents of a step along one ladder, measured and counted."""

    step: str
    axis: str
    sizes: tuple[int, ...]
    measured: FittedSlope  # of median seconds
    counted: FittedSlope  # of the FLOPs counted for the same shapes


def exponents_of(report: ScalingReport) -> list[FittedExponent]:
    """Return one exponent per ladder that has at least three rungs with a time."""
    exponents = []
    for step in dict.fromkeys(cell.step for cell in report.speed.cells):
        for axis in report.speed.settings["axes"]:
            ladder = report.ladder(axis, step)
            if len(ladder) < FEWEST:
                continue
            sizes = tuple(int(getattr(shape, AXES[axis])) for shape, _ in ladder)
            seconds = [times.median for _, cell in ladder if (times := cell.times())]
            flops = [cell.work.flops for _, cell in ladder if cell.work]
            measured, counted = fit_slope(sizes, seconds), fit_slope(sizes, flops)
            exponents.append(FittedExponent(step, axis, sizes, measured, counted))
    return exponents


class Affine(NamedTuple):
    """Cost of a step as a function of b rows: `fixed + per_row · b`."""

    fixed: float
    per_row: float

    def cost(self, b: float) -> float:
        """Return the cost of b rows."""
        return self.fixed + self.per_row * b


def fit_affine(rows: Sequence[float], values: Sequence[float]) -> Affine:
    """Fit both parts of the cost by least squares of relative errors, neither below 0."""
    y = np.asarray(values, dtype=np.float64)
    design = np.stack([np.ones(len(y)), np.asarray(rows, dtype=np.float64)], axis=1) / y[:, None]
    scale = np.linalg.norm(design, axis=0)  # equal scales, as a row may cost 1e-9 of the fixed part
    coefficients, _ = nnls(design / scale, np.ones(len(y)))
    return Affine(*(float(x) for x in coefficients / scale))


class Check(NamedTuple):
    """Errors of a law at the largest batch, when it is fitted to the smaller batches only."""

    b: int
    seconds: float  # relative errors: predicted / measured − 1
    growth: float


class Law(NamedTuple):
    """Costs of a step as functions of rows, fitted to all rungs, with the centre's other sizes."""

    step: str
    seconds: Affine
    growth: Affine  # bytes beyond `before`
    flops: Affine
    before: int  # resident bytes of a worker that has imported its framework
    check: Check


def laws_of(report: ScalingReport) -> list[Law]:
    """Return one law per step with at least four rungs of b; the check holds one out."""
    laws = []
    for step in dict.fromkeys(cell.step for cell in report.speed.cells):
        ladder = report.ladder("b", step)
        if len(ladder) <= FEWEST:
            continue
        rows = [shape.b for shape, _ in ladder]
        seconds = [times.median for _, cell in ladder if (times := cell.times())]
        memory = [report.memory[cell.problem][step] for _, cell in ladder]
        growth = [float(max(m.growth, 1)) for m in memory]
        flops = [cell.work.flops for _, cell in ladder if cell.work]
        check = Check(rows[-1], _held_out(rows, seconds), _held_out(rows, growth))
        costs = [fit_affine(rows, values) for values in (seconds, growth, flops)]
        before = max(m.before for m in memory)
        laws.append(Law(step, costs[0], costs[1], costs[2], before, check))
    return laws


def _held_out(rows: Sequence[float], values: Sequence[float]) -> float:
    """Return the relative error at the last value, predicted from the others."""
    return fit_affine(rows[:-1], values[:-1]).cost(rows[-1]) / values[-1] - 1.0


class PredictedCost(NamedTuple):
    """Cost of one step over N rows on k workers.

    Each worker holds its shard in memory and processes b rows at a time.
    """

    workers: int
    seconds: float
    flops: float  # of all workers
    bytes_a_worker: float
    reduced_bytes: int  # sent by a worker per round
    rounds: int


def predict(law: Law, centre: Shape, N: int, workers: int, network: float) -> PredictedCost:
    """Predict a step over N rows, with `network` bytes/s between any two workers."""
    shard = math.ceil(N / workers)
    reduced = NUMBER * centre.classes * (centre.M**2 + centre.M)
    rounds = math.ceil(math.log2(workers))
    data = NUMBER * shard * (centre.D + 1)
    return PredictedCost(
        workers=workers,
        seconds=law.seconds.cost(shard) + rounds * reduced / network,
        flops=workers * law.flops.fixed + law.flops.per_row * N,
        bytes_a_worker=law.before + law.growth.cost(centre.b) + data + 2 * reduced,
        reduced_bytes=reduced if workers > 1 else 0,
        rounds=rounds,
    )
