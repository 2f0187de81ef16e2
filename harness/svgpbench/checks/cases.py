"""The cases of the equivalence matrix: a method, a likelihood and a kernel on one small problem."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.config import LikelihoodConfig
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.compound import COMPOUNDS, Compound
from svgpbench.kernels.kernels import Kernel, KernelParameters, kernel, kernels
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.methods import AnyMethod, build_method
from svgpbench.methods.capabilities import refusals
from svgpbench.ops import Ops
from svgpbench.plugins import METHODS, whole
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]


def _methods() -> dict[str, tuple[str, dict[str, Any]]]:
    """Every variant of every method that is installed, third parties' too."""
    return {
        f"{name} {variant}".strip(): (name, dict(options))
        for name, method in whole(METHODS).items()
        for variant, options in method.facts.variants.items()
    }


VARIANTS = _methods()
"""Every method with every option that changes its numbers, under the name the matrix shows."""


def residual_variance_of(title: str) -> str:
    """Which residual variance a variant's bound has, `prior` where it says nothing of it."""
    return str(VARIANTS[title][1].get("residual_variance", "prior"))


USUAL = [title for title in VARIANTS if residual_variance_of(title) == "prior"]
"""The variants whose bound takes q(f|u) = p(f|u)."""


@dataclass(frozen=True)
class Case:
    """One row of the matrix: `method` is a key of `VARIANTS`."""

    method: str
    likelihood: str
    kernel: str
    dtype: str = "float64"
    trajectories: str = "compiled"  # or "eager", or "none": single steps only

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.method} | {self.likelihood} | {self.kernel} | {self.dtype}"

    def build(self) -> tuple[Model, AnyMethod]:
        """The model and the method."""
        name, options = VARIANTS[self.method]
        return build_model(self.likelihood, self.kernel), build_method(name, options)


SETTINGS: dict[str, dict[str, Any]] = {
    "gaussian": {"noise_variance": 0.3},
    "softmax": {"classes": 3, "samples": 12},
    "robust-max": {"classes": 3, "epsilon": 0.2, "nodes": 20},
    "student-t": {"scale": 0.4},
}
"""What the check's likelihoods have instead of their defaults.

Of the two that are not log-concave, Student-t has data with β < 0, and robust-max so many of them that
steps are halved. With robust-max's own ε of 1e-3 a step is halved to the edge of what is positive
definite again and again; variances then grow so large that backends part for no fault of theirs.
"""


def build_model(likelihood: str, kernel_name: str, *, jitter: float = 1e-6) -> Model:
    """A model at the check's own likelihood parameters."""
    built = build_likelihood(LikelihoodConfig(name=likelihood, **SETTINGS.get(likelihood, {})))
    if isinstance(built, MulticlassLikelihood) and not built.classes:
        built = replace(built, classes=3)  # as many as the problem has
    return Model(_build_kernel(kernel_name), built, jitter)


COMPOUND_KERNELS = {"sum": ("se", "matern32"), "product": ("se", "matern52")}
"""Of what the check's compound kernels are made."""


def _build_kernel(name: str) -> Kernel:
    if name not in COMPOUND_KERNELS:
        return kernel(name)
    return COMPOUNDS[name](tuple(kernel(part) for part in COMPOUND_KERNELS[name]))


def _parameters(of: Kernel, by: float) -> Any:
    """Hyperparameters of the check, each part of a compound with others."""
    if isinstance(of, Compound):
        return tuple(_parameters(part, by * (1.0 + 0.3 * i)) for i, part in enumerate(of.parts))
    return KernelParameters(np.array([1.7 / by]), np.array([[0.9, 1.2, 1.6]]) * by)


@dataclass(frozen=True)
class Problem:
    """Inputs, targets for both tasks, inducing inputs, and a second θ to move to."""

    X: Floats  # [n, D]
    y: Floats  # [n], regression
    labels: Floats  # [n], 0 or 1
    classes: Floats  # [n], 0, 1 or 2
    counts: Floats  # [n]
    Z: Floats  # [M, D]
    gamma: Floats  # [M_γ, D], away from Z
    batches: npt.NDArray[np.int64] = field(repr=False)  # [50, b]

    def targets(self, support: str) -> Floats:
        """Targets of the kind that a likelihood takes."""
        of = {"real": self.y, "binary": self.labels, "classes": self.classes, "counts": self.counts}
        return of[support]

    def batches_of(self, method: AnyMethod) -> npt.NDArray[np.int64]:
        """Rows of every batch [50, b]; all rows [50, n] for a method that takes no part of them."""
        if method.collapsed:
            return np.tile(np.arange(len(self.X)), (len(self.batches), 1))
        return self.batches

    def inducing(self, basis: str) -> Any:
        """The bases of the kind that a method has."""
        if basis == "data":
            return self.X
        return Decoupled(self.gamma, self.Z) if basis == "decoupled" else self.Z

    def noise(self, model: Model, rows: npt.NDArray[np.int64]) -> Floats:
        """Noise [S, P] of a likelihood that samples, for a batch or for stacked batches [k, b]."""
        shape = (*rows.shape[:-1], model.likelihood.samples, model.latents)
        return np.random.default_rng(int(rows.sum())).standard_normal(shape)

    def draws(
        self, ops: Ops, model: Model, method: AnyMethod, rows: npt.NDArray[np.int64]
    ) -> dict[str, Any]:
        """Noise and sampled basis points for a batch, or for stacked batches `rows` [k, b]."""
        stack, rng = rows.shape[:-1], np.random.default_rng(int(rows.sum()))
        out = {}
        if model.likelihood.samples:
            out["noise"] = ops.asarray(self.noise(model, rows))
        if count := method.sampled_points:
            turns = rng.random((*stack, len(self.gamma))).argsort(axis=-1)
            out["basis_points"] = ops.asarray(turns[..., :count])
        return out

    def theta(self, model: Model, basis: str = "inducing", *, moved: bool = False) -> Theta:
        """The θ at hand, or another one near it."""
        shift = 0.05 if moved and basis != "data" else 0.0
        by = 1.15 if moved else 1.0
        likelihood = tree_map(lambda x: np.float64(x) * by, model.likelihood.initial_parameters())
        return Theta(
            _parameters(model.kernel, by),
            likelihood,
            tree_map(lambda x: x + shift, self.inducing(basis)),
        )


