"""Conversion between exported posteriors and GPflow's SVGP. Requires GPflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from svgpbench.errors import UserError
from svgpbench.libraries.whitened import (
    Table,
    Whitened,
    load_whitened,
    named_kernel,
    plain_table,
    save_whitened,
    whiten,
    with_positive_diagonal,
)

OWN_SQUASH = 1e-3
"""ε in the default link of `gpflow.likelihoods.Bernoulli`."""

KERNELS = {
    "se": gpflow.kernels.SquaredExponential,
    "matern32": gpflow.kernels.Matern32,
    "matern52": gpflow.kernels.Matern52,
}


class JitteredPoints(gpflow.inducing_variables.InducingPoints):
    """Inducing inputs with their own jitter on K(Z, Z), independent of GPflow's global jitter."""

    def __init__(self, Z: Any, jitter: float) -> None:
        super().__init__(Z)
        self.jitter = jitter


def _jittered(points: JitteredPoints, kernel: Any, *, jitter: float = 0.0) -> Any:
    return kernel(points.Z) + points.jitter * tf.eye(points.num_inducing, dtype=points.Z.dtype)


gpflow.covariances.Kuu.register(JitteredPoints, gpflow.kernels.Kernel)(_jittered)


class SquashedProbit(gpflow.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = ε + (1 − 2ε) Φ(f) with a closed-form mean; GPflow's has ε = 1e-3."""

    def __init__(self, squash: float) -> None:
        super().__init__(invlink=self.probability)
        self.squash = squash

    def probability(self, f: Any) -> Any:
        """Return p(y = 1 | f)."""
        return self.squash + (1.0 - 2.0 * self.squash) * 0.5 * tf.math.erfc(-f / np.sqrt(2.0))

    def _predict_mean_and_var(self, X: Any, mean: Any, variance: Any) -> Any:
        p = self.probability(mean / tf.sqrt(1.0 + variance))
        return p, p - tf.square(p)


def to_gpflow(path: str | Path) -> Any:
    """Return the `gpflow.models.SVGP` of a posterior in a file; its data are in the model's units.

    Raises `UserError` if the file is not an exported posterior, or if GPflow lacks its kernel or likelihood.
    """
    w = load_whitened(path)
    if w.kernel not in KERNELS:
        raise UserError(f"{path}: GPflow has no kernel {w.kernel!r} as svgpbench has it")
    isotropic = len(w.lengthscales) == 1
    scales = float(w.lengthscales[0]) if isotropic else w.lengthscales
    return gpflow.models.SVGP(
        KERNELS[w.kernel](variance=w.variance, lengthscales=scales),
        _likelihood(path, w),
        JitteredPoints(w.Z, w.jitter),
        num_latent_gps=len(w.mean),
        q_mu=w.mean.T,
        q_sqrt=w.chol,
        whiten=True,
        num_data=w.table.rows or None,
    )


def from_gpflow(model: Any, path: str | Path, table: Table | None = None) -> Path:
    """Write the posterior of a `gpflow.models.SVGP`, whitened or not, to an .npz file.

    Args:
        model: a model with a kernel of `KERNELS` on all inputs, mean 0, and inducing points.
        path: path of the file.
        table: scaling of the table from which the model's inputs and targets were made; none by default.

    Raises:
        UserError: if svgpbench has no such model, with the part that it lacks.
    """
    if not isinstance(model, gpflow.models.SVGP):
        raise UserError(f"{type(model).__name__}: only an SVGP crosses")
    points, mean, chol = model.inducing_variable, model.q_mu.numpy().T, model.q_sqrt.numpy()
    if not isinstance(points, gpflow.inducing_variables.InducingPoints):
        raise UserError(f"inducing variables {type(points).__name__}: only points cross")
    if not isinstance(model.mean_function, gpflow.functions.Zero):
        raise UserError(f"mean function {type(model.mean_function).__name__}: svgpbench's is 0")
    Z = points.Z.numpy()
    jitter = getattr(points, "jitter", gpflow.config.default_jitter())
    if chol.ndim == 2:  # q_diag: [M, P]
        chol = chol.T[..., None] * np.eye(len(Z))
    if not model.whiten:
        K = model.kernel(Z).numpy() + jitter * np.eye(len(Z))
        mean, chol = whiten(K, mean, chol)
    likelihood, parameters = _said(model.likelihood)
    read = table or plain_table(Z.shape[1])
    if not read.rows and model.num_data is not None:
        read = read._replace(rows=int(model.num_data))
    return save_whitened(
        Whitened(
            named_kernel(model.kernel, KERNELS),
            float(model.kernel.variance.numpy()),
            np.ravel(model.kernel.lengthscales.numpy()),
            likelihood,
            parameters,
            float(jitter),
            Z,
            mean,
            with_positive_diagonal(chol),
            read,
        ),
        path,
    )


def _likelihood(path: str | Path, w: Whitened) -> Any:
    given = w.parameters
    if w.likelihood == "gaussian":
        return gpflow.likelihoods.Gaussian(variance=given["noise_variance"])
    if w.likelihood == "bernoulli-probit":
        plain = given["squash"] == OWN_SQUASH
        return gpflow.likelihoods.Bernoulli() if plain else SquashedProbit(given["squash"])
    if w.likelihood == "softmax":
        made = gpflow.likelihoods.Softmax(int(given["classes"]))
        made.num_monte_carlo_points = int(given["samples"])
        return made
    raise UserError(f"{path}: likelihood {w.likelihood!r} does not cross to GPflow")


def _said(likelihood: Any) -> tuple[str, dict[str, float]]:
    kinds = gpflow.likelihoods
    if type(likelihood) is kinds.Gaussian and likelihood.variance is not None:
        return "gaussian", {"noise_variance": float(likelihood.variance.numpy())}
    if isinstance(likelihood, SquashedProbit):
        return "bernoulli-probit", {"squash": likelihood.squash}
    if type(likelihood) is kinds.Bernoulli and likelihood.invlink is kinds.utils.inv_probit:
        return "bernoulli-probit", {"squash": OWN_SQUASH}
    if type(likelihood) is kinds.Softmax:
        samples = int(likelihood.num_monte_carlo_points)
        return "softmax", {"classes": int(likelihood.num_classes), "samples": samples}
    raise UserError(f"likelihood {type(likelihood).__name__}: svgpbench has none that is the same")
