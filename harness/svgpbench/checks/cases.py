"""The cases of the equivalence matrix: a method, a likelihood and a kernel on one small problem."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.config import LikelihoodConfig
from svgpbench.kernels import KERNELS, KernelParameters, kernel
from svgpbench.likelihoods import LIKELIHOODS, build_likelihood
from svgpbench.methods import Method, build_method
from svgpbench.model import Model, Theta
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "t-svgp tied-projected": ("t-svgp", {"tying": "tied-projected"}),
    "t-svgp tied": ("t-svgp", {"tying": "tied"}),
    "t-svgp untied": ("t-svgp", {"tying": "untied"}),
    "t-svgp standard": ("t-svgp", {"tying": "standard"}),
    "t-svgp whitened": ("t-svgp", {"tying": "whitened"}),
    "q-svgp natgrad": ("q-svgp", {"whiten": True}),
    "q-svgp natgrad autodiff": ("q-svgp", {"whiten": True, "gradient": "autodiff"}),
    "q-svgp natgrad unwhitened": ("q-svgp", {"whiten": False}),
    "q-svgp natgrad unwhitened autodiff": ("q-svgp", {"whiten": False, "gradient": "autodiff"}),
    "q-svgp adam": ("q-svgp", {"whiten": True, "optimiser": "adam"}),
    "q-svgp adam autodiff": (
        "q-svgp",
        {"whiten": True, "optimiser": "adam", "gradient": "autodiff"},
    ),
    "q-svgp adam unwhitened": ("q-svgp", {"whiten": False, "optimiser": "adam"}),
}
"""Every built-in method and option that changes the numbers, under the name the matrix shows."""


@dataclass(frozen=True)
class Case:
    """One row of the matrix: `method` is a key of `METHODS`."""

    method: str
    likelihood: str
    kernel: str
    dtype: str = "float64"

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.method} | {self.likelihood} | {self.kernel} | {self.dtype}"

    def build(self) -> tuple[Model, Method]:
        """The model and the method."""
        name, options = METHODS[self.method]
        return build_model(self.likelihood, self.kernel), build_method(name, options)


def build_model(likelihood: str, kernel_name: str, *, jitter: float = 1e-6) -> Model:
    """A model at the check's own likelihood parameters."""
    noise = 0.3 if likelihood == "gaussian" else None
    config = LikelihoodConfig(name=likelihood, noise_variance=noise)
    return Model(kernel(kernel_name), build_likelihood(config), jitter)


@dataclass(frozen=True)
class Problem:
    """Inputs, targets for both tasks, inducing inputs, and a second θ to move to."""

    X: Floats  # [n, D]
    y: Floats  # [n], regression
    labels: Floats  # [n], 0 or 1
    Z: Floats  # [M, D]
    batches: npt.NDArray[np.int64] = field(repr=False)  # [50, b]

    def targets(self, task: str) -> Floats:
        """The targets of a task."""
        return self.y if task == "regression" else self.labels

    def theta(self, model: Model, *, moved: bool = False) -> Theta:
        """The θ at hand, or another one near it."""
        by = 1.15 if moved else 1.0
        likelihood = tree_map(lambda x: np.float64(x) * by, model.likelihood.initial_parameters())
        return Theta(
            KernelParameters(np.array([1.7 / by]), np.array([[0.9, 1.2, 1.6]]) * by),
            likelihood,
            self.Z + (0.05 if moved else 0.0),
        )


def small_problem(n: int = 48, M: int = 8, D: int = 3, b: int = 16, seed: int = 5) -> Problem:
    """A seeded problem with K(Z, Z) well conditioned, so that differences are the backends' own."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, D))
    f = np.sin(1.3 * X[:, 0]) + 0.5 * np.cos(2.0 * X[:, 1]) * X[:, 2]
    y = f + 0.3 * rng.standard_normal(n)
    labels = (f + 0.3 * rng.standard_normal(n) > 0).astype(np.float64)
    batches = np.stack([rng.choice(n, b, replace=False) for _ in range(50)])
    return Problem(X, y, labels, X[rng.choice(n, M, replace=False)] + 0.1, batches)


def cases(*, full: bool) -> Iterator[Case]:
    """Every case, or the stated subset.

    The subset runs every method once in float64, the nine pairs of likelihood and kernel taking
    turns, and every fourth method in float32 too; the full matrix crosses everything.
    """
    pairs = list(itertools.product(LIKELIHOODS, KERNELS))
    for i, method in enumerate(METHODS):
        # a step of 4 visits all nine pairs, and both names change at every method
        for likelihood, kernel_name in pairs if full else [pairs[4 * i % len(pairs)]]:
            yield Case(method, likelihood, kernel_name)
            if full or i % 4 == 0:
                yield Case(method, likelihood, kernel_name, "float32")
