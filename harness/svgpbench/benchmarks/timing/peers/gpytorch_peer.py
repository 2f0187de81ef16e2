"""GPyTorch's SVGP, whitened: `NGD` on natural parameters for q, Adam for θ. Served by `serve.py`.

Method `ngd` uses `NaturalVariationalDistribution`. Method `tril-ngd` uses
`TrilNaturalVariationalDistribution`, which is cheaper to evaluate. Its steps follow the tangent of another
parameterization, so its E-steps have another result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpytorch
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.variational import (
    IndependentMultitaskVariationalStrategy,
    LargeBatchVariationalStrategy,
    NaturalVariationalDistribution,
    TrilNaturalVariationalDistribution,
    VariationalStrategy,
)

VERSIONS = ("gpytorch", "linear_operator", "torch", "numpy")
HELD = 8
SMALLEST_POSITIVE = 1e-6  # θ = floor + softplus(raw), as in svgpbench
ADAM_EPSILON = 1e-8
DISTRIBUTIONS = {
    "ngd": NaturalVariationalDistribution,
    "tril-ngd": TrilNaturalVariationalDistribution,
}
FUSED = 100_000
"""Entries of K(Z, X) from which torch.compile is tried. With fewer, a step is mostly dispatch."""

Call = Callable[[], Any]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def start(threads: int) -> None:
    """Set threads and precision. Parameters are made on a CUDA device if the process sees one."""
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float64)
    if torch.cuda.is_available():
        torch.set_default_device("cuda")


def build(problem: dict[str, Any], method: str, step: str) -> Step:
    """Return a step at its start. Raises `NotImplementedError` if its result differs from ours."""
    if method == "tril-ngd" and step.startswith("e"):
        raise NotImplementedError(
            "a step in the triangular factor is no natural-gradient step on q"
        )
    return Step(problem, method, step)


class Step:
    """Step of a model at its start."""

    def __init__(self, p: dict[str, Any], method: str, name: str) -> None:
        self.name, self.model = name, Model(p, NaturalVariationalDistribution)
        self.first = rows(p["X"], p["y"])
        self.later = [rows(X, y) for X, y in zip(p["X_later"], p["y_later"], strict=True)]
        self.new = rows(p["X_new"], p["y_new"])
        self.e_rate, self.m_rate = float(p["e_rate"]), float(p["m_rate"])
        if name in ("m_step", "predict"):
            e_step(self.model, negative_bound(self.model), self.e_rate)(*self.first)
            if method == "tril-ngd":
                self.model = self.model.with_triangular_factor(p)
        self.modes = {"eager": awaited(self.call())}
        if len(p["Z"]) * len(p["X"]) >= FUSED:
            self.modes["compiled"] = awaited(self.model.with_compiled_parts(self.call()))
        self.start = [x.detach().clone() for x in self.model.parameters()]

    def call(self) -> Call:
        """Return a call of the step on its batches."""
        model = self.model
        if self.name == "predict":
            return lambda: model.densities(*self.new)
        loss = negative_bound(model)
        natural, adam = e_step(model, loss, self.e_rate), m_step(model, loss, self.m_rate)
        steps = {
            "e_step": [(natural, self.first)],
            "e_step_held": [(natural, self.first)] * HELD,
            "m_step": [(adam, self.first)],
            "em_step": [(natural, b) for b in (self.first, *self.later[:-1])]
            + [(adam, self.later[-1])],
        }[self.name]

        def call() -> None:
            for step, batch in steps:
                step(*batch)

        return call

    def figure(self, result: Any) -> float:
        """Return the mean log density, or the bound on the batch after the step."""
        if self.name == "predict":
            return float(result[0].mean())
        batch = self.later[-1] if self.name == "em_step" else self.first
        bound: float = -self.model.n * negative_bound(self.model)(*batch).item()
        return bound

    def reset(self) -> None:
        """Set every parameter back to its start."""
        with torch.no_grad():
            for parameter, value in zip(self.model.parameters(), self.start, strict=True):
                parameter.copy_(value)


class Learner:
    """Model that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], method: str, mode: str) -> None:
        self.model = Model(p, DISTRIBUTIONS[method])
        self.loss = negative_bound(self.model)
        self.seen = rows(p["X"][p["checked"]], p["y"][p["checked"]])
        self.X_new, self.noise = torch.as_tensor(p["X_new"]), p["noise"]
        self.batches: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.natural = gpytorch.optim.NGD(self.model.q_parameters, self.model.n, float(p["e_rate"]))
        self.adam = started_adam(self.model, float(p["m_rate"]))
        self.e_step = descent(self.natural, self.model.theta, self.loss)
        self.m_step = descent(self.adam, self.model.q_parameters, self.loss)
        modes = {"eager": self.iterate}
        if len(p["Z"]) * p["rows"].shape[1] >= FUSED:
            modes["compiled"] = self.model.with_compiled_parts(self.iterate)
        self.modes = {name: awaited(c) for name, c in modes.items() if mode in ("", name)}
        self.start = [x.detach().clone() for x in self.model.parameters()]

    def iterate(self) -> None:
        """Run one iteration on the batches fed last."""
        for batch in self.batches[:-1]:
            self.e_step(*batch)
        self.m_step(*self.batches[-1])

    def feed(self, batches: Any, noise: Any) -> None:
        """Set the rows of each E-step and of the M-step, and their draws."""
        self.batches = [rows(*batch) for batch in batches]
        self.draw(noise)

    def draw(self, noise: Any) -> None:
        """Set the draws of the likelihood, if it samples."""
        if noise.size:
            self.model.likelihood.noise = torch.as_tensor(noise)

    def elbo(self) -> float:
        """Return the model's own bound from the checked rows."""
        self.draw(self.noise)
        with torch.no_grad():
            bound: float = -self.model.n * self.loss(*self.seen).item()
        return bound

    def figure(self, result: Any) -> float:
        """Return the bound after a call."""
        return self.elbo()

    def predict(self) -> tuple[Any, Any, Any]:
        """Return moments [P, t] of q(f) at the new rows, and the variance of Gaussian noise, or 0."""
        mean, variance = self.model.moments(self.X_new)
        likelihood = self.model.likelihood
        gaussian = isinstance(likelihood, gpytorch.likelihoods.GaussianLikelihood)
        return mean, variance, likelihood.noise.item() if gaussian else 0.0

    def reset(self) -> None:
        """Set the model and the optimizers back to their start."""
        with torch.no_grad():
            for parameter, value in zip(self.model.parameters(), self.start, strict=True):
                parameter.copy_(value)
        self.natural.state.clear()
        self.adam.state.clear()


