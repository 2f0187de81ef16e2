"""Scaling laws of measured cells: exponents with intervals, and predictions at sizes that do not run.

An E-step and the gradient of an M-step see the data through sums over rows. So N rows on k workers cost
what does not grow with rows, once on each, what each row costs, on N/k of them, and a reduction of
P(M² + M) numbers in ⌈log₂ k⌉ rounds over the network.
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

NUMBER = 8  # bytes
LEVEL = 0.95
FEWEST = 3
"""Rungs that a law is fitted to."""


class Slope(NamedTuple):
    """d log y / d log x, and its 95 % interval from the residuals of a straight line."""

    slope: float
    low: float
    high: float
    of: int  # points


def fit_slope(x: Sequence[float], y: Sequence[float]) -> Slope:
    """By least squares in logarithms, through three points or more."""
    line = linregress(np.log(x), np.log(y))
    half = float(t.ppf((1 + LEVEL) / 2, len(x) - 2)) * float(line.stderr)
    return Slope(float(line.slope), float(line.slope) - half, float(line.slope) + half, len(x))


class Exponent(NamedTuple):
    """How a step grows along a ladder."""

    step: str
    axis: str
    sizes: tuple[int, ...]
    measured: Slope  # of median seconds
    counted: Slope  # of the FLOPs of the same shapes


def exponents_of(report: ScalingReport) -> list[Exponent]:
    """One of each ladder with three rungs that have a time."""
    found = []
    for step in dict.fromkeys(cell.step for cell in report.speed.cells):
        for axis in report.speed.settings["axes"]:
            ladder = report.ladder(axis, step)
            if len(ladder) < FEWEST:
                continue
            sizes = tuple(int(getattr(shape, AXES[axis])) for shape, _ in ladder)
            seconds = [times.median for _, cell in ladder if (times := cell.times())]
            flops = [cell.work.flops for _, cell in ladder if cell.work]
            measured, counted = fit_slope(sizes, seconds), fit_slope(sizes, flops)
            found.append(Exponent(step, axis, sizes, measured, counted))
    return found


class Affine(NamedTuple):
    """What a step costs at b rows: `fixed + each · b`."""

    fixed: float
    each: float

    def at(self, b: float) -> float:
        """The cost of b rows."""
        return self.fixed + self.each * b


def fit_affine(rows: Sequence[float], values: Sequence[float]) -> Affine:
    """Least squares of relative errors; neither part is below 0."""
    y = np.asarray(values, dtype=np.float64)
    design = np.stack([np.ones(len(y)), np.asarray(rows, dtype=np.float64)], axis=1) / y[:, None]
    scale = np.linalg.norm(design, axis=0)  # a row costs 1e-9 of what is fixed
    found, _ = nnls(design / scale, np.ones(len(y)))
    return Affine(*(float(x) for x in found / scale))


class Check(NamedTuple):
    """A law fitted to the shorter ladder, at the largest batch, which it has not seen."""

    b: int
    seconds: float  # relative errors, predicted over measured less 1
    growth: float


class Law(NamedTuple):
    """A step's seconds, memory and FLOPs by rows at the centre's other sizes, all rungs fitted."""

    step: str
    seconds: Affine
    growth: Affine  # bytes beyond `before`
    flops: Affine
    before: int  # resident bytes of a worker that has imported its framework
    check: Check


def laws_of(report: ScalingReport) -> list[Law]:
    """A law of each step with four rungs of b, so that one may be held out."""
    found = []
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
        laws = [fit_affine(rows, values) for values in (seconds, growth, flops)]
        before = max(m.before for m in memory)
        found.append(Law(step, laws[0], laws[1], laws[2], before, check))
    return found


def _held_out(rows: Sequence[float], values: Sequence[float]) -> float:
    """The relative error of the last value, predicted from the others."""
    return fit_affine(rows[:-1], values[:-1]).at(rows[-1]) / values[-1] - 1.0


class Prediction(NamedTuple):
    """One step over N rows on k workers, each with its shard in memory and b rows at a time on the go."""

    workers: int
    seconds: float
    flops: float  # of all workers
    bytes_a_worker: float
    reduced_bytes: int  # that a worker sends in a round
    rounds: int


def predict(law: Law, centre: Shape, N: int, workers: int, network: float) -> Prediction:
    """Times with a network of so many bytes/s between any two workers."""
    shard = math.ceil(N / workers)
    reduced = NUMBER * centre.classes * (centre.M**2 + centre.M)
    rounds = math.ceil(math.log2(workers))
    data = NUMBER * shard * (centre.D + 1)
    return Prediction(
        workers=workers,
        seconds=law.seconds.at(shard) + rounds * reduced / network,
        flops=workers * law.flops.fixed + law.flops.each * N,
        bytes_a_worker=law.before + law.growth.at(centre.b) + data + 2 * reduced,
        reduced_bytes=reduced if workers > 1 else 0,
        rounds=rounds,
    )
