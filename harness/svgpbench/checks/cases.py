"""Cases of the equivalence matrix: a method, a likelihood and a kernel on one small problem."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.compound import COMPOUNDS, Compound
from svgpbench.kernels.kernels import Kernel, KernelParameters, kernel, kernels
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.methods import AnyMethod, build_method
from svgpbench.methods.registry import refusals
from svgpbench.ops import Ops
from svgpbench.plugins import LIKELIHOODS, METHODS, load_all, plugins
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name} {variant}".strip(): (name, dict(options))
    for name, method in load_all(METHODS).items()
    for variant, options in method.info.variants.items()
}
"""Title in the matrix → method name and options, for every variant of every installed method."""


def residual_variance_of(title: str) -> str:
    """Return the residual variance of a variant's bound; `prior` by default."""
    return str(VARIANTS[title][1].get("residual_variance", "prior"))


USUAL = [title for title in VARIANTS if residual_variance_of(title) == "prior"]
"""Variants whose bound takes q(f|u) = p(f|u)."""


@dataclass(frozen=True)
class MatrixCase:
    """A row of the matrix; `method` is a key of `VARIANTS`."""

    method: str
    likelihood: str
    kernel: str
    dtype: str = "float64"
    trajectories: str = "compiled"  # or "eager", or "none": single steps only

    @property
    def name(self) -> str:
        """Name of the case in a report."""
        return f"{self.method} | {self.likelihood} | {self.kernel} | {self.dtype}"

    def build(self) -> tuple[Model, AnyMethod]:
        """Return the model and the method."""
        name, options = VARIANTS[self.method]
        return build_model(self.likelihood, self.kernel), build_method(name, options)


SETTINGS: dict[str, dict[str, Any]] = {
    "gaussian": {"noise_variance": 0.3},
    "softmax": {"classes": 3, "samples": 12},
    "robust-max": {"classes": 3, "epsilon": 0.2, "nodes": 20},
    "student-t": {"scale": 0.4},
    "heteroskedastic": {"noise_variance": 0.3},
}
"""Settings of the check's likelihoods that differ from their defaults.

Two are not log-concave: Student-t has data with β < 0, and robust-max has so many that steps are halved.
With robust-max's default ε of 1e-3, steps are often halved to the limit of positive definiteness.
Variances then become so large that correct backends differ.
"""


COMPOUND_KERNELS = {"sum": ("se", "matern32"), "product": ("se", "matern52")}
"""Parts of the check's compound kernels."""


def build_model(likelihood: str, kernel_name: str, *, jitter: float = 1e-6) -> Model:
    """Return a model with the check's own likelihood settings."""
    built = build_likelihood(LikelihoodConfig(name=likelihood, **SETTINGS.get(likelihood, {})))
    if isinstance(built, MulticlassLikelihood) and not built.classes:
        built = replace(built, classes=3)  # the number in the problem
    if kernel_name in COMPOUND_KERNELS:
        parts = tuple(kernel(part) for part in COMPOUND_KERNELS[kernel_name])
        return Model(COMPOUNDS[kernel_name](parts), built, jitter)
    return Model(kernel(kernel_name), built, jitter)


def _parameters(covariance: Kernel, scale: float) -> Any:
    """Return the check's hyperparameters, which differ for each part of a compound kernel."""
    if isinstance(covariance, Compound):
        return tuple(
            _parameters(part, scale * (1.0 + 0.3 * i)) for i, part in enumerate(covariance.parts)
        )
    return KernelParameters(np.array([1.7 / scale]), np.array([[0.9, 1.2, 1.6]]) * scale)


