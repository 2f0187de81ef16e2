"""Timed steps, training, stability runs and exchanged posteriors of GPyTorch. Requires GPyTorch.

`serve.py` loads this file with the Python of GPyTorch's environment, which has none of svgpbench's packages.

The model is GPyTorch's whitened SVGP, with `NGD` on natural parameters for q and Adam for θ. Method `ngd`
uses `NaturalVariationalDistribution`. Method `tril-ngd` uses `TrilNaturalVariationalDistribution`, which is
cheaper to evaluate and which GPyTorch's documentation calls more stable. Its steps follow the tangent of
another parameterization, so its E-steps have another result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gpytorch
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    IndependentMultitaskVariationalStrategy,
    LargeBatchVariationalStrategy,
    NaturalVariationalDistribution,
    TrilNaturalVariationalDistribution,
    VariationalStrategy,
)

from svgpbench.errors import UserError
from svgpbench.libraries.steps import (
    ADAM_EPSILON,
    CACHED_ROWS,
    HELD_STEPS,
    SMALLEST_POSITIVE,
    rows_to_predict,
    timed_batches,
)
from svgpbench.libraries.whitened import (
    ExportedPosterior,
    TableScaling,
    foreign_likelihood,
    kernel_class,
    load_whitened,
    lower_factor,
    missing_likelihood,
    plain_table,
    save_whitened,
)

VERSIONS = ("gpytorch", "linear_operator", "torch", "numpy")
SAMPLES = 100  # of GPyTorch's own draws, as many as in the other libraries
DISTRIBUTIONS = {
    "ngd": NaturalVariationalDistribution,
    "tril-ngd": TrilNaturalVariationalDistribution,
}
FUSED = 100_000
"""Entries of K(Z, X) from which torch.compile is tried. With fewer, a step is mostly dispatch."""

KERNELS: dict[str, tuple[Any, dict[str, float]]] = {
    "se": (gpytorch.kernels.RBFKernel, {}),
    "matern32": (gpytorch.kernels.MaternKernel, {"nu": 1.5}),
    "matern52": (gpytorch.kernels.MaternKernel, {"nu": 2.5}),
}
"""Classes of kernels and their options, by svgpbench's names."""

Call = Callable[[], Any]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def start(threads: int) -> None:
    """Set threads and precision. Parameters are made on a CUDA device if the process sees one."""
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float64)
    if torch.cuda.is_available():
        torch.set_default_device("cuda")


# --- models ------------------------------------------------------------------------------------


class FixedJitter(VariationalStrategy):
    """Strategy with the jitter on K(Z, Z) alone. GPyTorch's own also goes on the data's variances."""

    def __init__(self, *args: Any, jitter: float, **options: Any) -> None:
        super().__init__(*args, jitter_val=0.0, **options)
        self.jitter = jitter

    def _cholesky_factor(self, covariance: Any) -> Any:
        return super()._cholesky_factor(covariance.add_jitter(self.jitter))


class LargeBatchFixedJitter(FixedJitter, LargeBatchVariationalStrategy):
    """`FixedJitter` with the strategy that GPyTorch advises for large batches on data-centre GPUs."""


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
        return torch.distributions.Bernoulli(probs=p, validate_args=False)

    def expected_log_prob(self, y: torch.Tensor, q: Any, *args: Any, **options: Any) -> Any:
        """Return E_q[log p(y | f)] by quadrature, as the base class does; y is 0 or 1."""
        # 1 − p(f) = p(−f) for this link; where p is near 1, the difference would lose digits
        return self.quadrature(lambda f: torch.log(self.probability((2.0 * y - 1.0) * f)), q)


class FixedDrawsSoftmax(gpytorch.likelihoods.SoftmaxLikelihood):
    """GPyTorch's softmax with the problem's draws, one set for all rows, in place of fresh ones."""

    def __init__(self, noise: torch.Tensor) -> None:
        super().__init__(num_classes=noise.shape[-1], mixing_weights=False)
        self.noise = noise

    def _draw_likelihood_samples(self, q: Any, *args: Any, **options: Any) -> Any:
        return self.forward(q.mean + torch.sqrt(q.variance) * self.noise[:, None, :])