learner = Learner


def rows(X: Any, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows on the device."""
    return torch.as_tensor(X), torch.as_tensor(y)


class Model(gpytorch.models.ApproximateGP):
    """Whitened SVGP with Matérn-5/2 at q = p, with the problem's jitter and a positive floor."""

    def __init__(self, p: dict[str, Any], distribution: Callable[..., Any]) -> None:
        Z, classes = torch.as_tensor(p["Z"]), int(p["classes"])
        latents = torch.Size([classes] if classes > 1 else [])
        q = distribution(len(Z), latents, mean_init_std=0.0)
        kind = LargeBatchStrategy if torch.cuda.is_available() else Strategy  # GPyTorch's advice
        strategy = kind(self, Z, q, jitter_val=0.0, jitter=float(p["jitter"]))
        super().__init__(
            IndependentMultitaskVariationalStrategy(strategy, classes) if latents else strategy
        )
        self.n, self.q = int(p["n"]), q
        floor = GreaterThan(SMALLEST_POSITIVE)
        matern = gpytorch.kernels.MaternKernel(
            nu=2.5, ard_num_dims=Z.shape[-1], lengthscale_constraint=floor
        )
        matern.lengthscale = torch.as_tensor(p["lengthscales"])
        self.covar_module = gpytorch.kernels.ScaleKernel(matern, outputscale_constraint=floor)
        self.covar_module.outputscale = float(p["variance"])
        self.mean_module = gpytorch.means.ZeroMean()
        if str(p["likelihood"]) == "gaussian":
            self.likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=floor)
            self.likelihood.noise = float(p["noise_variance"])
        elif latents:
            self.likelihood = Softmax(torch.as_tensor(p["noise"]))
        else:
            self.likelihood = SquashedProbit(float(p["squash"]))
        self(Z)  # the first call sets q to p
        self.q_parameters = list(self.variational_parameters())
        self.theta = list(self.hyperparameters())

    def forward(self, x: torch.Tensor) -> Any:
        """Return the prior at x."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def densities(self, X: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log predictive densities and mean predictions of new rows, computed from θ."""
        self.eval()
        self.variational_strategy._clear_cache()  # K(Z, Z) and its factor from an earlier call
        with torch.no_grad():
            f = self(X)
            predicted = self.likelihood(f)
            mean = (
                predicted.mean if self.likelihood.has_analytic_marginal else predicted.probs.mean(0)
            )
            return self.likelihood.log_marginal(y, f), mean

    def moments(self, X: torch.Tensor) -> tuple[Any, Any]:
        """Return mean and variance [P, t] of q(f) at new rows."""
        self.eval()
        self.variational_strategy._clear_cache()
        with torch.no_grad():
            f = self(X)
            found = tuple(x.cpu().reshape(len(X), -1).T.numpy() for x in (f.mean, f.variance))
        self.train()
        return found[0], found[1]

    def with_compiled_parts(self, step: Call) -> Call:
        """Return the step with kernel and quadrature compiled.

        The rest is not, because it breaks torch's graph at every line.
        """
        parts = [(self.covar_module.base_kernel, "forward")]
        if isinstance(self.likelihood, SquashedProbit):
            parts.append((self.likelihood, "expected_log_prob"))
        compiled = [(part, name, torch.compile(getattr(part, name))) for part, name in parts]

        def call() -> Any:
            for part, name, function in compiled:
                setattr(part, name, function)
            try:
                return step()
            finally:
                for part, name, _ in compiled:
                    delattr(part, name)

        return call

    def with_triangular_factor(self, p: dict[str, Any]) -> Model:
        """Return a model with the same q, given by a triangular factor of its precision."""
        model = Model(p, TrilNaturalVariationalDistribution)
        model.q.initialize_variational_distribution(self.q())
        return model