@dataclass(frozen=True)
class SmallProblem:
    """A problem with inputs, targets for every task, inducing inputs, minibatches and two values of θ."""

    X: Floats  # [n, D]
    y: Floats  # [n], regression
    labels: Floats  # [n], 0 or 1
    classes: Floats  # [n], 0, 1 or 2
    counts: Floats  # [n]
    Z: Floats  # [M, D]
    gamma: Floats  # [M_γ, D], away from Z
    batches: npt.NDArray[np.int64] = field(repr=False)  # [50, b]

    def targets(self, support: str) -> Floats:
        """Return the targets for a likelihood with this support."""
        return {
            "real": self.y,
            "positive": np.exp(self.y),
            "binary": self.labels,
            "classes": self.classes,
            "counts": self.counts,
        }[support]

    def batches_of(self, method: AnyMethod) -> npt.NDArray[np.int64]:
        """Return the rows of every batch [50, b]; all rows [50, n] for a collapsed method."""
        if method.collapsed:
            return np.tile(np.arange(len(self.X)), (len(self.batches), 1))
        return self.batches

    def inducing(self, basis: str) -> Any:
        """Return the basis of a method: the data, both decoupled bases, or the inducing inputs."""
        if basis == "data":
            return self.X
        return Decoupled(self.gamma, self.Z) if basis == "decoupled" else self.Z

    def noise(self, model: Model, rows: npt.NDArray[np.int64]) -> Floats:
        """Return noise [S, P] of a likelihood that samples, or [k, S, P] for stacked batches [k, b]."""
        shape = (*rows.shape[:-1], model.likelihood.samples, model.latents)
        # seeded by the rows: every process draws the same noise for the same batch
        return np.random.default_rng(int(rows.sum())).standard_normal(shape)

    def random_inputs(
        self, ops: Ops, model: Model, method: AnyMethod, rows: npt.NDArray[np.int64]
    ) -> dict[str, Any]:
        """Return noise and sampled basis points for a batch, or for stacked batches `rows` [k, b]."""
        stack, rng = rows.shape[:-1], np.random.default_rng(int(rows.sum()))
        inputs = {}
        if model.likelihood.samples:
            inputs["noise"] = ops.asarray(self.noise(model, rows))
        if count := method.sampled_points:
            orders = rng.random((*stack, len(self.gamma))).argsort(axis=-1)
            inputs["basis_points"] = ops.asarray(orders[..., :count])
        return inputs

    def theta(self, model: Model, basis: str = "inducing", *, moved: bool = False) -> Theta:
        """Return the θ of the problem, or another one near it if `moved`."""
        shift = 0.05 if moved and basis != "data" else 0.0
        scale = 1.15 if moved else 1.0
        likelihood = tree_map(
            lambda x: np.float64(x) * scale, model.likelihood.initial_parameters()
        )
        return Theta(
            _parameters(model.kernel, scale),
            likelihood,
            tree_map(lambda x: x + shift, self.inducing(basis)),
        )


def small_problem(n: int = 48, M: int = 8, D: int = 3, b: int = 16, seed: int = 5) -> SmallProblem:
    """Return a seeded problem whose K(Z, Z) is well conditioned, to keep rounding errors small."""
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
    return SmallProblem(X, y, labels, classes, counts, Z, gamma, batches)


def grid_problem() -> SmallProblem:
    """Return the small problem with X on a grid, so well spaced, and with Z = X."""
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 3)] * 3), axis=-1).reshape(-1, 3)
    return replace(small_problem(), X=grid, y=np.sin(grid.sum(axis=1)), Z=grid)


def likelihoods_of(method: str) -> list[str]:
    """Return the names of the installed likelihoods that a method variant takes."""
    name, options = VARIANTS[method]
    refused = refusals(build_method(name, options))
    return [x for x in _in_turn(LIKELIHOODS_IN_TURN, likelihoods()) if x not in refused]


def variants_of(method: str) -> Iterator[MatrixCase]:
    """Yield the cases of a method in the kit: each variant once, the first with every likelihood.

    Raises `UserError` if a variant takes no installed likelihood.
    """
    titles = [title for title, (name, _) in VARIANTS.items() if name == method]
    for i, title in enumerate(titles):
        served = likelihoods_of(title)
        if not served:
            raise UserError(f"method {title!r} takes none of the likelihoods that are installed")
        for likelihood in served if i == 0 else served[:1]:
            yield MatrixCase(title, likelihood, "matern52")


def _in_turn(first: tuple[str, ...], names: Iterable[str]) -> list[str]:
    """Sort names: those in `first` in its order, then the others."""
    return sorted(names, key=lambda x: first.index(x) if x in first else len(first))


LIKELIHOODS_IN_TURN = (
    "gaussian",
    "bernoulli-probit",
    "bernoulli-logit",
    "softmax",
    "robust-max",
    "heteroskedastic",
    "student-t",
    "poisson",
)
KERNELS_IN_TURN = ("se", "matern32", "matern52")
"""Likelihoods and kernels that take turns, in this order; any other is checked with every method.

Add no name here: a turn more gives most variants another likelihood, and the check's cases other names.
"""

FIRST_TURNS = {
    "decoupled": 0,
    "diagonal-precision": 3,
    "gpr": 8,
    "hybrid": 9,
    "orth": 13,
    "q-svgp": 22,
    "q-vgp": 32,
    "r-svgp": 34,
    "sgpr": 38,
    "t-svgp": 41,
    "t-vgp": 50,
}
"""Turn of the first variant of a method; 0 for a method that is not here. The next variant is one later.

Turns are numbers, so that another method, or another variant of a method, moves no other's likelihood.
"""

ADDED_KERNEL = "matern52"
"""Kernel of the cases of likelihoods that take no turns."""