def small_problem(n: int = 48, M: int = 8, D: int = 3, b: int = 16, seed: int = 5) -> Problem:
    """A seeded problem with K(Z, Z) well conditioned, so that differences are the backends' own."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, D))
    f = np.sin(1.3 * X[:, 0]) + 0.5 * np.cos(2.0 * X[:, 1]) * X[:, 2]
    y = f + 0.3 * rng.standard_normal(n)
    labels = (f + 0.3 * rng.standard_normal(n) > 0).astype(np.float64)
    batches = np.stack([rng.choice(n, b, replace=False) for _ in range(50)])
    Z = X[rng.choice(n, M, replace=False)] + 0.1
    classes = np.digitize(f, [-0.5, 0.5]).astype(np.float64)
    counts = rng.poisson(np.exp(0.5 * f)).astype(np.float64)
    gamma = rng.uniform(-2.0, 2.0, (M + 4, D))
    return Problem(X, y, labels, classes, counts, Z, gamma, batches)


def likelihoods_of(method: str) -> list[str]:
    """The likelihoods that a method takes."""
    name, options = VARIANTS[method]
    refused = refusals(build_method(name, options))
    return [x for x in _in_turn(LIKELIHOODS_IN_TURN, likelihoods()) if x not in refused]


LIKELIHOODS_IN_TURN = (
    "gaussian",
    "bernoulli-probit",
    "bernoulli-logit",
    "softmax",
    "robust-max",
    "student-t",
    "poisson",
)
KERNELS_IN_TURN = ("se", "matern32", "matern52")
"""Who takes turns in the subset, in this order; what a third party adds is looked at beside them."""


def _in_turn(first: tuple[str, ...], names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda x: first.index(x) if x in first else len(first))


def cases(*, full: bool) -> Iterator[Case]:
    """Every variant of every method with every likelihood that it takes, or the stated subset.

    The full matrix has every pair in float64 and float32, all along the trajectories. These are compiled
    for one case of each method: a compiler sees a method, not a likelihood.
    """
    usual = _every_pair() if full else itertools.chain(_subset(), _added())
    return itertools.chain(usual, _compounds())


def _every_pair() -> Iterator[Case]:
    kernels_in_turn, first = _in_turn(KERNELS_IN_TURN, kernels()), _first_variants()
    for i, method in enumerate(VARIANTS):
        served = likelihoods_of(method)
        for j, likelihood in enumerate(served):
            kernel_name = kernels_in_turn[(i // len(served) + i + j) % len(kernels_in_turn)]
            trajectories = "compiled" if method in first and j == 0 else "eager"
            yield Case(method, likelihood, kernel_name, "float64", trajectories)
            yield Case(method, likelihood, kernel_name, "float32", trajectories)


def _subset() -> Iterator[Case]:
    """Every variant once in float64, likelihoods and kernels taking turns.

    The first of each method also in float32 and along the trajectories.
    """
    first = _first_variants()
    for i, method in enumerate(VARIANTS):
        known = [x for x in likelihoods_of(method) if x in LIKELIHOODS_IN_TURN]
        served = known or likelihoods_of(method)
        if not served:
            continue
        likelihood = served[i % len(served)]
        kernel_name = KERNELS_IN_TURN[(i // len(served) + i + i % len(served)) % 3]
        if method in first:
            yield Case(method, likelihood, kernel_name, "float64", "compiled")
            yield Case(method, likelihood, kernel_name, "float32", "compiled")
        else:
            yield Case(method, likelihood, kernel_name, "float64", "none")


def _added() -> Iterator[Case]:
    """What a third party adds: each likelihood with every method that takes it, each kernel with all."""
    for method in _first_variants():
        served = likelihoods_of(method)
        for likelihood in served:
            if likelihood not in LIKELIHOODS_IN_TURN:
                yield Case(method, likelihood, "matern52", "float64", "none")
        for kernel_name in kernels():
            if kernel_name not in KERNELS_IN_TURN and served:
                yield Case(method, served[0], kernel_name, "float64", "none")


def _compounds() -> Iterator[Case]:
    """A sum and a product where an M-step is in closed form, and a sum where it is by autodiff."""
    yield Case("t-svgp tied-projected", "gaussian", "sum", "float64", "none")
    yield Case("q-svgp natgrad", "bernoulli-probit", "product", "float64", "none")
    yield Case("sgpr", "gaussian", "sum", "float64", "none")


def _first_variants() -> list[str]:
    """The first variant of each method."""
    return list({name: title for title, (name, _) in reversed(VARIANTS.items())}.values())[::-1]
