"""Conversion between exported posteriors and SVGPs of GPyTorch. Requires GPyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpytorch
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    IndependentMultitaskVariationalStrategy,
    LargeBatchVariationalStrategy,
    VariationalStrategy,
)

from svgpbench.errors import UserError
from svgpbench.libraries.whitened import (
    Table,
    Whitened,
    load_whitened,
    lower_factor,
    plain_table,
    save_whitened,
)

FLOOR = 1e-6
"""Lower limit of the noise variance, below svgpbench's smallest; GPyTorch's default is 1e-4."""

SMOOTHNESS = {"matern32": 1.5, "matern52": 2.5}


class JitteredStrategy(VariationalStrategy):
    """Strategy with a jitter on K(Z, Z) alone; GPyTorch's is also added to the variances at X."""

    def __init__(self, *args: Any, jitter: float, **options: Any) -> None:
        super().__init__(*args, jitter_val=0.0, **options)
        self.jitter = jitter

    def _cholesky_factor(self, covariance: Any) -> Any:
        return super()._cholesky_factor(covariance.add_jitter(self.jitter))


class SquashedProbit(gpytorch.likelihoods.BernoulliLikelihood):
    """Likelihood p(y = 1 | f) = ε + (1 − 2ε) Φ(f); GPyTorch's has ε = 0."""

    def __init__(self, squash: float) -> None:
        super().__init__()
        self.squash = squash

    def probability(self, f: torch.Tensor) -> torch.Tensor:
        """Return p(y = 1 | f)."""
        return self.squash + (1.0 - 2.0 * self.squash) * torch.special.ndtr(f)

    def forward(self, f: torch.Tensor, *args: Any, **options: Any) -> Any:
        """Return p(y | f)."""
        return torch.distributions.Bernoulli(probs=self.probability(f))

    def marginal(self, q: Any, *args: Any, **options: Any) -> Any:
        """Return p(y) under q in closed form, as the base class does."""
        p = self.probability(q.mean / torch.sqrt(1.0 + q.variance))
        return torch.distributions.Bernoulli(probs=p)

    def log_marginal(self, y: torch.Tensor, q: Any, *args: Any, **options: Any) -> Any:
        """Return log p(y) under q, for labels 0 and 1."""
        return self.marginal(q).log_prob(y)

    def expected_log_prob(self, y: torch.Tensor, q: Any, *args: Any, **options: Any) -> Any:
        """Return E_q[log p(y | f)] by quadrature, as the base class does; y is 0 or 1."""
        return self.quadrature(lambda f: torch.log(self.probability((2.0 * y - 1.0) * f)), q)