def chosen_cases(
    *, full: bool, methods: Collection[str] = (), likelihoods: Collection[str] = ()
) -> list[MatrixCase]:
    """Return the cases of these methods and likelihoods; all of the matrix without a name.

    A pair that the subset leaves out comes from the full matrix, in float64. Raises `UserError` for an
    unknown name, and if no named method takes a named likelihood.
    """
    refuse_unknown("method", methods, plugins(METHODS))
    refuse_unknown("likelihood", likelihoods, plugins(LIKELIHOODS))

    def is_of(case: MatrixCase, method: str, likelihood: str) -> bool:
        named = method in ("", VARIANTS[case.method][0])
        return named and likelihood in ("", case.likelihood)

    # "" stands for every method, or for every likelihood
    pairs = list(itertools.product(methods or ("",), likelihoods or ("",)))
    matrix = list(cases(full=full))
    left_out = [pair for pair in pairs if not any(is_of(case, *pair) for case in matrix)]
    chosen = [case for case in matrix if any(is_of(case, *pair) for pair in pairs)]
    if left_out:
        chosen += [
            replace(case, trajectories="none")
            for case in cases(full=True)
            if case.dtype == "float64" and any(is_of(case, *pair) for pair in left_out)
        ]
    if not chosen:
        takes = f"{' and '.join(methods)} cannot take" if methods else "no method takes"
        raise UserError(f"nothing to check: {takes} {' or '.join(likelihoods) or 'any likelihood'}")
    return chosen


def cases(*, full: bool) -> Iterator[MatrixCase]:
    """Yield every variant of every method with every likelihood that it takes, or a subset; then compounds.

    The full matrix has every pair in float64 and float32, with trajectories; kernels take turns. Only one
    pair per method has compiled trajectories, because compilation depends on the method alone.
    """
    if full:
        first = _first_variants()
        for method, i in _turns().items():
            in_turn = len([x for x in likelihoods_of(method) if x in LIKELIHOODS_IN_TURN])
            for j, likelihood in enumerate(likelihoods_of(method)):
                turn = i // max(1, in_turn) + i + j
                kernel_name = KERNELS_IN_TURN[turn % 3] if j < in_turn else ADDED_KERNEL
                trajectories = "compiled" if method in first and j == 0 else "eager"
                for dtype in ("float64", "float32"):
                    yield MatrixCase(method, likelihood, kernel_name, dtype, trajectories)
        yield from (case for case in _added() if case.kernel not in KERNELS_IN_TURN)
    else:
        yield from _subset()
        yield from _added()
    # a sum and a product with closed-form M-step gradients, and a sum with autodiff
    yield MatrixCase("t-svgp tied-projected", "gaussian", "sum", "float64", "none")
    yield MatrixCase("q-svgp natgrad", "bernoulli-probit", "product", "float64", "none")
    yield MatrixCase("sgpr", "gaussian", "sum", "float64", "none")


def _subset() -> Iterator[MatrixCase]:
    """Yield every variant once in float64; likelihoods and kernels take turns.

    The first variant of each method also runs in float32, and both of its cases have trajectories.
    """
    first = _first_variants()
    for method, i in _turns().items():
        in_turn = [x for x in likelihoods_of(method) if x in LIKELIHOODS_IN_TURN]
        served = in_turn or likelihoods_of(method)
        if not served:
            continue
        likelihood = served[i % len(served)]
        kernel_name = KERNELS_IN_TURN[(i // len(served) + i + i % len(served)) % 3]
        if method in first:
            yield MatrixCase(method, likelihood, kernel_name, "float64", "compiled")
            yield MatrixCase(method, likelihood, kernel_name, "float32", "compiled")
        else:
            yield MatrixCase(method, likelihood, kernel_name, "float64", "none")


def _added() -> Iterator[MatrixCase]:
    """Yield the cases of likelihoods and kernels that take no turns, with the first variants.

    Each likelihood is combined with every method that takes it, each kernel with every method.
    """
    for method in _first_variants():
        served = likelihoods_of(method)
        for likelihood in served:
            if likelihood not in LIKELIHOODS_IN_TURN:
                yield MatrixCase(method, likelihood, ADDED_KERNEL, "float64", "none")
        for kernel_name in kernels():
            if kernel_name not in KERNELS_IN_TURN and served:
                yield MatrixCase(method, served[0], kernel_name, "float64", "none")


def _turns() -> dict[str, int]:
    """Return the turn of every variant, counted within its method."""
    turns: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for title, (name, _) in VARIANTS.items():
        turns[title] = FIRST_TURNS.get(name, 0) + counts[name]
        counts[name] += 1
    return turns


def _first_variants() -> list[str]:
    """Return the title of the first variant of each method."""
    # filled from the back, so that the first title of a method is the one that stays
    return list({name: title for title, (name, _) in reversed(VARIANTS.items())}.values())[::-1]