class ZeroMeanGP(gpytorch.models.ApproximateGP):
    """Approximate GP with mean 0 and the kernel `covar_module`. Its latent functions are independent."""

    def __init__(self, strategy: VariationalStrategy, latents: int) -> None:
        super().__init__(
            IndependentMultitaskVariationalStrategy(strategy, latents) if latents > 1 else strategy
        )
        self.mean_module = gpytorch.means.ZeroMean()

    def forward(self, x: torch.Tensor) -> Any:
        """Return the prior at x."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def batch_shape(latents: int) -> torch.Size:
    """Return the batch shape of q. One latent function has no batch axis."""
    return torch.Size([latents] if latents > 1 else [])


class WhitenedSVGP(ZeroMeanGP):
    """Whitened SVGP with Matérn-5/2 at q = p.

    By default the jitter, the floor of positive parameters and the likelihood are svgpbench's, and a softmax
    uses the problem's draws. With `library_defaults` they are GPyTorch's, as in its notebooks: the jitter is
    also added to the variances at X, the probit is not squashed, and a softmax draws afresh. Its inducing
    inputs are fixed.
    """

    def __init__(
        self, p: dict[str, Any], distribution: Callable[..., Any], *, library_defaults: bool = False
    ) -> None:
        classes, jitter, scales = int(p["classes"]), float(p["jitter"]), p["lengthscales"]
        Z = torch.as_tensor(p["Z"], dtype=torch.get_default_dtype())
        # by default GPyTorch adds noise of deviation 1e-3 to the first mean: q would not be p
        q = distribution(len(Z), batch_shape(classes), mean_init_std=0.0)
        if library_defaults:
            options = {"learn_inducing_locations": False, "jitter_val": jitter}
            strategy = VariationalStrategy(self, Z, q, **options)
        else:
            kind = LargeBatchFixedJitter if torch.cuda.is_available() else FixedJitter
            strategy = kind(self, Z, q, jitter=jitter)
        super().__init__(strategy, classes)
        self.n, self.q = int(p["n"]), q
        floor = None if library_defaults else GreaterThan(SMALLEST_POSITIVE)
        matern = gpytorch.kernels.MaternKernel(
            nu=2.5, ard_num_dims=len(scales) if scales.ndim else None, lengthscale_constraint=floor
        )
        matern.lengthscale = torch.as_tensor(scales) if scales.ndim else float(scales)
        self.covar_module = gpytorch.kernels.ScaleKernel(matern, outputscale_constraint=floor)
        self.covar_module.outputscale = float(p["variance"])
        self.likelihood = make_likelihood(p, floor, library_defaults=library_defaults)
        self(Z)  # the first call sets q to p
        self.q_parameters = list(self.variational_parameters())
        self.theta = list(self.hyperparameters())

    def marginals(self, X: torch.Tensor, *, cached: bool = False) -> Any:
        """Return q(f) at new rows, computed from θ or, if `cached`, from the factor of an earlier call."""
        self.eval()
        if not cached:
            self.variational_strategy._clear_cache()  # K(Z, Z) and its factor from an earlier call
        return self(X)

    def densities(
        self, X: torch.Tensor, y: torch.Tensor, *, cached: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log predictive densities and mean predictions of new rows, as `marginals` has them."""
        with torch.no_grad():
            f = self.marginals(X, cached=cached)
            predicted = self.likelihood(f)
            mean = (
                predicted.mean if self.likelihood.has_analytic_marginal else predicted.probs.mean(0)
            )
            return self.likelihood.log_marginal(y, f), mean

    def moments(self, X: torch.Tensor) -> tuple[Any, Any]:
        """Return mean and variance [P, t] of q(f) at new rows."""
        with torch.no_grad():
            f = self.marginals(X)
            mean, variance = (x.cpu().reshape(len(X), -1).T.numpy() for x in (f.mean, f.variance))
        # in training mode each call drops the factor of K(Z, Z); eval mode would keep an old one
        self.train()
        return mean, variance

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
                    # the eager mode is timed on this model too: its own methods show again
                    delattr(part, name)

        return call

    def with_triangular_factor(self, p: dict[str, Any]) -> WhitenedSVGP:
        """Return a model with the same q, given by a triangular factor of its precision."""
        model = WhitenedSVGP(p, TrilNaturalVariationalDistribution)
        model.q.initialize_variational_distribution(self.q())
        return model


