"""Kobe 2021: the number of parameters of q, and the cost of a step."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from svgpbench.checks.cases import build_model
from svgpbench.cost import Size, count
from svgpbench.kernels import Model
from svgpbench.methods import AnyMethod, build_method
from svgpbench.papers.kobe2021.algebra.cases import Rows, bench_of, diagonal, random_problem

PRINTED = {(50, "O(M)"): 100, (50, "full"): 1325, (100, "O(M)"): 200, (100, "full"): 5150}
"""Variational parameters of M inducing points (Kobe 2021, Secs. 4.2.3 and 3.1)."""


def counted_parameters(M: int) -> dict[str, int]:
    """Count the parameters of q that are not zero after one E-step, by family."""
    problem = random_problem(0, n=M + 20, M=M)
    b = diagonal("exact", "gaussian", problem)
    weights = b.e_step(b.start, b.full, 0.1)
    b = bench_of("q-svgp", {}, "gaussian", problem)
    full = b.e_step(b.start, b.full, 0.1).q
    return {
        "O(M)": int(np.count_nonzero(weights.mu) + np.count_nonzero(weights.g)),
        "full": int(np.count_nonzero(full.mean) + np.count_nonzero(full.chol)),
    }


def parameters(M: int) -> Rows:
    """Return the relative differences between the counted and the printed numbers of parameters."""
    return [
        {"check": "numbers", "family": of, "M": M, "residual": abs(k - PRINTED[M, of]) / k}
        for of, k in counted_parameters(M).items()
    ]


def beside_print() -> pd.DataFrame:
    """Return the counted numbers of parameters for the printed settings."""
    rows: Rows = [
        {"setting": f"{of}, M={M}", "metric": "variational parameters", "value": k, "note": ""}
        for M in sorted({M for M, _ in PRINTED})
        for of, k in counted_parameters(M).items()
    ]
    return pd.DataFrame(rows)


def flops(check: str, method: str, options: dict[str, str], sizes: list[Size]) -> Rows:
    """Count the FLOPs of an E-step at each size, with the blocks that depend on θ."""
    built, model = build_method(method, {**options}), build_model("gaussian", "se")
    return [
        {"check": check, "M": size.M, "D": size.D, "b": size.rows}
        | {"flops": count(built, model, size).e_step.flops}
        for size in sizes
    ]


def twice_the_points() -> pd.DataFrame:
    """Return the relative extra FLOPs of the O(M) family at 2M points over all Gaussians at M (Sec. 5.1).

    An E-step and an M-step are counted together; 0 if there are no extra FLOPs.
    """
    full = build_method("q-svgp", {})
    diagonal = build_method("diagonal-precision", {"optimiser": "projected-b"})
    model = build_model("gaussian", "se")
    rows: Rows = []
    for M, b in itertools.product((50, 100, 400), (None, 256)):
        dear, cheap = Size(n=10_000, M=2 * M, D=1, b=b), Size(n=10_000, M=M, D=1, b=b)
        ratio = _both_steps(diagonal, model, dear) / _both_steps(full, model, cheap)
        case = {"check": "2M points against M", "M": M, "b": b or cheap.n}
        rows.append({**case, "residual": max(0.0, ratio - 1.0)})
    return pd.DataFrame(rows)


def _both_steps(method: AnyMethod, model: Model, size: Size) -> float:
    counted = count(method, model, size)
    return counted.e_step.flops + counted.m_step.flops


def numbers_and_costs() -> pd.DataFrame:
    """Return the numbers of parameters, 2M and M + M(M+1)/2, and the cost of a step as M or D grows.

    Source: Kobe 2021, Secs. 1, 3.1 and 4.2.3.
    """
    decade = [10**4, 3 * 10**4, 10**5]
    inducing = [Size(n=10**7, M=M, D=1, b=M) for M in decade]
    fixed = [Size(n=10**7, M=M, D=1, b=100) for M in decade]
    inputs = [Size(n=10**7, M=100, D=100 * D, b=100) for D in decade]
    of_inputs = [Size(n=10**7, M=M, D=10**9, b=M) for M in (100, 300, 1000)]
    rows = [*parameters(50), *parameters(100)]
    for name, method, options in (
        ("full", "q-svgp", {}),
        ("O(M)", "diagonal-precision", {"optimiser": "projected-b"}),
        ("O(M) by Adam", "diagonal-precision", {"optimiser": "adam", "start": "unit"}),
    ):
        rows += flops(f"{name}, M with b = M", method, options, inducing)
        rows += flops(f"{name}, M with b fixed", method, options, fixed)
        rows += flops(f"{name}, D", method, options, inputs)
        rows += flops(f"{name}, M where D leads", method, options, of_inputs)
    return pd.DataFrame(rows)
