"""Problems on which steps are timed: seeded inputs, the same numbers for every backend and peer.

The cost of a step depends only on shapes, so the inputs are synthetic. A peer reads them from an `.npz`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import NonNegativeInt, PositiveInt

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError, unknown
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.likelihoods.softmax import Softmax
from svgpbench.npz import save_arrays
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PathwiseSoftmax(Softmax):
    """Softmax with α = ∂V̂/∂μ and β = −2 ∂V̂/∂v of the sampled V̂, as in the peers. It is never timed.

    Our softmax averages ∇log p and −∇²log p, which have less noise. With equal draws, an E-step with this
    likelihood must give a peer's number.
    """

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        expectations = self.expectations(ops, p, y, mu, v)
        return expectations.alpha, expectations.beta


LATER = 4
"""Minibatches besides the first. An EM iteration takes E-steps on four and its M-step on a fifth."""

JITTER = 1e-6
SQUASH = 1e-3
"""ε of the probit link ε + (1 − 2ε) Φ, as built into GPflow's link."""


class Shape(NamedTuple):
    """Sizes of a problem: n data with D inputs, M inducing inputs, b rows per batch, t rows to predict."""

    likelihood: str
    n: PositiveInt
    D: PositiveInt
    M: PositiveInt
    b: PositiveInt
    t: PositiveInt = 1024
    classes: PositiveInt = 1
    samples: NonNegativeInt = 0  # of a Monte Carlo likelihood
    e_rate: float = 0.5  # of natural gradients
    two_bases: tuple[int, int] | None = None  # |γ| and |β| of methods that have both; None: M each

    @property
    def pool(self) -> int:
        """Number of rows that are made; batches and inducing inputs are drawn from them."""
        # n itself only scales a batch's sum; all 60,000 rows of 784 inputs would take 376 MB
        return min(self.n, max(self.b, 12_000))


SHAPES: dict[str, Shape] = {
    "reg-M100": Shape("gaussian", 11934, 16, 100, 256),
    "reg-M500": Shape("gaussian", 11934, 16, 500, 1024),
    # as many rows as a GPU is given at once
    "reg-M500-b8192": Shape("gaussian", 11934, 16, 500, 8192),
    "bern-M100": Shape("bernoulli-probit", 7400, 20, 100, 1024),
    "bern-M500": Shape("bernoulli-probit", 7400, 20, 500, 1024),
    # at a rate of 0.5, sampled β of four minibatches make the precision indefinite in every library
    "softmax10-M100": Shape("softmax", 60000, 784, 100, 200, classes=10, samples=100, e_rate=0.03),
    # salimbeni2018's Fig. 2c at a tenth of its size: 3droad's n and D, |γ| + |β| beside M
    "roads-M200": Shape("gaussian", 434874, 3, 200, 1024, two_bases=(350, 150)),
    # salimbeni2018's Fig. 2c at its printed size; its batch size is not printed
    "roads-M2000": Shape("gaussian", 434874, 3, 2000, 1024, 3500, two_bases=(3500, 1500)),
    "tiny": Shape("gaussian", 60, 3, 7, 16, 20),
    "tiny-bern": Shape("bernoulli-probit", 60, 3, 7, 16, 20),
    "tiny-softmax": Shape("softmax", 60, 3, 7, 16, 20, classes=3, samples=12),
}
FAMILIES = {
    "reg": SHAPES["reg-M500"],
    "bern": SHAPES["bern-M500"],
    "softmax10": SHAPES["softmax10-M100"],
}
"""Problems at any M, named `FAMILY-M<number>`: the shape given here with that M, unless in `SHAPES`."""

TIMED = ("reg-M100", "reg-M500", "bern-M100", "bern-M500", "softmax10-M100")
"""Problems that are timed by default."""


class TimedProblem(NamedTuple):
    """Arrays of a problem on the host: minibatches, rows to predict, inducing inputs and θ."""

    likelihood: npt.NDArray[np.str_]  # []
    n: npt.NDArray[np.int64]  # [], number of data
    X: Floats  # [b, D]
    y: Floats  # [b]; class numbers if there are several classes
    rows: npt.NDArray[np.int64]  # [b], row numbers
    X_later: Floats  # [LATER, b, D]
    y_later: Floats  # [LATER, b]
    rows_later: npt.NDArray[np.int64]  # [LATER, b]
    X_new: Floats  # [t, D]
    y_new: Floats  # [t]
    Z: Floats  # [M, D]
    variance: Floats  # []
    lengthscales: Floats  # [D]
    noise_variance: Floats  # [], Gaussian only
    jitter: Floats  # []
    squash: Floats  # [], Bernoulli only
    classes: npt.NDArray[np.int64]  # [], latent functions
    noise: Floats  # [S, classes], standard normal draws of every batch; S = 0 without sampling
    e_rate: Floats  # []
    m_rate: Floats  # []
    two_bases: npt.NDArray[np.int64] = np.zeros(
        0, dtype=np.int64
    )  # |γ| and |β|; empty means M for each

    @property
    def sampled(self) -> bool:
        """True if the likelihood samples."""
        return len(self.noise) > 0

    def model(self) -> Model:
        """Return the model: Matérn-5/2 with one lengthscale per dimension, and the likelihood."""
        return model_of(self._asdict())

    def model_of_peers(self) -> Model:
        """Return the softmax model with the peers' estimates of sampled expectations."""
        likelihood = PathwiseSoftmax(classes=int(self.classes), samples=len(self.noise))
        return replace(self.model(), likelihood=likelihood)

    def theta(self, model: Model, basis: str = "inducing") -> Theta:
        """Return θ of the model on the host, with the kind of basis that a method has."""
        theta = theta_of(self._asdict(), model)
        if basis == "data":
            return theta._replace(inducing=self.X)
        if basis != "decoupled":
            return theta
        gamma, beta = self.two_bases if len(self.two_bases) else (len(self.Z), len(self.Z))
        # no shared points: with one, K_γ − K_γβ K_β⁻¹ K_βγ of the orthogonal basis is singular
        return theta._replace(inducing=Decoupled(self.X_new[:gamma], self.Z[:beta]))