class FixedJitter(VariationalStrategy):
    """Strategy with the jitter on K(Z, Z) alone. GPyTorch's own also goes on the data's variances."""

    def __init__(self, *args: Any, jitter: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.jitter = jitter

    def _cholesky_factor(self, covariance: Any) -> Any:
        return super()._cholesky_factor(covariance.add_jitter(self.jitter))


class Strategy(FixedJitter):
    """Strategy of GPyTorch on the CPU."""


class LargeBatchStrategy(FixedJitter, LargeBatchVariationalStrategy):
    """Strategy of GPyTorch on data-centre GPUs."""


class SquashedProbit(gpytorch.likelihoods.BernoulliLikelihood):
    """Bernoulli with p(y = 1 | f) = ε + (1 − 2ε) Φ(f). GPyTorch's has ε = 0."""

    def __init__(self, squash: float) -> None:
        super().__init__()
        self.squash = squash

    def probability(self, f: torch.Tensor) -> torch.Tensor:
        """Return the probability of y = 1."""
        return self.squash + (1 - 2 * self.squash) * torch.special.ndtr(f)

    def marginal(self, q: Any, *args: Any, **options: Any) -> torch.distributions.Bernoulli:
        """Return the marginal in closed form, as in the base class."""
        return torch.distributions.Bernoulli(
            self.probability(q.mean / torch.sqrt(1 + q.variance)), validate_args=False
        )

    def expected_log_prob(self, y: torch.Tensor, q: Any, *args: Any, **options: Any) -> Any:
        """Return the expectation by quadrature, as in the base class."""
        return self.quadrature(lambda f: torch.log(self.probability((2 * y - 1) * f)), q)


class Softmax(gpytorch.likelihoods.SoftmaxLikelihood):
    """GPyTorch's softmax with the problem's draws, one set for all rows, in place of fresh ones."""

    def __init__(self, noise: torch.Tensor) -> None:
        super().__init__(num_classes=noise.shape[-1], mixing_weights=False)
        self.noise = noise

    def _draw_likelihood_samples(self, q: Any, *args: Any, **options: Any) -> Any:
        return self.forward(q.mean + torch.sqrt(q.variance) * self.noise[:, None, :])


def negative_bound(model: Model) -> Loss:
    """Return a function of the negative bound per datum, as `VariationalELBO` defines it."""
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model, model.n)
    return lambda X, y: -bound(model(X), y)


def e_step(model: Model, loss: Loss, rate: float) -> Callable[..., None]:
    """Return a natural-gradient step on a batch. No gradient goes to θ."""
    return descent(gpytorch.optim.NGD(model.q_parameters, model.n, rate), model.theta, loss)


def m_step(model: Model, loss: Loss, rate: float) -> Callable[..., None]:
    """Return a step of Adam on kernel, likelihood and inducing inputs. No gradient goes to q."""
    return descent(started_adam(model, rate), model.q_parameters, loss)


def started_adam(model: Model, rate: float) -> torch.optim.Adam:
    """Return Adam for all parameters but q."""
    epsilon = ADAM_EPSILON / model.n  # the loss is per datum
    return torch.optim.Adam(model.theta, rate, (0.9, 0.999), epsilon, fused=True)


def descent(
    optimizer: torch.optim.Optimizer, fixed: list[torch.nn.Parameter], loss: Loss
) -> Callable[..., None]:
    """Return a step of the optimizer on the loss of a batch. `fixed` gets no gradient."""
    learned = [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def step(X: torch.Tensor, y: torch.Tensor) -> None:
        for parameter in learned:
            parameter.requires_grad_(True)
        for parameter in fixed:
            parameter.requires_grad_(False)
        optimizer.zero_grad()
        loss(X, y).backward()
        optimizer.step()

    return step


def awaited(step: Call) -> Call:
    """Return a call of the step that waits for the device."""
    on_gpu = torch.cuda.is_available()

    def call() -> Any:
        result = step()
        if on_gpu:
            torch.cuda.synchronize()
        return result

    return call
