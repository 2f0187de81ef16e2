"""The problems that steps are timed on: seeded inputs, the same numbers for every backend and peer.

A step's cost depends on shapes alone, so the inputs are synthetic. A peer gets them as an `.npz`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import unknown
from svgpbench.likelihoods import build_likelihood
from svgpbench.model import Model, Theta
from svgpbench.model.bases import Decoupled
from svgpbench.model.kernels import KernelParameters, kernel
from svgpbench.ops import Tree
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]

JITTER = 1e-6
SQUASH = 1e-3
"""The probit link is ε + (1 − 2ε) Φ with the ε that GPflow's link has built in."""


class Shape(NamedTuple):
    """Size of a problem: n data of D inputs, M inducing inputs, b rows a batch, t rows to predict."""

    likelihood: str
    n: int
    D: int
    M: int
    b: int
    t: int = 1024


SHAPES: dict[str, Shape] = {
    "reg-M100": Shape("gaussian", 11934, 16, 100, 256),
    "reg-M500": Shape("gaussian", 11934, 16, 500, 1024),
    "bern-M100": Shape("bernoulli-probit", 7400, 20, 100, 1024),
    "bern-M500": Shape("bernoulli-probit", 7400, 20, 500, 1024),
    "tiny": Shape("gaussian", 60, 3, 7, 16, 20),
    "tiny-bern": Shape("bernoulli-probit", 60, 3, 7, 16, 20),
}
TIMED = ("reg-M100", "reg-M500", "bern-M100", "bern-M500")
"""The problems of a speed run that names none."""


class Problem(NamedTuple):
    """One batch of the data, rows to predict, inducing inputs and θ: float64, on the host."""

    likelihood: npt.NDArray[np.str_]  # []
    n: npt.NDArray[np.int64]  # [], number of data
    X: Floats  # [b, D]
    y: Floats  # [b]
    rows: npt.NDArray[np.int64]  # [b], row numbers
    X_new: Floats  # [t, D]
    y_new: Floats  # [t]
    Z: Floats  # [M, D]
    variance: Floats  # []
    lengthscales: Floats  # [D]
    noise_variance: Floats  # [], Gaussian only
    jitter: Floats  # []
    squash: Floats  # [], Bernoulli only
    e_rate: Floats  # []
    m_rate: Floats  # []

    def model(self) -> Model:
        """Matérn-5/2 with a lengthscale a dimension, and the likelihood."""
        name = str(self.likelihood)
        option = "noise_variance" if name == "gaussian" else "squash"
        keys = {"name": name, option: float(getattr(self, option))}
        likelihood = build_likelihood(LikelihoodConfig.model_validate(keys))
        return Model(kernel("matern52"), likelihood, float(self.jitter))

    def theta(self, model: Model, basis: str = "inducing") -> Theta:
        """θ of the model on the host, with the bases of the kind that a method has."""
        likelihood = tree_map(np.float64, model.likelihood.initial_parameters())
        kernel = KernelParameters(self.variance[None], self.lengthscales[None])
        return Theta(kernel, likelihood, self._bases(basis))

    def _bases(self, basis: str) -> Tree:
        if basis == "data":
            return self.X
        return Decoupled(self.X_new[: len(self.Z)], self.Z) if basis == "decoupled" else self.Z


def make_problem(name: str) -> Problem:
    """A problem by name; raises `UserError` with the nearest known one."""
    if name not in SHAPES:
        raise unknown("speed problem", name, SHAPES)
    s = SHAPES[name]
    rng = np.random.default_rng([2021, s.n, s.D, s.M, s.b])
    X = rng.standard_normal((s.n + s.t, s.D))
    direction = rng.standard_normal(s.D) / np.sqrt(s.D)
    noise = rng.standard_normal(s.n + s.t)
    rows = rng.choice(s.n, s.b, replace=False)
    Z = X[rng.choice(s.n, s.M, replace=False)]
    f = np.sin(2.0 * (X @ direction)) + 0.5 * X[:, 0]
    y = f + 0.4 * noise if s.likelihood == "gaussian" else (f + 0.4 * noise > 0).astype(np.float64)
    return Problem(
        likelihood=np.array(s.likelihood),
        n=np.array(s.n),
        X=X[rows],
        y=y[rows],
        rows=rows,
        X_new=X[s.n :],
        y_new=y[s.n :],
        Z=Z,
        variance=np.array(1.3),
        lengthscales=np.geomspace(2.0, 6.0, s.D),
        noise_variance=np.array(0.2),
        jitter=np.array(JITTER),
        squash=np.array(SQUASH),
        e_rate=np.array(0.5),
        m_rate=np.array(0.01),
    )


def save_problem(problem: Problem, path: Path) -> None:
    """Write the arrays under their field names, for `np.load(path, allow_pickle=False)`."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **problem._asdict())


def fingerprint(problem: Problem) -> str:
    """A hash of the numbers to six decimals: a sum's last digit is its machine's own."""
    digest = hashlib.sha256()
    for name, array in problem._asdict().items():
        text = name if array.dtype.kind == "U" else f"{name} {array.shape}"
        digest.update(text.encode())
        rounded = array if array.dtype.kind == "U" else np.round(array.astype(np.float64), 6) + 0.0
        digest.update(str(array).encode() if array.dtype.kind == "U" else rounded.tobytes())
    return digest.hexdigest()[:16]