def copies(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Return copies of the values of parameters."""
    return [parameter.detach().clone() for parameter in parameters]


def set_values(parameters: Iterable[torch.Tensor], values: Iterable[Any]) -> None:
    """Set parameters to values, in their order."""
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(torch.as_tensor(value))


def make_likelihood(p: dict[str, Any], floor: GreaterThan | None, *, library_defaults: bool) -> Any:
    """Return the problem's likelihood; `library_defaults` is as in `WhitenedSVGP`."""
    kinds, name = gpytorch.likelihoods, str(p["likelihood"])
    if name == "gaussian":
        likelihood = kinds.GaussianLikelihood(noise_constraint=floor)
        likelihood.noise = float(p["noise_variance"])
        return likelihood
    if name == "softmax":
        if library_defaults:
            return kinds.SoftmaxLikelihood(num_classes=int(p["classes"]), mixing_weights=False)
        return FixedDrawsSoftmax(torch.as_tensor(p["noise"]))
    return kinds.BernoulliLikelihood() if library_defaults else SquashedProbit(float(p["squash"]))


def rows(X: Any, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows on the device."""
    return torch.as_tensor(X), torch.as_tensor(y)


# --- steps -------------------------------------------------------------------------------------


def negative_bound(model: WhitenedSVGP) -> Loss:
    """Return a function of the negative bound per datum, as `VariationalELBO` defines it."""
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model, model.n)
    return lambda X, y: -bound(model(X), y)


def e_step(model: WhitenedSVGP, loss: Loss, rate: float) -> Callable[..., None]:
    """Return a natural-gradient step on a batch. No gradient goes to θ."""
    # NGD multiplies gradients by n, since the loss is per datum
    return descent(gpytorch.optim.NGD(model.q_parameters, model.n, rate), model.theta, loss)


def m_step(model: WhitenedSVGP, loss: Loss, rate: float) -> Callable[..., None]:
    """Return a step of Adam on kernel, likelihood and inducing inputs. No gradient goes to q."""
    return descent(started_adam(model, rate), model.q_parameters, loss)


def started_adam(model: WhitenedSVGP, rate: float) -> torch.optim.Adam:
    """Return Adam for all parameters but q."""
    epsilon = ADAM_EPSILON / model.n  # the loss is per datum
    return torch.optim.Adam(model.theta, rate, (0.9, 0.999), epsilon, fused=True)


def descent(
    optimizer: torch.optim.Optimizer, fixed: list[torch.nn.Parameter], loss: Loss
) -> Callable[..., None]:
    """Return a step of the optimizer on the loss of a batch. `fixed` gets no gradient."""
    learned = [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def step(X: torch.Tensor, y: torch.Tensor) -> None:
        # at every step, because E-steps and M-steps on one model take turns
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


# --- benchmarks --------------------------------------------------------------------------------


def build(problem: dict[str, Any], method: str, step: str) -> GPyTorchStep:
    """Return a step at its start. Raises `NotImplementedError` if its result differs from ours."""
    if method == "tril-ngd" and step.startswith("e"):
        raise NotImplementedError(
            "a step in the triangular factor is no natural-gradient step on q"
        )
    return GPyTorchStep(problem, method, step)


class GPyTorchStep:
    """Step of a model at its start."""

    def __init__(self, p: dict[str, Any], method: str, name: str) -> None:
        self.name, self.model = name, WhitenedSVGP(p, NaturalVariationalDistribution)
        self.cached = CACHED_ROWS.get(name, 0)
        new = rows_to_predict(p["X_new"], p["y_new"], self.cached or len(p["y_new"]))
        self.batches, self.new = timed_batches(p, rows), rows(*new)
        self.e_rate, self.m_rate = float(p["e_rate"]), float(p["m_rate"])
        if name == "m_step" or name.startswith("predict"):
            e_step(self.model, negative_bound(self.model), self.e_rate)(*self.batches[0])
            if method == "tril-ngd":
                self.model = self.model.with_triangular_factor(p)
        if self.cached:
            self.model.densities(*self.new)  # leaves the factor of K(Z, Z) at this θ in the cache
        self.modes = {"eager": awaited(self.call())}
        if len(p["Z"]) * len(p["X"]) >= FUSED:
            self.modes["compiled"] = awaited(self.model.with_compiled_parts(self.call()))
        self.start = copies(self.model.parameters())

    def call(self) -> Call:
        """Return a call of the step on its batches."""
        model = self.model
        if self.name.startswith("predict"):
            return lambda: model.densities(*self.new, cached=bool(self.cached))
        loss = negative_bound(model)
        natural, adam = e_step(model, loss, self.e_rate), m_step(model, loss, self.m_rate)
        first = self.batches[0]
        steps = {
            "e_step": [(natural, first)],
            "e_step_held": [(natural, first)] * HELD_STEPS,
            "m_step": [(adam, first)],
            "em_step": [*((natural, x) for x in self.batches[:-1]), (adam, self.batches[-1])],
        }[self.name]

        def call() -> None:
            for step, batch in steps:
                step(*batch)

        return call

    def figure(self, result: Any) -> float:
        """Return the mean log density, or the bound on the batch after the step."""
        if self.name.startswith("predict"):
            return float(result[0].mean())
        batch = self.batches[-1 if self.name == "em_step" else 0]
        bound: float = -self.model.n * negative_bound(self.model)(*batch).item()
        return bound

    def reset(self) -> None:
        """Set every parameter back to its start."""
        set_values(self.model.parameters(), self.start)


class GPyTorchLearner:
    """Model that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], method: str, mode: str) -> None:
        self.model = WhitenedSVGP(p, DISTRIBUTIONS[method])
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
        self.modes = {name: awaited(call) for name, call in modes.items() if mode in ("", name)}
        self.start = copies(self.model.parameters())

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
        set_values(self.model.parameters(), self.start)
        self.natural.state.clear()
        # the modes were compared by steps of this Adam: its moments and count go too
        self.adam.state.clear()


