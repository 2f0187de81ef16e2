"""Random problems for checks of exact claims, on the NumPy reference backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import VARIANTS, SmallProblem, build_model, small_problem
from svgpbench.methods import build_method
from svgpbench.plugins import load_backend

Floats = npt.NDArray[np.float64]
SEEDS = range(5)
LIKELIHOODS = ("gaussian", "bernoulli-logit", "poisson", "student-t")
LOG_CONCAVE = LIKELIHOODS[:3]


def bench_of(
    method: str,
    likelihood: str,
    problem: SmallProblem,
    *,
    kernel: str = "matern52",
    jitter: float = 1e-6,
    dtype: str = "float64",
    **settings: Any,
) -> Bench:
    """Build the bench of a method variant on a problem; `method` is its name in `svgpbench check`.

    `settings` are options of the likelihood, such as `nodes`.
    """
    name, options = VARIANTS[method]
    model = build_model(likelihood, kernel, jitter=jitter)
    model = dataclasses.replace(model, likelihood=dataclasses.replace(model.likelihood, **settings))
    return Bench(load_backend("numpy", dtype=dtype), model, build_method(name, options), problem)


def full_method(likelihood: str) -> str:
    """Return the variant of t-VGP for a likelihood; negative sites are allowed if it is not log-concave."""
    return "t-vgp" if likelihood in LOG_CONCAVE else "t-vgp negative sites"


def problems(n: int = 36, M: int = 6) -> Iterator[tuple[int, SmallProblem]]:
    """Yield (seed, problem) with n rows, M inducing points and batches of a third of the rows."""
    for seed in SEEDS:
        yield seed, small_problem(n=n, M=M, b=n // 3, seed=seed)
