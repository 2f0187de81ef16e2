"""Problems: the files of the folder `problems` as NumPy arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Precision = Literal["float64", "float32"]

FOLDER = files("svgp_reference") / "problems"


@dataclass(frozen=True, eq=False)
class Problem:
    """A model at a given q(u), its data, and its answers.

    The prior is f ~ GP(c, k) with the constant mean c. The inducing variables u = f(Z) − c have the prior
    N(0, K), where K = k(Z, Z) + jitter · I. The jitter is on K(Z, Z) alone. With u = Lv and L = chol(K):

    * `whitened`: q(v) = N(q_mean, q_factor q_factorᵀ);
    * otherwise: q(u) = N(q_mean, q_factor q_factorᵀ).

    The bound of the batch is (n/b) Σ E[log p(y_i | f_i)] − KL[q(u) ‖ p(u)]. Expectations are exact, not sums
    over a few nodes. `info["gauss_hermite_nodes"]` is a number of nodes that is enough.

    Shapes: D input dimensions, M inducing inputs, n rows, b rows of the batch, t test rows.

    Example:
        >>> problem = load("gaussian-minibatch")
        >>> problem.n, len(problem.y_batch), problem.scale
        (20, 5, 4.0)
        >>> problem.answers["gradient_Z"].shape == problem.Z.shape
        True
    """

    name: str
    info: Mapping[str, Any]
    """Purpose, method, precision, checks, versions, date, tolerances."""
    kernel: str
    """`se`, `matern32` or `matern52`; variance · shape(‖(x − x')/lengthscales‖)."""
    variance: float
    lengthscales: Floats
    """[D], or [1] if all dimensions share one."""
    mean_constant: float
    """The constant prior mean c."""
    jitter: float
    likelihood: str
    """`gaussian`, `bernoulli-probit` (p(y = 1 | f) = Φ(f)), `poisson` (mean exp(f)) or `student-t`."""
    likelihood_parameters: Mapping[str, float]
    """`noise_variance` for gaussian; `scale` and `degrees_of_freedom` for student-t."""
    n: int
    """Number of rows of the data set."""
    batch: Ints
    """[b], row numbers of the batch."""
    X: Floats
    """[n, D]."""
    y: Floats
    """[n]."""
    X_test: Floats
    """[t, D]."""
    y_test: Floats
    """[t]."""
    Z: Floats
    """[M, D], inducing inputs."""
    whitened: bool
    q_mean: Floats
    """[M], the mean of q without the constant mean of the prior."""
    q_factor: Floats
    """[M, M], lower triangular factor of the covariance of q."""
    gamma: float
    """Size γ of each natural-gradient step."""
    answers: Mapping[str, Floats]
    """The float64 numbers that are nearest to the exact ones, by name."""
    digits: Mapping[str, Any]
    """The same numbers as strings of 30 digits, in nested lists."""

    @property
    def scale(self) -> float:
        """The factor n/b of the data term."""
        return self.n / len(self.batch)

    @property
    def X_batch(self) -> Floats:  # noqa: N802
        """Inputs [b, D] of the batch."""
        return self.X[self.batch]

    @property
    def y_batch(self) -> Floats:
        """Targets [b] of the batch."""
        return self.y[self.batch]

    def tolerance(self, answer: str, precision: Precision = "float64") -> float | None:
        """Return the largest relative difference that is allowed.

        It is None for float32 if the condition number of K(Z, Z) is above 2²³: no digit is left.

        Example:
            >>> load("gaussian-se-whitened").tolerance("bound")
            1e-10
        """
        tolerances = self.info["tolerance"][precision]
        return None if tolerances is None else float(tolerances[answer])


def names() -> list[str]:
    """Return the names of all problems, sorted.

    Example:
        >>> "poisson-log-link" in names()
        True
    """
    found = (x.name for x in FOLDER.iterdir())
    return sorted(x.removesuffix(".json") for x in found if x.endswith(".json"))


def load(name: str) -> Problem:
    """Return a problem by its name. Its arrays are read-only.

    Raises:
        ValueError: if there is no problem of this name.

    Example:
        >>> load("gaussian-matern32-ard").lengthscales
        array([0.8, 1.5, 2.2])
    """
    known = names()
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "svgp_reference.names() lists them"
        raise ValueError(f"no problem {name!r}; {hint}")
    file = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    values = dict(file["problem"])
    for key in ("lengthscales", "X", "y", "X_test", "y_test", "Z", "q_mean", "q_factor"):
        values[key] = _read_only(np.asarray(values[key], dtype=np.float64))
    values["batch"] = _read_only(np.asarray(values["batch"], dtype=np.int64))
    answers = {
        key: _read_only(np.asarray(answer["float64"], dtype=np.float64))
        for key, answer in file["answers"].items()
    }
    digits = {key: answer["digits"] for key, answer in file["answers"].items()}
    return Problem(name=name, info=file["info"], answers=answers, digits=digits, **values)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array after making it read-only, so that no adapter changes the numbers of the next test."""
    array.flags.writeable = False
    return array