class GPyTorchWalker:
    """Steps of NGD at a fixed θ, from q = p, with GPyTorch's own settings as in its notebooks."""

    def __init__(self, p: dict[str, Any], request: dict[str, Any]) -> None:
        dtype = getattr(torch, request["dtype"])
        torch.manual_seed(request["seed"])
        torch.set_default_dtype(dtype)
        gpytorch.settings.num_likelihood_samples._set_value(SAMPLES)
        self.p, self.X = p, torch.as_tensor(p["X"], dtype=dtype)
        softmax = str(p["likelihood"]) == "softmax"
        self.y = torch.as_tensor(p["y"], dtype=torch.long if softmax else dtype)
        self.model = WhitenedSVGP(p, DISTRIBUTIONS[request["method"]], library_defaults=True)
        self.loss = negative_bound(self.model)
        self.e_step = e_step(self.model, self.loss, request["rate"])
        self.bound()  # the draws of records began after this one

    def step(self, k: int) -> None:
        """Take one step of NGD, then evaluate q, which raises if its precision is not positive definite."""
        rows = self.p["rows"][k]
        self.e_step(self.X[rows], self.y[rows])
        with torch.no_grad():
            self.model.variational_strategy.variational_distribution  # noqa: B018

    def bound(self) -> float:
        """Return the ELBO for all data, from the checked rows."""
        rows = self.p["checked"]
        with torch.no_grad():
            return -self.model.n * float(self.loss(self.X[rows], self.y[rows]))

    def state(self) -> Any:
        """Return the natural parameters of q."""
        return [value.numpy() for value in copies(self.model.q_parameters)]

    def restore(self, state: Any) -> None:
        """Set the natural parameters of q."""
        set_values(self.model.q_parameters, state)

    def variances(self, k: int) -> Any:
        """Return the variances of q(f) at minibatch `k`, [b] or [P, b].

        GPyTorch's `variance` is not used, because it raises small ones to a least value.
        """
        with torch.no_grad():
            q = self.model(self.X[self.p["rows"][k]])
            return q.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2).numpy()


# names that `serve.py` reads besides `build`
learner, natural_gradient_run = GPyTorchLearner, GPyTorchWalker


# --- posteriors --------------------------------------------------------------------------------


class SVGP(ZeroMeanGP):
    """Model of a posterior in a file, in float64; its likelihood is the attribute `likelihood`."""

    def __init__(self, exported: ExportedPosterior, kernel: Any, likelihood: Any) -> None:
        latents, inducing = exported.mean.shape
        q = CholeskyVariationalDistribution(inducing, batch_shape(latents), mean_init_std=0.0)
        strategy = FixedJitter(self, torch.as_tensor(exported.Z), q, jitter=exported.jitter)
        super().__init__(strategy, latents)
        self.covar_module, self.likelihood = kernel, likelihood
        if len(exported.latent_mean):
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch_shape(latents))
        # before the copies: parameters have torch's default dtype, and float32 would round them
        self.double()
        with torch.no_grad():
            q.variational_mean.copy_(
                torch.as_tensor(exported.mean).reshape(q.variational_mean.shape)
            )
            if len(exported.latent_mean):
                constant = self.mean_module.constant
                self.mean_module.constant = torch.as_tensor(exported.latent_mean).reshape(
                    constant.shape
                )
            chol = q.chol_variational_covar
            chol.copy_(torch.as_tensor(exported.chol).reshape(chol.shape))
            strategy.variational_params_initialized.fill_(1)  # else a first call resets q to p


