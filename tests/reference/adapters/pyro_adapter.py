"""Adapter of Pyro's VariationalSparseGP.

With Gaussian noise the bound is Pyro's own. With other likelihoods Pyro draws one sample of f; here its
log p(y | f) is summed at the nodes of the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyro
import torch
from pyro.contrib import gp
from pyro.infer import TraceMeanField_ELBO
from pyro.nn import PyroParam

from svgp_reference import Problem

library = f"Pyro {pyro.__version__}"

KERNELS = {"se": gp.kernels.RBF, "matern32": gp.kernels.Matern32, "matern52": gp.kernels.Matern52}
LIKELIHOODS = {
    "gaussian": gp.likelihoods.Gaussian,
    "bernoulli-probit": lambda: gp.likelihoods.Binary(torch.special.ndtr),
    "poisson": gp.likelihoods.Poisson,
}
Model = gp.models.VariationalSparseGP
torch.set_default_dtype(torch.float64)


def build(problem: Problem) -> Model:
    if problem.likelihood not in LIKELIHOODS:
        raise NotImplementedError(f"Pyro has no likelihood {problem.likelihood}")
    pyro.clear_param_store()  # it keeps parameters by name, those of the last problem too
    kernel = KERNELS[problem.kernel](problem.Z.shape[1])
    likelihood = LIKELIHOODS[problem.likelihood]()
    constant = torch.tensor(problem.mean_constant, requires_grad=True)
    model = Model(
        tensor(problem.X_batch),
        tensor(problem.y_batch),
        kernel,
        tensor(problem.Z),
        likelihood,
        lambda X: constant.expand(len(X)),
        num_data=problem.n,
        whiten=problem.whitened,
        jitter=problem.jitter,
    )
    # without a transformation, so that gradients are in constrained parameters
    kernel.variance = PyroParam(tensor(problem.variance))
    kernel.lengthscale = PyroParam(tensor(problem.lengthscales))
    model.u_loc.data = tensor(problem.q_mean)
    model.u_scale_tril = PyroParam(tensor(problem.q_factor))
    if problem.likelihood == "gaussian":
        noise = problem.likelihood_parameters["noise_variance"]
        likelihood.variance = PyroParam(tensor(noise))
    model.problem, model.constants = problem, [constant]
    return model


def bound(model: Model) -> dict[str, Any]:
    return {name: value.detach().numpy() for name, value in parts(model).items()}


def predict(model: Model, X: np.ndarray) -> dict[str, Any]:
    with torch.no_grad():
        mean, variance = model(tensor(X))
        y = tensor(model.problem.y_test)
        if model.problem.likelihood == "gaussian":
            density = log_likelihood(model, mean, variance, y)
        else:
            log_weights, log_p = at_nodes(model, mean, variance, y)
            density = torch.logsumexp(log_weights + log_p, 0)
    found = {"mean": mean, "variance": variance, "log_density": density}
    return {name: value.numpy() for name, value in found.items()}


def gradient(model: Model) -> dict[str, Any]:
    parameters = {
        "variance": model.kernel.variance,
        "lengthscales": model.kernel.lengthscale,
        "mean_constant": model.constants[0],
        "Z": model.Xu,
        "q_mean": model.u_loc,
        "q_factor": model.u_scale_tril,
    }
    if model.problem.likelihood == "gaussian":
        parameters["noise_variance"] = model.likelihood.variance
    slopes = torch.autograd.grad(parts(model)["bound"], list(parameters.values()))
    return {name: slope.numpy() for name, slope in zip(parameters, slopes, strict=True)}


def parts(model: Model) -> dict[str, torch.Tensor]:
    """Return the bound and its parts, with their graph."""
    mean, variance = model(model.X)
    if model.problem.likelihood == "gaussian":
        rows = log_likelihood(model, mean, variance, model.y)
        elbo = -TraceMeanField_ELBO().differentiable_loss(model.model, model.guide)
        kl = model.problem.scale * rows.sum() - elbo
    else:
        log_weights, log_p = at_nodes(model, mean, variance, model.y)
        rows = (log_weights.exp() * log_p).sum(0)
        prior, posterior = (
            pyro.poutine.trace(program).get_trace().nodes["u"]["fn"]
            for program in (model.model, model.guide)
        )
        kl = torch.distributions.kl_divergence(posterior, prior)
        elbo = model.problem.scale * rows.sum() - kl
    return {"bound": elbo, "expected_log_likelihood": rows, "kl": kl}


def at_nodes(
    model: Model, mean: torch.Tensor, variance: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log weights of Gauss-Hermite nodes [K, 1], and log p(y | f) there [K, b]."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(model.problem.info["gauss_hermite_nodes"])
    f = mean + variance.sqrt() * tensor(nodes)[:, None]
    # Pyro draws f with this variance: none, so that its log density is that of y at f
    return tensor(np.log(weights / weights.sum()))[:, None], log_likelihood(
        model, f, torch.full_like(f, 1e-300), y
    )


def log_likelihood(
    model: Model, mean: torch.Tensor, variance: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    """Return the log density of each target in the sample statement of Pyro's likelihood."""
    trace = pyro.poutine.trace(model.likelihood).get_trace(mean, variance, y)
    (observed,) = (x for x in trace.nodes.values() if x["type"] == "sample" and x["is_observed"])
    return observed["fn"].base_dist.log_prob(y)


def tensor(array: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(array, dtype=np.float64))
