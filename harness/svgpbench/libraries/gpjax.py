"""Conversion between exported posteriors and variational families of GPJax. Requires GPJax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as npd
from gpjax.linalg.utils import stabilised_cholesky
from gpjax.parameters import val
from gpjax.variational_families import VariationalGaussian, WhitenedVariationalGaussian

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
"""ε in the link of `gpjax.likelihoods.Bernoulli`."""

KERNELS = {
    "se": gpx.kernels.RBF,
    "matern32": gpx.kernels.Matern32,
    "matern52": gpx.kernels.Matern52,
}


class JitteredGaussian(WhitenedVariationalGaussian):
    """Whitened family with a jitter on K(Z, Z) alone.

    The jitter of GPJax's prior, 0 here, would also be added to the variances at X.
    """

    jitter: float = eqx.field(static=True)

    def __init__(self, model: Any, w: Whitened) -> None:
        mean, chol = jnp.asarray(w.mean[0][:, None]), jnp.asarray(w.chol[0])
        super().__init__(model, jnp.asarray(w.Z), mean, chol)
        self.jitter = w.jitter

    def condition(self, train_data: Any) -> Any:
        """Condition as the base class does, with the jitter in the factor of K(Z, Z)."""
        K = self.model.prior.kernel.gram(self._fmt_inducing_inputs()).as_matrix()
        L = stabilised_cholesky(K, self.jitter)
        return eqx.tree_at(lambda q: q.cholesky_kzz, super().condition(train_data), L)


class SquashedProbit(gpx.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = ε + (1 − 2ε) Φ(f); GPJax's has ε = 1e-3."""

    squash: float = eqx.field(static=True, default=0.0)

    def __init__(self, squash: float) -> None:
        super().__init__()
        self.squash = squash

    def link_function(self, f: Any) -> Any:
        """Return p(y | f)."""
        p = self.squash + (1.0 - 2.0 * self.squash) * jax.scipy.special.ndtr(f)
        return npd.Bernoulli(probs=p)


def to_gpjax(path: str | Path) -> Any:
    """Return the whitened family of a posterior in a file; its data are in the model's units.

    Raises `UserError` if the file is not an exported posterior, if GPJax has no such model, or if JAX has
    no float64.
    """
    if not jax.config.jax_enable_x64:
        raise UserError("JAX has no float64 here; set JAX_ENABLE_X64=1 before it is imported")
    w = load_whitened(path)
    if len(w.mean) > 1:
        raise UserError(f"{path}: {len(w.mean)} latent functions; families of GPJax have one")
    if w.kernel not in KERNELS:
        raise UserError(f"{path}: GPJax has no kernel {w.kernel!r} as svgpbench has it")
    scales = w.lengthscales if len(w.lengthscales) > 1 else w.lengthscales[0]
    kernel = KERNELS[w.kernel](
        lengthscale=jnp.asarray(scales), variance=jnp.asarray(w.variance), n_dims=w.Z.shape[1]
    )
    prior = gpx.gps.Prior(kernel, gpx.mean_functions.Zero(), jitter=0.0)
    return JitteredGaussian(prior * _likelihood(path, w), w)


def from_gpjax(family: Any, path: str | Path, table: Table | None = None) -> Path:
    """Write the posterior of a `VariationalGaussian`, whitened or not, to an .npz file.

    GPJax's own families also add the prior's jitter to the variances at X, and predictions from the file
    lack it. Predictions of a family from `to_gpjax` do not change.

    Args:
        family: a family with a kernel of `KERNELS` on all inputs, and mean 0.
        path: path of the file.
        table: scaling of the table from which the model's inputs and targets were made; none by default.

    Raises:
        UserError: if svgpbench has no such model, with the part that it lacks.
    """
    kinds = (JitteredGaussian, WhitenedVariationalGaussian, VariationalGaussian)
    if type(family) not in kinds:
        raise UserError(f"{type(family).__name__}: only Gaussians by mean and root cross")
    prior, jitter = family.model.prior, float(getattr(family, "jitter", family.model.prior.jitter))
    if type(prior.mean_function) is not gpx.mean_functions.Zero:
        raise UserError(f"mean {type(prior.mean_function).__name__}: svgpbench's is 0")
    Z = np.asarray(val(family.inducing_inputs), dtype=np.float64)
    mean = np.asarray(val(family.variational_mean), dtype=np.float64).T  # [1, M]
    chol = np.asarray(val(family.variational_root_covariance), dtype=np.float64)[None]
    if type(family) is VariationalGaussian:
        K = np.asarray(prior.kernel.gram(jnp.asarray(Z)).as_matrix()) + jitter * np.eye(len(Z))
        mean, chol = whiten(K, mean, chol)
    likelihood, parameters = _said(family.model.likelihood)
    return save_whitened(
        Whitened(
            named_kernel(prior.kernel, KERNELS),
            float(val(prior.kernel.variance)),
            np.ravel(np.asarray(val(prior.kernel.lengthscale), dtype=np.float64)),
            likelihood,
            parameters,
            jitter,
            Z,
            mean,
            with_positive_diagonal(chol),
            table or plain_table(Z.shape[1]),
        ),
        path,
    )


def _likelihood(path: str | Path, w: Whitened) -> Any:
    if w.likelihood == "gaussian":
        return gpx.likelihoods.Gaussian(jnp.sqrt(w.parameters["noise_variance"]))
    if w.likelihood == "bernoulli-probit":
        squash = w.parameters["squash"]
        plain = squash == OWN_SQUASH
        return gpx.likelihoods.Bernoulli() if plain else SquashedProbit(squash)
    raise UserError(f"{path}: likelihood {w.likelihood!r} does not cross to GPJax")


def _said(likelihood: Any) -> tuple[str, dict[str, float]]:
    if type(likelihood) is gpx.likelihoods.Gaussian:
        return "gaussian", {"noise_variance": float(val(likelihood.obs_stddev)) ** 2}
    if isinstance(likelihood, SquashedProbit):
        return "bernoulli-probit", {"squash": likelihood.squash}
    if type(likelihood) is gpx.likelihoods.Bernoulli:
        return "bernoulli-probit", {"squash": OWN_SQUASH}
    raise UserError(f"likelihood {type(likelihood).__name__}: svgpbench has none that is the same")
