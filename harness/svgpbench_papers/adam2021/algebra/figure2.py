"""Adam et al. 2021, Figure 2; claims 13 and 14. θ is the variance, as in the notebook, or its root."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from svgpbench_papers.adam2021.algebra.placed import DUALS, METHODS, iterations_until
from svgpbench_papers.adam2021.algebra.toy import SEED, e_step
from svgpbench_papers.algebra.random_problems import Floats, Row

GRID: Floats = np.geomspace(0.05, 3.0, 25)
"""Variances on both axes. They include the start and end below 5, where the bound starts to rise again."""
INNER = (0.1, 1.0)
"""Part of the grid around the fixed point."""
NEAR = 1.5
"""Slopes of θ* are taken within this factor of the fixed point."""
START, ITERATIONS = 2.5, 8
CLOSE = 0.05
"""Region of practical equivalence of log θ."""
OTHER_SEEDS = range(5)
"""Seeds of other draws of inputs and noise, which the paper does not print."""
MAPS_TO, PATH, FIXED = "θ*", "EM from θ = 2.5", "where EM stands still"


@cache
def optima() -> pd.DataFrame:
    """Return one row per method, θ_old and θ with the objective; the curve θ*(θ_old) has rows of its own."""
    rows: list[Row] = []
    for method, old in itertools.product(METHODS, map(float, GRID)):
        step = e_step(method, old)
        case = {"method": method, "theta_old": old}
        rows += [{**case, "theta": theta, "objective": step(theta)} for theta in map(float, GRID)]
        rows.append({**case, "theta": step.best, "curve": MAPS_TO})
    return pd.DataFrame(rows)


@cache
def em_path(method: str, start: float = START, seed: int = SEED) -> Floats:
    """Return the variances after 0, 1, …, 8 EM iterations; each is an E-step and an M-step to convergence."""
    path = [start]
    for _ in range(ITERATIONS):
        path.append(e_step(method, path[-1], seed=seed).best)
    return np.array(path)


@cache
def fixed_point(seed: int = SEED) -> float:
    """Return the fixed point of EM, the same for all methods, by 16 iterations of untied t-SVGP."""
    return float(em_path("t-SVGP untied", float(em_path("t-SVGP untied", 1.0, seed)[-1]), seed)[-1])


def iterates() -> pd.DataFrame:
    """Return the objectives, EM from the start as stairs between θ* and the diagonal, and the fixed point."""
    rows: list[Row] = []
    optimum = fixed_point()
    for method in METHODS:
        stairs = np.repeat(em_path(method), 2)  # from each θ to θ*, and across to the diagonal
        rows += [
            {"method": method, "theta_old": old, "theta": new, "curve": PATH}
            for old, new in itertools.pairwise(stairs)
        ]
        rows.append({"method": method, "theta_old": optimum, "theta": optimum, "curve": FIXED})
    return pd.concat([optima(), pd.DataFrame(rows)], ignore_index=True)


def flatness() -> pd.DataFrame:
    """Compare slopes and ranges of θ*(θ_old) between methods (claim 13)."""
    curves = optima()
    maps = curves[curves["curve"] == MAPS_TO]
    steepness = {str(method): _steepness(curve) for method, curve in maps.groupby("method")}
    pairs = [(dual, "whitened q-SVGP") for dual in DUALS] + [("whitened q-SVGP", "q-SVGP")]
    rows: list[Row] = [
        {
            "check": f"{flatter}, {what}", "against": steeper,
            "value": steepness[flatter][what], "against_value": steepness[steeper][what],
            "residual": np.maximum(0.0, steepness[flatter][what] - steepness[steeper][what]),
        }
        for flatter, steeper in pairs
        for what in steepness[flatter]
    ]  # fmt: skip
    rows += [
        {"check": f"slope of {method}", "residual": values["slope"]}
        for method, values in steepness.items()
    ]
    return pd.DataFrame(rows)


def _steepness(curve: pd.DataFrame) -> dict[str, float]:
    """Return the largest slope near the fixed point, and the range of θ* on the grid and its inner part."""
    old, new = curve["theta_old"].to_numpy(float), curve["theta"].to_numpy(float)
    middle = np.sqrt(old[1:] * old[:-1])
    near = np.abs(np.log(middle / fixed_point())) < np.log(NEAR)
    inner = (old >= INNER[0]) & (old <= INNER[1])
    return {
        "slope": float(np.abs(np.diff(new) / np.diff(old))[near].max()),
        "range": float(np.ptp(new)),
        "inner range": float(np.ptp(new[inner])),
    }


def em_counts() -> pd.DataFrame:
    """Count EM iterations from θ = 2.5 until log θ stays within 0.05 of the fixed point (claim 14)."""
    rows = [*_counts("variance"), *_counts("standard deviation", power=0.5)]
    rows += [row for seed in OTHER_SEEDS for row in _counts("other draws", seed)]
    return pd.DataFrame(rows)


def _counts(condition: str, seed: int = SEED, power: float = 1.0) -> Iterator[Row]:
    """Yield the counts and the fixed point if θ is the variance to a power."""
    optimum = fixed_point(seed) ** power
    case = {"condition": condition, "seed": seed}
    for method in METHODS:
        # a start of 2.5 is a standard deviation at power ½: the variance starts at 6.25
        path = em_path(method, START ** (1.0 / power), seed) ** power
        count = iterations_until(CLOSE - np.abs(np.log(path / optimum)))
        off = count - 2.0 if method in DUALS else 6.0 - count
        row = {**case, "of": method, "value": count}
        yield {**row, "check": f"{method}, {condition}", "residual": np.maximum(0.0, off)}
        yield {**row, "check": f"iterations of {method}, {condition}", "residual": count}
    yield {
        **case, "check": f"optimum, {condition}", "of": "optimum", "value": optimum,
        "residual": np.max([0.0, 0.8 - optimum, optimum - 1.0]),
    }  # fmt: skip


def beside_print() -> pd.DataFrame:
    """Return our values for the printed numbers, with θ the variance; NaN if 8 iterations are too few."""
    counts = em_counts()
    variance = counts[counts["check"] == counts["of"] + ", variance"]
    rows: list[Row] = []
    for subject, value in zip(variance["of"], variance["value"], strict=True):
        row = {"setting": subject, "metric": "θ", "value": value, "note": ""}
        if subject != "optimum":
            method, _, tying = subject.partition(" ") if subject in DUALS else (subject, "", "")
            row |= {"setting": f"{method}, from θ=2.5", "metric": "EM iterations", "note": tying}
            if value > ITERATIONS:
                row |= {"value": np.nan, "note": f"{tying} more than {ITERATIONS}".strip()}
        rows.append(row)
    return pd.DataFrame(rows)
