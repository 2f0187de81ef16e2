"""Adapter of GPyTorch: `ApproximateGP` with `NGD` on natural parameters."""

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


class LogPoisson(gpytorch.likelihoods.PoissonLikelihood):
    """Poisson likelihood with mean exp(f); GPyTorch's is softplus(f)."""

    def forward(self, function_samples: torch.Tensor, *args: Any, **options: Any) -> Any:
        """Return p(y | f)."""
        return torch.distributions.Poisson(function_samples.exp())


def _likelihood(problem: Problem) -> Any:
    p, kinds = problem.likelihood_parameters, gpytorch.likelihoods
    kind = {
        "gaussian": kinds.GaussianLikelihood,
        "bernoulli-probit": kinds.BernoulliLikelihood,
        "poisson": LogPoisson,
        "student-t": kinds.StudentTLikelihood,
    }[problem.likelihood]
    with gpytorch.settings.num_gauss_hermite_locs(problem.info["gauss_hermite_nodes"] or 20):
        likelihood = kind()
    if problem.likelihood == "gaussian":
        likelihood.noise = p["noise_variance"]
    elif problem.likelihood == "student-t":
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


def _constrained(module: Any, name: str) -> Any:
    """Return the gradient in a positive parameter from that in its raw one, and their slope."""
    raw = getattr(module, f"raw_{name}")
    (slope,) = torch.autograd.grad(getattr(module, name).sum(), raw)
    return (raw.grad / slope).numpy()


def gradient(model: SVGP) -> dict[str, Any]:
    """Return the gradient of the bound in constrained parameters."""
    model.parts()["bound"].backward()
    found = {
        "variance": _constrained(model.covar_module, "outputscale"),
        "lengthscales": _constrained(model.covar_module.base_kernel, "lengthscale")[0],
        "mean_constant": model.mean_module.raw_constant.grad.numpy(),
        "Z": model.variational_strategy.inducing_points.grad.numpy(),
        "q_mean": model.q.variational_mean.grad.numpy(),
        "q_factor": model.q.chol_variational_covar.grad.numpy(),
    }
    if model.problem.likelihood == "gaussian":
        found["noise_variance"] = _constrained(model.likelihood.noise_covar, "noise")[0]
    elif model.problem.likelihood == "student-t":  # its parameter is scale²
        scale = model.problem.likelihood_parameters["scale"]
        found["scale"] = 2.0 * scale * _constrained(model.likelihood, "noise")[0]
    if not model.problem.whitened:  # u has the constant mean in it
        found["mean_constant"] = found["mean_constant"] + np.sum(found["q_mean"])
    return found
