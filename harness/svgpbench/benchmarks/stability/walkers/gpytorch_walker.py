"""GPyTorch's NGD on its whitened strategy, as in its own notebook, with either natural distribution.

Method `ngd` uses `NaturalVariationalDistribution`. Method `ngd-tril` uses
`TrilNaturalVariationalDistribution`, which GPyTorch's documentation calls more stable. Expectations without
a closed form use as many samples as in the other libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
SAMPLES = 100


def versions() -> dict[str, str]:
    """Return the versions of the library and its dependencies."""
    import gpytorch
    import torch

    return {"gpytorch": gpytorch.__version__, "torch": torch.__version__, "numpy": np.__version__}


class GPyTorch:
    """Walker of an `ApproximateGP`, at its start, q = p."""

    def __init__(self, arrays: dict[str, Any], request: dict[str, Any]) -> None:
        import gpytorch
        import torch

        torch.set_num_threads(request["threads"])
        torch.manual_seed(request["seed"])
        dtype = getattr(torch, request["dtype"])
        torch.set_default_dtype(dtype)
        gpytorch.settings.num_likelihood_samples._set_value(SAMPLES)
        self.torch, self.rows, self.checked = torch, arrays["rows"], arrays["checked"]
        self.X = torch.as_tensor(arrays["X"], dtype=dtype)
        name, classes = str(arrays["likelihood"]), int(arrays["classes"])
        self.y = torch.as_tensor(arrays["y"], dtype=torch.long if classes else dtype)
        self.model = svgp(arrays, request, classes)
        likelihoods = gpytorch.likelihoods
        self.likelihood = {
            "gaussian": likelihoods.GaussianLikelihood,
            "bernoulli-probit": likelihoods.BernoulliLikelihood,
            "softmax": lambda: likelihoods.SoftmaxLikelihood(
                num_features=classes, num_classes=classes, mixing_weights=False
            ),
        }[name]()
        if name == "gaussian":
            self.likelihood.noise = float(arrays["noise_variance"])
        self.likelihood.requires_grad_(False)
        self.n = len(self.y)
        self.elbo = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, num_data=self.n)
        self.parameters = list(self.model.variational_parameters())
        self.ngd = gpytorch.optim.NGD(self.parameters, num_data=self.n, lr=request["rate"])
        self.bound()  # the first call sets q to the prior

    def step(self, k: int) -> None:
        """Take one step of NGD, then evaluate q, which raises if its precision is not positive definite."""
        rows = self.rows[k]
        self.ngd.zero_grad()
        (-self.elbo(self.model(self.X[rows]), self.y[rows])).backward()
        self.ngd.step()
        with self.torch.no_grad():
            self.model.variational_strategy.variational_distribution  # noqa: B018

    def bound(self) -> float:
        """Return the ELBO for all data, from the checked rows."""
        rows = self.checked
        with self.torch.no_grad():
            return self.n * float(self.elbo(self.model(self.X[rows]), self.y[rows]))

    def state(self) -> Any:
        """Return the natural parameters of q."""
        return [x.detach().clone().numpy() for x in self.parameters]

    def restore(self, state: Any) -> None:
        """Set the natural parameters of q."""
        with self.torch.no_grad():
            for parameter, value in zip(self.parameters, state):  # noqa: B905
                parameter.copy_(self.torch.as_tensor(value))

    def variances(self, k: int) -> Floats:
        """Return the variances of q(f) at minibatch `k`, [b] or [P, b].

        GPyTorch's `variance` is not used, because it raises small ones to a least value.
        """
        with self.torch.no_grad():
            q = self.model(self.X[self.rows[k]])
            found: Floats = q.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2).numpy()
            return found


def svgp(arrays: dict[str, Any], request: dict[str, Any], classes: int) -> Any:
    """Build the model. The latent functions of several classes share the kernel and the inducing inputs."""
    import gpytorch
    import torch

    kinds = {
        "ngd": gpytorch.variational.NaturalVariationalDistribution,
        "ngd-tril": gpytorch.variational.TrilNaturalVariationalDistribution,
    }

    class SVGP(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            Z = torch.as_tensor(arrays["Z"][: request["inducing"]])
            Z = Z.to(torch.get_default_dtype())
            shape = torch.Size([classes] if classes else [])
            q = kinds[request["method"]](len(Z), batch_shape=shape, mean_init_std=0.0)
            strategy = gpytorch.variational.VariationalStrategy(
                self, Z, q, learn_inducing_locations=False, jitter_val=request["jitter"]
            )
            if classes:
                strategy = gpytorch.variational.IndependentMultitaskVariationalStrategy(
                    strategy, num_tasks=classes
                )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.MaternKernel(nu=2.5)
            base.lengthscale = float(arrays["lengthscale"])
            self.covar_module = gpytorch.kernels.ScaleKernel(base)
            self.covar_module.outputscale = float(arrays["variance"])
            self.covar_module.requires_grad_(False)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    return SVGP()


def build(arrays: dict[str, Any], request: dict[str, Any]) -> GPyTorch:
    """Return a walker at its start."""
    return GPyTorch(arrays, request)
