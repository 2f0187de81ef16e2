"""Adapter of GPyTorch: `ApproximateGP` with `NGD` on natural parameters. It has no Poisson likelihood."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    NaturalVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)

from svgp_reference import Problem

torch.set_default_dtype(torch.float64)

library = f"GPyTorch {gpytorch.__version__}"


class FixedJitter(VariationalStrategy):
    """Strategy with the jitter on K(Z, Z) alone. GPyTorch's own also goes on the data's variances."""

    def __init__(self, *args: Any, jitter: float, **options: Any) -> None:
        super().__init__(*args, jitter_val=0.0, **options)
        self.jitter = jitter

    def _cholesky_factor(self, covariance: Any) -> Any:
        return super()._cholesky_factor(covariance.add_jitter(self.jitter))


def _likelihood(problem: Problem) -> Any:
    p, kinds = problem.likelihood_parameters, gpytorch.likelihoods
    if problem.likelihood == "poisson":
        raise NotImplementedError("GPyTorch has no Poisson likelihood")
    with gpytorch.settings.num_gauss_hermite_locs(problem.info["gauss_hermite_nodes"] or 20):
        if problem.likelihood == "gaussian":
            likelihood = kinds.GaussianLikelihood()
            likelihood.noise = p["noise_variance"]
        elif problem.likelihood == "bernoulli-probit":
            likelihood = kinds.BernoulliLikelihood()
        else:
            likelihood = kinds.StudentTLikelihood()
            likelihood.noise, likelihood.deg_free = p["scale"] ** 2, p["degrees_of_freedom"]
    return likelihood


class SVGP(gpytorch.models.ApproximateGP):
    """SVGP of a problem, with one of GPyTorch's distributions for q."""

    def __init__(
        self, problem: Problem, distribution: Any = CholeskyVariationalDistribution
    ) -> None:
        Z, M = torch.tensor(problem.Z), len(problem.Z)
        q = distribution(M, mean_init_std=0.0)
        if problem.whitened:
            strategy = FixedJitter(self, Z, q, jitter=problem.jitter)
        else:
            strategy = UnwhitenedVariationalStrategy(self, Z, q, jitter_val=problem.jitter)
        super().__init__(strategy)
        self.problem, self.q = problem, q
        self.mean_module = gpytorch.means.ConstantMean()
        self.mean_module.initialize(constant=problem.mean_constant)
        scales = problem.lengthscales
        ard = len(scales) if len(scales) > 1 else None
        if problem.kernel == "se":
            base: Any = gpytorch.kernels.RBFKernel(ard_num_dims=ard)
        else:
            nu = {"matern32": 1.5, "matern52": 2.5}[problem.kernel]
            base = gpytorch.kernels.MaternKernel(nu=nu, ard_num_dims=ard)
        base.lengthscale = torch.tensor(scales)
        self.covar_module = gpytorch.kernels.ScaleKernel(base)
        self.covar_module.outputscale = problem.variance
        self.likelihood = _likelihood(problem)
        self(Z)  # the first call sets q to p
        mean, factor = torch.tensor(problem.q_mean), torch.tensor(problem.q_factor)
        if not problem.whitened:
            mean = mean + problem.mean_constant  # its u is f(Z)
        exact = gpytorch.distributions.MultivariateNormal(mean, factor @ factor.T)
        q.initialize_variational_distribution(exact)

    def forward(self, x: torch.Tensor) -> Any:
        """Return the prior at x."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def parts(self) -> dict[str, Any]:
        """Return the bound and its parts; `VariationalELBO` is the bound divided by n."""
        n = self.problem.n
        X, y = torch.tensor(self.problem.X_batch), torch.tensor(self.problem.y_batch)
        f = self(X)
        return {
            "bound": n * gpytorch.mlls.VariationalELBO(self.likelihood, self, n)(f, y),
            "kl": self.variational_strategy.kl_divergence(),
            "expected_log_likelihood": self.likelihood.expected_log_prob(y, f),
        }


build = SVGP


def bound(model: SVGP) -> dict[str, Any]:
    """Return the bound and its parts."""
    with torch.no_grad():
        return {name: value.numpy() for name, value in model.parts().items()}


def predict(model: SVGP, X: Any) -> dict[str, Any]:
    """Return the marginals of q(f), and the log density of the problem's test targets."""
    model.eval()
    with torch.no_grad():
        f = model(torch.tensor(X))
        density = model.likelihood.log_marginal(torch.tensor(model.problem.y_test), f)
        return {
            "mean": f.mean.numpy(),
            "variance": f.variance.numpy(),
            "log_density": density.numpy(),
        }


def step(model: SVGP, gamma: float) -> SVGP:
    """Take one natural-gradient step."""
    if not isinstance(model.q, NaturalVariationalDistribution):
        model = SVGP(model.problem, NaturalVariationalDistribution)
    for parameter in model.hyperparameters():
        parameter.requires_grad_(False)
    natural = gpytorch.optim.NGD(
        list(model.variational_parameters()), num_data=model.problem.n, lr=gamma
    )
    natural.zero_grad()
    (-model.parts()["bound"] / model.problem.n).backward()
    natural.step()
    return model


def gradient(model: SVGP) -> dict[str, Any]:
    """Return the gradient of the bound in constrained parameters."""
    base, scaled, likelihood = model.covar_module.base_kernel, model.covar_module, model.likelihood
    positive = {
        "variance": (scaled.raw_outputscale, scaled.raw_outputscale_constraint),
        "lengthscales": (base.raw_lengthscale, base.raw_lengthscale_constraint),
    }
    if model.problem.likelihood == "gaussian":
        noise = likelihood.noise_covar
        positive["noise_variance"] = (noise.raw_noise, noise.raw_noise_constraint)
    elif model.problem.likelihood == "student-t":
        positive["scale"] = (likelihood.raw_noise, likelihood.raw_noise_constraint)
    model.parts()["bound"].backward()
    q = model.q
    found = {
        "mean_constant": model.mean_module.raw_constant.grad,
        "Z": model.variational_strategy.inducing_points.grad,
        "q_mean": q.variational_mean.grad,
        "q_factor": q.chol_variational_covar.grad,
    }
    for name, (raw, constraint) in positive.items():
        copy = raw.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(constraint.transform(copy).sum(), copy)
        found[name] = raw.grad / slope
    values = {name: x.numpy() for name, x in found.items()}
    shapes: dict[str, Any] = {"lengthscales": -1}
    values |= {k: values[k].reshape(shapes.get(k, ())) for k in positive}
    if "scale" in values:  # the parameter is scale²
        values["scale"] = 2.0 * model.problem.likelihood_parameters["scale"] * values["scale"]
    if not model.problem.whitened:  # u has the constant mean in it
        values["mean_constant"] = values["mean_constant"] + np.sum(values["q_mean"])
    return values
