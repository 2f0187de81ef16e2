"""Random problems for checks of exact claims, on the NumPy reference backend, and frames of the checks."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem, build_model, small_problem
from svgpbench.methods import AnyMethod
from svgpbench.methods.registry import build_named

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]
Check = tuple[str, float]
"""Name of a check and its residual: a row with these two columns."""
SEEDS = range(5)
LIKELIHOODS = ("gaussian", "bernoulli-logit", "poisson", "student-t")
LOG_CONCAVE = LIKELIHOODS[:3]


def bench_of(
    method: str | AnyMethod,
    likelihood: str,
    problem: SmallProblem,
    *,
    kernel: str = "matern52",
    jitter: float = 1e-6,
    **settings: Any,
) -> Bench:
    """Build the bench of a method, or of a variant by its name in `svgpbench check`, on a problem.

    `settings` are options of the likelihood, such as `nodes`.
    """
    built = build_named(method) if isinstance(method, str) else method
    model = build_model(likelihood, kernel, jitter=jitter)
    model = dataclasses.replace(model, likelihood=dataclasses.replace(model.likelihood, **settings))
    return Bench(load_backend("numpy"), model, built, problem)


def full_method(likelihood: str) -> str:
    """Return the variant of t-VGP for a likelihood; negative sites are allowed if it is not log-concave."""
    return "t-vgp" if likelihood in LOG_CONCAVE else "t-vgp negative sites"


def frame_over(
    **axes: Iterable[Any],
) -> Callable[[Callable[..., Iterable[Row | Check]]], Callable[[], pd.DataFrame]]:
    """Turn a function of axes, such as seed, into one that returns a frame of its rows over all values."""

    def decorate(rows: Callable[..., Iterable[Row | Check]]) -> Callable[[], pd.DataFrame]:
        @functools.wraps(rows)
        def frame() -> pd.DataFrame:
            cases = (dict(zip(axes, x, strict=True)) for x in itertools.product(*axes.values()))
            return pd.DataFrame(
                {**case, **(x if isinstance(x, dict) else {"check": x[0], "residual": x[1]})}
                for case in cases
                for x in rows(**case)
            )

        return frame

    return decorate


def positive_part(x: float) -> float:
    """Return x where it is above 0, else 0, and NaN for NaN."""
    return (
        0.0 if x <= 0.0 else float(x)
    )  # not max(0.0, x), which is 0 for NaN: the claim would hold


def with_worst(frame: pd.DataFrame, part: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    """Append the row of `part` with the largest residual in each of its groups to a frame; NaN is largest."""
    worst = part.loc[
        part.assign(residual=part["residual"].fillna(np.inf)).groupby(by)["residual"].idxmax()
    ]
    return pd.concat([frame, worst], ignore_index=True)


def random_problem(seed: int, n: int = 36, M: int = 6) -> SmallProblem:
    """Return a problem with n rows, M inducing points and batches of a third of the rows."""
    return small_problem(n=n, M=M, b=n // 3, seed=seed)


def problems(n: int = 36, M: int = 6) -> Iterator[tuple[int, SmallProblem]]:
    """Yield (seed, problem) for every seed."""
    yield from ((seed, random_problem(seed, n, M)) for seed in SEEDS)