class SVGP(gpytorch.models.ApproximateGP):
    """Model of a posterior in a file, in float64; its likelihood is the attribute `likelihood`."""

    def __init__(self, w: Whitened, kernel: Any, likelihood: Any) -> None:
        latents, inducing = w.mean.shape
        batch = torch.Size([latents] if latents > 1 else [])
        q = CholeskyVariationalDistribution(inducing, batch, mean_init_std=0.0)
        strategy = JitteredStrategy(self, torch.as_tensor(w.Z), q, jitter=w.jitter)
        super().__init__(
            IndependentMultitaskVariationalStrategy(strategy, latents) if batch else strategy
        )
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module, self.likelihood = kernel, likelihood
        self.double()
        with torch.no_grad():
            q.variational_mean.copy_(torch.as_tensor(w.mean).reshape(q.variational_mean.shape))
            chol = q.chol_variational_covar
            chol.copy_(torch.as_tensor(w.chol).reshape(chol.shape))
            strategy.variational_params_initialized.fill_(1)  # else a first call resets q to p

    def forward(self, x: torch.Tensor) -> Any:
        """Return the prior at x."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def to_gpytorch(path: str | Path) -> SVGP:
    """Return the `ApproximateGP` of a posterior in a file; its data are in the model's units.

    Raises `UserError` if the file is not an exported posterior, or if GPyTorch lacks its kernel or
    likelihood.
    """
    w = load_whitened(path)
    model = SVGP(w, _kernel(path, w), _likelihood(path, w))
    kernel, given = model.covar_module, w.parameters
    kernel.base_kernel.lengthscale = torch.as_tensor(w.lengthscales)
    kernel.outputscale = torch.tensor(w.variance, dtype=torch.float64)
    if w.likelihood == "gaussian":
        model.likelihood.noise = torch.tensor(given["noise_variance"], dtype=torch.float64)
    return model


def from_gpytorch(
    model: Any, path: str | Path, table: Table | None = None, *, likelihood: Any = None
) -> Path:
    """Write the posterior of a whitened `ApproximateGP` to an .npz file.

    GPyTorch's own strategies also add their jitter to the variances at X, and predictions from the file
    lack it. Predictions of a model from `to_gpytorch` do not change.

    Args:
        model: a model with `covar_module` and `mean_module`, as in GPyTorch's examples.
        path: path of the file.
        table: scaling of the table from which the model's inputs and targets were made; none by default.
        likelihood: the likelihood, if the model has no attribute `likelihood`.

    Raises:
        UserError: if svgpbench has no such model, with the part that it lacks.
    """
    if not isinstance(model, gpytorch.models.ApproximateGP):
        raise UserError(f"{type(model).__name__}: only an ApproximateGP crosses")
    strategy = model.variational_strategy
    strategy = getattr(strategy, "base_variational_strategy", strategy)
    if type(strategy) not in (JitteredStrategy, VariationalStrategy, LargeBatchVariationalStrategy):
        raise UserError(f"{type(strategy).__name__}: only the whitened VariationalStrategy crosses")
    if not isinstance(model.mean_module, gpytorch.means.ZeroMean):
        raise UserError(f"mean {type(model.mean_module).__name__}: svgpbench's is 0")
    q = strategy._variational_distribution()
    if not isinstance(q, gpytorch.distributions.MultivariateNormal):
        raise UserError(f"q(u) {type(q).__name__}: only a Gaussian with a covariance crosses")
    Z = _numbers(strategy.inducing_points)
    if Z.ndim > 2:
        raise UserError("inducing points of several latents: svgpbench has one set for all")
    name, variance, lengthscales = _said_kernel(model.covar_module)
    word, parameters = _said(likelihood or getattr(model, "likelihood", None))
    covariance = _numbers(q.covariance_matrix).reshape(-1, len(Z), len(Z))
    return save_whitened(
        Whitened(
            name,
            variance,
            lengthscales,
            word,
            parameters,
            float(getattr(strategy, "jitter", strategy.jitter_val)),
            Z,
            _numbers(q.mean).reshape(-1, len(Z)),
            lower_factor(covariance, "the covariance of q(u)"),
            table or plain_table(Z.shape[1]),
        ),
        path,
    )


def _numbers(x: torch.Tensor) -> Any:
    return x.detach().cpu().to(torch.float64).numpy()


def _kernel(path: str | Path, w: Whitened) -> Any:
    dimensions = len(w.lengthscales) if len(w.lengthscales) > 1 else None
    if w.kernel == "se":
        shape = gpytorch.kernels.RBFKernel(ard_num_dims=dimensions)
    elif w.kernel in SMOOTHNESS:
        nu = SMOOTHNESS[w.kernel]
        shape = gpytorch.kernels.MaternKernel(nu=nu, ard_num_dims=dimensions)
    else:
        raise UserError(f"{path}: GPyTorch has no kernel {w.kernel!r} as svgpbench has it")
    return gpytorch.kernels.ScaleKernel(shape)


def _likelihood(path: str | Path, w: Whitened) -> Any:
    kinds = gpytorch.likelihoods
    if w.likelihood == "gaussian":
        return kinds.GaussianLikelihood(noise_constraint=GreaterThan(FLOOR))
    if w.likelihood == "bernoulli-probit":
        squash = w.parameters["squash"]
        return SquashedProbit(squash) if squash else kinds.BernoulliLikelihood()
    if w.likelihood == "softmax":
        return kinds.SoftmaxLikelihood(
            num_classes=int(w.parameters["classes"]), mixing_weights=False
        )
    raise UserError(f"{path}: likelihood {w.likelihood!r} does not cross to GPyTorch")


def _said_kernel(kernel: Any) -> tuple[str, float, Any]:
    """Return name, variance and lengthscales [D] or [1] of a kernel."""
    scaled = isinstance(kernel, gpytorch.kernels.ScaleKernel)
    shape = kernel.base_kernel if scaled else kernel
    names = {("RBFKernel", None): "se"} | {
        ("MaternKernel", nu): name for name, nu in SMOOTHNESS.items()
    }
    name = names.get((type(shape).__name__, getattr(shape, "nu", None)))
    parts = (kernel, shape)
    plain = all(part.active_dims is None and not len(part.batch_shape) for part in parts)
    if name is None or not plain:
        what = type(shape).__name__
        raise UserError(f"kernel {what}: only RBF and Matérn 3/2 and 5/2 on all inputs cross")
    variance = float(_numbers(kernel.outputscale)) if scaled else 1.0
    return name, variance, _numbers(shape.lengthscale).reshape(-1)


def _said(likelihood: Any) -> tuple[str, dict[str, float]]:
    kinds = gpytorch.likelihoods
    if type(likelihood) is kinds.GaussianLikelihood:
        return "gaussian", {"noise_variance": float(_numbers(likelihood.noise).item())}
    if isinstance(likelihood, SquashedProbit):
        return "bernoulli-probit", {"squash": likelihood.squash}
    if type(likelihood) is kinds.BernoulliLikelihood:
        return "bernoulli-probit", {"squash": 0.0}
    if type(likelihood) is kinds.SoftmaxLikelihood and likelihood.mixing_weights is None:
        # GPyTorch's count of draws is a global setting
        samples = gpytorch.settings.num_likelihood_samples.value()
        return "softmax", {"classes": int(likelihood.num_classes), "samples": int(samples)}
    raise UserError(f"likelihood {type(likelihood).__name__}: svgpbench has none that is the same")
