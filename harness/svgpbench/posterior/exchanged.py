"""Export of a posterior to the form that other libraries read and write, and import from it.

An imported posterior is that of whitened q-SVGP, whatever method trained it. Its q(u) and predictions are
the same. The form lacks parts that predictions do not need, such as sites or the training's trace.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from svgpbench.config import KernelConfig, LikelihoodConfig, MethodConfig
from svgpbench.errors import UserError
from svgpbench.kernels import Theta
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.libraries.whitened import (
    LIKELIHOODS,
    ExportedPosterior,
    TableScaling,
    load_whitened,
    lower_factor,
    save_whitened,
)
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import CoupledMethod
from svgpbench.methods.mean_covariance import MeanCholesky, QState
from svgpbench.posterior.posterior import Posterior, TrainingFacts


def export_posterior(posterior: Posterior, path: str | Path) -> Path:
    """Write a posterior to an .npz file from which `svgpbench.libraries` builds another library's model.

    The file has θ, Z and the whitened q(u) = N(m, LLᵀ) of one set of inducing inputs.

    Args:
        posterior: what `fit` returned.
        path: the .npz file.

    Raises:
        UserError: with the reason, if the posterior has no such form: two bases, a basis of functions, a
            compound kernel, a bound or a likelihood that other libraries do not have; or if the path is
            not .npz.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> from svgpbench.api import export_posterior, fit, import_posterior
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     back = import_posterior(export_posterior(posterior, f"{folder}/sine.npz"))
        >>> bool(np.allclose(back.predict(X), posterior.predict(X)))
        True
    """
    return save_whitened(whitened(posterior), path)


def import_posterior(path: str | Path) -> Posterior:
    """Return the posterior that `svgpbench.libraries` wrote from another library, as q-SVGP's.

    Args:
        path: the .npz file, also one of `export_posterior`.

    Raises:
        UserError: if the file is not an exported posterior, or if its kernel is unknown.

    Examples:
        See `export_posterior`.
    """
    exchanged = load_whitened(path)
    likelihood = LikelihoodConfig.model_validate(
        {"name": exchanged.likelihood, **exchanged.parameters}
    )
    # with one input both kinds are the same; as ARD its lengthscale is shown in the input's unit
    table, ard = exchanged.table, len(exchanged.lengthscales) > 1 or exchanged.Z.shape[1] == 1
    facts = TrainingFacts(
        kernel=KernelConfig(name=exchanged.kernel, ard=ard),
        likelihood=likelihood,
        method=MethodConfig(name="q-svgp", options={"whiten": True}),
        jitter=exchanged.jitter,
        seed=0,
        n=table.rows,
        features=table.features,
        class_labels=table.class_labels or None,
        y_mean=table.y_mean,
        y_scale=table.y_scale,
    )
    scales = KernelParameters(np.array([exchanged.variance]), exchanged.lengthscales[None])
    parameters = build_likelihood(likelihood).initial_parameters()
    theta = Theta(scales, parameters, exchanged.Z, exchanged.latent_mean)
    state = QState(MeanCholesky(exchanged.mean, exchanged.chol), (), np.zeros(()))
    posterior = Posterior(facts, theta, state, table.x_mean, table.x_scale)
    _ = posterior.model  # raises if the kernel is unknown
    return posterior


def whitened(posterior: Posterior) -> ExportedPosterior:
    """Return the exported form; raises `UserError` with the reason if a posterior has none."""
    _refuse(posterior)
    facts, theta = posterior.facts, posterior.theta
    mean, covariance = posterior.whitened_moments()
    chol = lower_factor(covariance, "the covariance of q(u)")
    options, learned = posterior.model.likelihood, theta.likelihood._asdict()
    parameters = {
        key: kind(learned.get(key, getattr(options, key)))
        for key, kind in LIKELIHOODS[facts.likelihood.name].items()
    }
    return ExportedPosterior(
        facts.kernel.name,
        float(theta.kernel.variance[0]),
        theta.kernel.lengthscales[0],
        facts.likelihood.name,
        parameters,
        facts.jitter,
        theta.inducing,
        mean,
        chol,
        TableScaling(
            facts.features,
            posterior.x_mean,
            posterior.x_scale,
            facts.y_mean,
            facts.y_scale,
            facts.class_labels or (),
            facts.n,
        ),
        theta.mean,
    )


def _refuse(posterior: Posterior) -> None:
    facts, method = posterior.facts, posterior.method
    why = ""
    if facts.functions == "features":
        why = "its basis is functions, and libraries' inducing variables are points"
    elif method.basis == "decoupled":
        why = f"method {method.name!r} has two bases, and libraries' SVGP has one"
    elif not isinstance(method, CoupledMethod):
        why = f"method {method.name!r} keeps a site a datum, and has no q(u)"
    elif getattr(method, "residual_variance", "prior") != "prior":
        why = "its bound has a residual variance of its own, and libraries' has the prior's"
    elif facts.kernel.parts:
        why = f"its kernel is a {facts.kernel.name}, and one kernel of one set of lengthscales crosses"
    elif facts.kernel.options:
        why = f"kernel {facts.kernel.name!r} has options of its own"
    elif facts.likelihood.name not in LIKELIHOODS:
        why = f"likelihood {facts.likelihood.name!r} is none of {', '.join(LIKELIHOODS)}"
    if why:
        raise UserError(f"the posterior does not cross to another library: {why}")
