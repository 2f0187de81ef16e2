"""The random problems that exact claims are tried on, on the NumPy reference backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import VARIANTS, Problem, build_model, small_problem
from svgpbench.methods import build_method
from svgpbench.plugins import load_backend

Floats = npt.NDArray[np.float64]
SEEDS = range(5)
LIKELIHOODS = ("gaussian", "bernoulli-logit", "poisson", "student-t")
LOG_CONCAVE = LIKELIHOODS[:3]


def bench_of(
    method: str,
    likelihood: str,
    problem: Problem,
    *,
    kernel: str = "matern52",
    jitter: float = 1e-6,
    dtype: str = "float64",
    **settings: Any,
) -> Bench:
    """A variant of a method, by the name that `svgpbench check` gives it, on a problem.

    `settings` are the likelihood's, such as `nodes`.
    """
    name, options = VARIANTS[method]
    model = build_model(likelihood, kernel, jitter=jitter)
    model = dataclasses.replace(model, likelihood=dataclasses.replace(model.likelihood, **settings))
    return Bench(load_backend("numpy", dtype=dtype), model, build_method(name, options), problem)


def full_method(likelihood: str) -> str:
    """T-VGP, with negative sites where a likelihood may ask for them."""
    return "t-vgp" if likelihood in LOG_CONCAVE else "t-vgp negative sites"


def problems(n: int = 36, M: int = 6) -> Iterator[tuple[int, Problem]]:
    """A problem a seed, n rows, M inducing points, a third of the rows a batch."""
    for seed in SEEDS:
        yield seed, small_problem(n=n, M=M, b=n // 3, seed=seed)