def shape_of(name: str) -> Shape:
    """Return the shape of a problem: one of `SHAPES`, or of a family at any M, such as `reg-M2048`.

    Raises `UserError` for an unknown name, with the nearest known one, and for an M larger than the number
    of rows that Z is drawn from.
    """
    if name in SHAPES:
        return SHAPES[name]
    family, _, number = name.partition("-M")
    if family not in FAMILIES or not re.fullmatch("[1-9][0-9]*", number):
        raise unknown("speed problem", name, [*SHAPES, *(f"{x}-M<number>" for x in FAMILIES)])
    shape, M = FAMILIES[family], int(number)
    if shape.pool < M:
        raise UserError(
            f"speed problem {name!r}: inducing inputs are {family}'s rows; take an M up to {shape.pool}"
        )
    return shape._replace(M=M, t=max(shape.t, M))  # a second basis has rows to predict


def model_of(p: Mapping[str, Any]) -> Model:
    """Return the model of a problem's arrays by name, as in `TimedProblem`. Its rows are not needed."""
    name = str(p["likelihood"])
    options: dict[str, dict[str, float]] = {
        "gaussian": {"noise_variance": float(p["noise_variance"])},
        "bernoulli-probit": {"squash": float(p["squash"])},
        "softmax": {"classes": int(p["classes"]), "samples": len(p["noise"])},
    }
    keys = {"name": name} | options[name]
    likelihood = build_likelihood(LikelihoodConfig.model_validate(keys))
    return Model(kernel("matern52"), likelihood, float(p["jitter"]))


def theta_of(p: Mapping[str, Any], model: Model) -> Theta:
    """Return θ at the start, on the host, from the arrays of `model_of` and the inducing inputs."""
    likelihood = tree_map(np.float64, model.likelihood.initial_parameters())
    scales = KernelParameters(p["variance"][None], p["lengthscales"][None])
    return Theta(scales, likelihood, p["Z"])


def make_problem(name: str) -> TimedProblem:
    """Make a problem by its name, as for `shape_of`."""
    return problem_of(shape_of(name))


def problem_of(s: Shape) -> TimedProblem:
    """Make the problem of a shape."""
    # the order of the draws below is part of a problem: another order has other numbers
    rng = np.random.default_rng([2021, s.n, s.D, s.M, s.b])
    X = rng.standard_normal((s.pool + s.t, s.D))
    direction = rng.standard_normal(s.D) / np.sqrt(s.D)
    noise = rng.standard_normal(s.pool + s.t)
    rows = rng.choice(s.pool, s.b, replace=False)
    Z = X[rng.choice(s.pool, s.M, replace=False)]
    rows_later = np.stack([rng.choice(s.pool, s.b, replace=False) for _ in range(LATER)])
    f = np.sin(2.0 * (X @ direction)) + 0.5 * X[:, 0] + 0.4 * noise
    if s.likelihood == "bernoulli-probit":
        y = (f > 0).astype(np.float64)
    elif s.likelihood == "softmax":
        y = np.argmax(X @ rng.standard_normal((s.D, s.classes)), axis=1).astype(np.float64)
    else:
        y = f
    new = slice(s.pool, None)
    return TimedProblem(
        likelihood=np.array(s.likelihood),
        n=np.array(s.n),
        X=X[rows],
        y=y[rows],
        rows=rows,
        X_later=X[rows_later],
        y_later=y[rows_later],
        rows_later=rows_later,
        X_new=X[new],
        y_new=y[new],
        Z=Z,
        variance=np.array(1.3),
        # Σ 1/ℓ², and with it a typical r² of two rows, is no larger at D = 784 than at D = 20
        lengthscales=np.geomspace(2.0, 6.0, s.D) * max(1.0, np.sqrt(s.D / 20)),
        noise_variance=np.array(0.2),
        jitter=np.array(JITTER),
        squash=np.array(SQUASH),
        classes=np.array(s.classes),
        noise=rng.standard_normal((s.samples, s.classes)),
        e_rate=np.array(s.e_rate),
        m_rate=np.array(0.01),
        two_bases=np.array(s.two_bases or (), dtype=np.int64),
    )


def save_problem(problem: TimedProblem, path: Path) -> None:
    """Write the arrays under their field names, for `np.load(path, allow_pickle=False)`."""
    save_arrays(problem._asdict(), path)


def fingerprint(problem: TimedProblem) -> str:
    """Return a hash of the numbers rounded to six decimals, as machines differ in a sum's last digit.

    Sizes of two bases count only if there are any, so that records of problems without them stay valid.
    """
    digest = hashlib.sha256()
    for name, array in problem._asdict().items():
        if name == "two_bases" and not len(array):
            continue
        text = name if array.dtype.kind == "U" else f"{name} {array.shape}"
        digest.update(text.encode())
        # + 0.0 makes 0.0 of −0.0, an equal number with other bytes
        rounded = array if array.dtype.kind == "U" else np.round(array.astype(np.float64), 6) + 0.0
        digest.update(str(array).encode() if array.dtype.kind == "U" else rounded.tobytes())
    return digest.hexdigest()[:16]
