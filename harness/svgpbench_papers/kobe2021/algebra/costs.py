"""Kobe 2021: the number of parameters of q, and the cost of a step."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from svgpbench.checks.cases import build_model
from svgpbench.cost import Size, count
from svgpbench.methods.registry import build_named
from svgpbench_papers.algebra.random_problems import bench_of, positive_part
from svgpbench_papers.kobe2021.algebra.cases import FULL, Rows, diagonal_bench, random_problem

PRINTED = {(50, "O(M)"): 100, (50, "full"): 1325, (100, "O(M)"): 200, (100, "full"): 5150}
"""Variational parameters of M inducing points (Kobe 2021, Secs. 4.2.3 and 3.1)."""
DIAGONAL = "diagonal-precision projected-b"
METHODS = {"full": FULL, "O(M)": DIAGONAL, "O(M) by Adam": "diagonal-precision adam"}
# operations are counted on shapes: sizes that no memory holds cost nothing
DECADE = (10**4, 3 * 10**4, 10**5)
SWEEPS = {
    "M with b = M": [Size(n=10**7, M=M, D=1, b=M) for M in DECADE],
    "M with b fixed": [Size(n=10**7, M=M, D=1, b=100) for M in DECADE],
    "D": [Size(n=10**7, M=100, D=100 * D, b=100) for D in DECADE],
    "M where D leads": [Size(n=10**7, M=M, D=10**9, b=M) for M in (100, 300, 1000)],
}
"""Sizes of which one grows over a decade."""


def counted_parameters(M: int) -> dict[str, int]:
    """Count the parameters of q that are not zero after one E-step, by family."""
    problem = random_problem(0, n=M + 20, M=M)
    b = diagonal_bench("exact", "gaussian", problem)
    weights = b.e_step(b.start, b.full, 0.1)
    b = bench_of(FULL, "gaussian", problem)
    full = b.e_step(b.start, b.full, 0.1).q
    return {
        "O(M)": int(np.count_nonzero(weights.mu) + np.count_nonzero(weights.g)),
        "full": int(np.count_nonzero(full.mean) + np.count_nonzero(full.chol)),
    }


def beside_print() -> pd.DataFrame:
    """Return the counted numbers of parameters for the printed settings."""
    rows: Rows = [
        {"setting": f"{name}, M={M}", "metric": "variational parameters", "value": k, "note": ""}
        for M in (50, 100)
        for name, k in counted_parameters(M).items()
    ]
    return pd.DataFrame(rows)


def twice_the_points() -> pd.DataFrame:
    """Return the O(M) family's relative extra FLOPs at 2M points over all Gaussians at M (Sec. 5.1)."""
    rows: Rows = []
    for M, b in itertools.product((50, 100, 400), (None, 256)):
        larger, size = Size(n=10_000, M=2 * M, D=1, b=b), Size(n=10_000, M=M, D=1, b=b)
        ratio = _both_steps(DIAGONAL, larger) / _both_steps(FULL, size)
        case = {"check": "2M points against M", "M": M, "b": size.rows}
        rows.append({**case, "residual": positive_part(ratio - 1.0)})
    return pd.DataFrame(rows)


def _both_steps(method: str, size: Size) -> float:
    cost = count(build_named(method), build_model("gaussian", "se"), size)
    return cost.e_step.flops + cost.m_step.flops


def numbers_and_costs() -> pd.DataFrame:
    """Compare numbers of parameters with print, and count the FLOPs of an E-step as M or D grows."""
    rows: Rows = [
        {"check": "numbers", "family": name, "M": M, "residual": abs(k - PRINTED[M, name]) / k}
        for M in (50, 100)
        for name, k in counted_parameters(M).items()
    ]
    for (name, method), (sweep, sizes) in itertools.product(METHODS.items(), SWEEPS.items()):
        for size in sizes:
            cost = count(build_named(method), build_model("gaussian", "se"), size)
            case = {"check": f"{name}, {sweep}", "M": size.M, "D": size.D, "b": size.rows}
            rows.append({**case, "flops": cost.e_step.flops})
    return pd.DataFrame(rows)