def to_gpytorch(path: str | Path) -> SVGP:
    """Return the `ApproximateGP` of a posterior in a file; its data are in the model's units.

    Raises `UserError` if the file is not an exported posterior, or if GPyTorch lacks its kernel or
    likelihood.
    """
    exported = load_whitened(path)
    kind, options = kernel_class(path, exported, KERNELS, "GPyTorch")
    dimensions = len(exported.lengthscales) if len(exported.lengthscales) > 1 else None
    kernel = gpytorch.kernels.ScaleKernel(kind(ard_num_dims=dimensions, **options))
    model = SVGP(exported, kernel, _build_likelihood(path, exported))
    kernel.base_kernel.lengthscale = torch.as_tensor(exported.lengthscales)
    kernel.outputscale = torch.tensor(exported.variance, dtype=torch.float64)
    if exported.likelihood == "gaussian":
        noise_variance = exported.parameters["noise_variance"]
        model.likelihood.noise = torch.tensor(noise_variance, dtype=torch.float64)
    return model


def from_gpytorch(
    model: Any, path: str | Path, table: TableScaling | None = None, *, likelihood: Any = None
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
    if type(strategy) not in (FixedJitter, VariationalStrategy, LargeBatchVariationalStrategy):
        raise UserError(f"{type(strategy).__name__}: only the whitened VariationalStrategy crosses")
    if type(model.mean_module) not in (gpytorch.means.ZeroMean, gpytorch.means.ConstantMean):
        raise UserError(f"mean {type(model.mean_module).__name__}: svgpbench's is constant")
    # not `variational_distribution`: in eval mode it is cached, perhaps from earlier parameters
    q = strategy._variational_distribution()
    if not isinstance(q, gpytorch.distributions.MultivariateNormal):
        raise UserError(f"q(u) {type(q).__name__}: only a Gaussian with a covariance crosses")
    Z = _numbers(strategy.inducing_points)
    if Z.ndim > 2:
        raise UserError("inducing points of several latents: svgpbench has one set for all")
    kernel, variance, lengthscales = _exported_kernel(model.covar_module)
    name, parameters = _exported_likelihood(likelihood or getattr(model, "likelihood", None))
    jitter = float(getattr(strategy, "jitter", strategy.jitter_val))
    mean = _numbers(q.mean).reshape(-1, len(Z))
    covariance = _numbers(q.covariance_matrix).reshape(-1, len(Z), len(Z))
    chol = lower_factor(covariance, "the covariance of q(u)")
    scaling = table or plain_table(Z.shape[1])
    latent_mean: Any = ()
    if isinstance(model.mean_module, gpytorch.means.ConstantMean):
        latent_mean = _numbers(model.mean_module.constant.reshape(-1).expand(len(mean)))
    exported = ExportedPosterior(
        kernel,
        variance,
        lengthscales,
        name,
        parameters,
        jitter,
        Z,
        mean,
        chol,
        scaling,
        latent_mean,
    )
    return save_whitened(exported, path)


def _numbers(x: torch.Tensor) -> Any:
    return x.detach().cpu().to(torch.float64).numpy()


def _build_likelihood(path: str | Path, exported: ExportedPosterior) -> Any:
    kinds = gpytorch.likelihoods
    if exported.likelihood == "gaussian":
        return kinds.GaussianLikelihood(noise_constraint=GreaterThan(SMALLEST_POSITIVE))
    if exported.likelihood == "bernoulli-probit":
        squash = exported.parameters["squash"]
        return SquashedProbit(squash) if squash else kinds.BernoulliLikelihood()
    if exported.likelihood == "softmax":
        return kinds.SoftmaxLikelihood(
            num_classes=int(exported.parameters["classes"]), mixing_weights=False
        )
    raise missing_likelihood(path, exported, "GPyTorch")


def _exported_kernel(kernel: Any) -> tuple[str, float, Any]:
    """Return name, variance and lengthscales [D] or [1] of a kernel."""
    scaled = isinstance(kernel, gpytorch.kernels.ScaleKernel)
    shape = kernel.base_kernel if scaled else kernel
    names = {(kind.__name__, options.get("nu")): name for name, (kind, options) in KERNELS.items()}
    name = names.get((type(shape).__name__, getattr(shape, "nu", None)))
    parts = (kernel, shape)
    plain = all(part.active_dims is None and not len(part.batch_shape) for part in parts)
    if name is None or not plain:
        kind_name = type(shape).__name__
        raise UserError(f"kernel {kind_name}: only RBF and Matérn 3/2 and 5/2 on all inputs cross")
    variance = float(_numbers(kernel.outputscale)) if scaled else 1.0
    return name, variance, _numbers(shape.lengthscale).reshape(-1)


def _exported_likelihood(likelihood: Any) -> tuple[str, dict[str, float]]:
    """Return name and parameters of a likelihood."""
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
    raise foreign_likelihood(likelihood)
