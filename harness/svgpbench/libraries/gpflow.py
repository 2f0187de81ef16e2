"""Timed steps, training, stability runs and exchanged posteriors of GPflow. Requires GPflow.

`serve.py` loads this file with the Python of GPflow's environment, which has none of svgpbench's packages.

The model is GPflow's whitened SVGP, with natural gradients for q and Adam for θ. The E-step of method
`natgrad` is that of GPflow's own notebooks, in one `tf.function` whose batch is an argument. Method
`natgrad retraced` runs the same E-step as the public MNIST notebook of Adam et al. (2021) does: in a new
`tf.function` in every iteration, which TensorFlow traces again. Their M-steps are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

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
    missing_likelihood,
    named_kernel,
    plain_table,
    save_whitened,
    whiten,
    with_positive_diagonal,
)

VERSIONS = ("gpflow", "tensorflow", "numpy")
MODES = {"graph": False, "xla": True}
RETRACED = "natgrad retraced"
DEFAULT_SQUASH = 1e-3
"""ε in the default link of `gpflow.likelihoods.Bernoulli`."""

KERNELS = {
    "se": gpflow.kernels.SquaredExponential,
    "matern32": gpflow.kernels.Matern32,
    "matern52": gpflow.kernels.Matern52,
}
Step = Callable[..., Any]


def start(threads: int) -> None:
    """Set the sizes of the thread pools, before TensorFlow starts them."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


# --- models ------------------------------------------------------------------------------------


def build_model(p: dict[str, Any], *, fresh_draws: bool = False) -> Any:
    """Build a whitened SVGP with Matérn-5/2 at q = p, with the problem's jitter and a positive floor.

    A softmax uses the problem's draws, or GPflow's own at every call with `fresh_draws`.
    """
    gpflow.config.set_default_jitter(float(p["jitter"]))
    gpflow.config.set_default_positive_minimum(SMALLEST_POSITIVE)
    dtype, classes = gpflow.config.default_float(), max(1, int(p["classes"]))
    kernel = gpflow.kernels.Matern52(float(p["variance"]), p["lengthscales"].astype(dtype))
    if str(p["likelihood"]) == "gaussian":
        likelihood = gpflow.likelihoods.Gaussian(variance=float(p["noise_variance"]))
    elif str(p["likelihood"]) == "softmax":
        likelihood = (
            gpflow.likelihoods.Softmax(classes) if fresh_draws else FixedDrawsSoftmax(p["noise"])
        )
    else:
        likelihood = gpflow.likelihoods.Bernoulli()  # its link is the problem's squashed probit
    options = {"num_data": int(p["n"]), "whiten": True, "num_latent_gps": classes}
    return gpflow.models.SVGP(kernel, likelihood, p["Z"].astype(dtype), **options)


class FixedDrawsSoftmax(gpflow.likelihoods.Softmax):
    """GPflow's softmax with the problem's draws [S, P], one set for all rows, in place of fresh ones."""

    def __init__(self, noise: Any) -> None:
        super().__init__(noise.shape[1])
        self.num_monte_carlo_points = noise.shape[0]
        # a variable: other draws need no other trace, as other constants would
        self.draws = tf.Variable(noise, trainable=False)

    def _mc_quadrature(
        self, funcs: Any, mean: Any, variance: Any, *arguments: Any, **options: Any
    ) -> Any:
        samples, classes = self.draws.shape
        shape = [samples, tf.shape(mean)[0], classes]
        options["epsilon"] = tf.broadcast_to(self.draws[:, None, :], shape)
        return super()._mc_quadrature(funcs, mean, variance, *arguments, **options)


class JitteredPoints(gpflow.inducing_variables.InducingPoints):
    """Inducing inputs with their own jitter on K(Z, Z), independent of GPflow's global jitter."""

    def __init__(self, Z: Any, jitter: float) -> None:
        super().__init__(Z)
        self.jitter = jitter


@gpflow.covariances.Kuu.register(JitteredPoints, gpflow.kernels.Kernel)  # type: ignore[untyped-decorator, unused-ignore]
def _jittered(points: JitteredPoints, kernel: Any, *, jitter: float = 0.0) -> Any:
    # the argument `jitter` is GPflow's global default, which its conditionals pass; it is left out
    return kernel(points.Z) + points.jitter * tf.eye(points.num_inducing, dtype=points.Z.dtype)


class SquashedProbit(gpflow.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = ε + (1 − 2ε) Φ(f) with a closed-form mean; GPflow's has ε = 1e-3."""

    def __init__(self, squash: float) -> None:
        super().__init__(invlink=self.probability)
        self.squash = squash

    def probability(self, f: Any) -> Any:
        """Return p(y = 1 | f)."""
        # erfc keeps Φ's digits: 1 + erf(f/√2) is 0 below f = −8.4, and log p is −∞ if ε = 0
        return self.squash + (1.0 - 2.0 * self.squash) * 0.5 * tf.math.erfc(-f / np.sqrt(2.0))

    def _predict_mean_and_var(self, X: Any, mean: Any, variance: Any) -> Any:
        # E[Φ(f)] = Φ(μ/√(1 + v)) and the link is affine in Φ; GPflow would use quadrature
        p = self.probability(mean / tf.sqrt(1.0 + variance))
        return p, p - tf.square(p)


def rows_of(p: dict[str, Any]) -> Callable[..., tuple[Any, Any]]:
    """Return a function that converts rows to the types that the likelihood takes."""
    dtype = gpflow.config.default_float()
    kind = np.int64 if str(p["likelihood"]) == "softmax" else dtype

    def rows(X: Any, y: Any) -> tuple[Any, Any]:
        return tf.constant(X.astype(dtype, copy=False)), tf.constant(y[:, None].astype(kind))

    return rows


# --- steps -------------------------------------------------------------------------------------


def e_step(model: Any, rate: float, loss: Callable[..., Any] | None = None) -> Callable[..., None]:
    """Return a natural-gradient step on a batch. `loss` is the model's own by default."""
    natural = gpflow.optimizers.NaturalGradient(gamma=rate)
    parameters = [(model.q_mu, model.q_sqrt)]
    loss_of = loss or model.training_loss

    def step(X: Any, y: Any) -> None:
        natural.minimize(lambda: loss_of((X, y)), parameters)

    return step


def retraced_e_step(model: Any, rate: float) -> Callable[..., None]:
    """Return the step of `e_step` in a `tf.function` that is built at every call. Its loss is traced once.

    The notebook does the same: its compiled loss closure is kept between iterations, its natural-gradient
    step is not.
    """
    natural_step = e_step(model, rate, tf.function(model.training_loss))

    def step(X: Any, y: Any) -> None:
        tf.function(natural_step)(X, y)

    return step


def e_steps(model: Any, rate: float) -> Callable[..., None]:
    """Return `HELD_STEPS` natural-gradient steps on one batch."""
    natural_step = e_step(model, rate)

    def steps(X: Any, y: Any) -> None:
        # AutoGraph makes one tf.while_loop of it; a Python range would be unrolled
        for _ in tf.range(HELD_STEPS):
            natural_step(X, y)

    return steps


def started_adam(model: Any, rate: float) -> Any:
    """Build Adam on kernel, likelihood and inducing inputs. q becomes fixed."""
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    adam = tf.optimizers.Adam(rate, epsilon=ADAM_EPSILON)
    adam.build(model.trainable_variables)  # its slots must exist before the trace
    return adam


def m_step(model: Any, adam: Any) -> Callable[..., None]:
    """Return a step of Adam on the variables that it was built for."""
    variables = model.trainable_variables

    def step(X: Any, y: Any) -> None:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = model.training_loss((X, y))
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))  # noqa: B905

    return step


def em_step(model: Any, e_rate: float, adam: Any, *, retraced: bool = False) -> Callable[..., None]:
    """Return an iteration: an E-step on each of the batches, and a step of Adam on the last.

    With `retraced`, natural-gradient steps are retraced, and the M-step is traced once.
    """
    natural = retraced_e_step(model, e_rate) if retraced else e_step(model, e_rate)
    learn = tf.function(m_step(model, adam)) if retraced else m_step(model, adam)

    def step(batches: Any, last: Any) -> None:
        for batch in batches:
            natural(*batch)
        learn(*last)

    return step


def predict(model: Any, *, cached: bool = False) -> Callable[..., Any]:
    """Return a function that computes log predictive densities and mean predictions of new rows.

    With `cached`, q(f) comes from GPflow's posterior object, which has factorised K(Z, Z) once.
    """
    source = model.posterior() if cached else model

    def step(X: Any, y: Any) -> Any:
        mean, variance = source.predict_f(X)
        density = model.likelihood.predict_log_density(X, mean, variance, y)
        return density, model.likelihood.predict_mean_and_var(X, mean, variance)[0]

    return step


def awaited(step: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a call of the step that waits for the device."""
    on_gpu = bool(tf.config.list_physical_devices("GPU"))

    def call() -> Any:
        result = step(*arguments)
        if on_gpu:  # on the CPU a call returns when it has been computed
            tf.test.experimental.sync_devices()
        return result

    return call


# --- benchmarks --------------------------------------------------------------------------------


class Restartable:
    """Variables that go back to their start."""

    def remember(self, variables: Any) -> None:
        """Make the current values of the variables their start."""
        self.start = [(variable, variable.numpy()) for variable in variables]

    def reset(self) -> None:
        """Set every variable back to its start."""
        for variable, value in self.start:
            variable.assign(value)


class GPflowStep(Restartable):
    """Step of a model at its start, traced once: as a TensorFlow graph, and compiled by XLA.

    With method `natgrad retraced`, E-steps are traced at every call, and only as a graph.
    """

    def __init__(self, p: dict[str, Any], method: str, name: str) -> None:
        cached = CACHED_ROWS.get(name, 0)
        if method == RETRACED and (name == "e_step_held" or name.startswith("predict")):
            raise NotImplementedError("it differs from natgrad in e_step and em_step alone")
        self.name, self.model = name, build_model(p)
        rows = rows_of(p)
        batches = timed_batches(p, rows)
        self.batch = batches[0]
        e_rate, m_rate = float(p["e_rate"]), float(p["m_rate"])
        if name == "m_step" or name.startswith("predict"):
            # at q = p predictions and the bound do not depend on Z (see `timing/cases.py`)
            tf.function(e_step(self.model, e_rate))(*self.batch)
        arguments: tuple[Any, ...] = self.batch
        if name == "em_step":
            arguments = (batches[:-1], batches[-1])
            self.batch = batches[-1]  # the bound after the step is on the M-step's batch
        elif name.startswith("predict"):
            count = cached or len(p["y_new"])
            arguments = rows(*rows_to_predict(p["X_new"], p["y_new"], count))
        builders: dict[str, Callable[[], Step]] = {
            "e_step": lambda: e_step(self.model, e_rate),
            "e_step_held": lambda: e_steps(self.model, e_rate),
            "m_step": lambda: m_step(self.model, started_adam(self.model, m_rate)),
            "em_step": lambda: em_step(self.model, e_rate, started_adam(self.model, m_rate)),
            "predict": lambda: predict(self.model),
            "predict_cached": lambda: predict(self.model, cached=True),
        }
        retraced: dict[str, Callable[[], Step]] = {
            "e_step": lambda: retraced_e_step(self.model, e_rate),
            "m_step": lambda: tf.function(builders["m_step"]()),
            "em_step": lambda: em_step(
                self.model, e_rate, started_adam(self.model, m_rate), retraced=True
            ),
        }
        built = "predict_cached" if cached else name
        if method == RETRACED:
            self.modes = {"graph": awaited(retraced[name](), arguments)}
        else:
            self.modes = {
                mode: awaited(tf.function(builders[built](), jit_compile=by_xla), arguments)
                for mode, by_xla in MODES.items()
            }
        # without Adam's slots: each mode has its own Adam, and only its first call is compared
        self.remember(self.model.variables)

    def figure(self, result: Any) -> float:
        """Return the mean log density, or the bound on the batch after the step."""
        if self.name.startswith("predict"):
            return float(result[0].numpy().mean())
        return float(self.model.elbo(self.batch).numpy())


class GPflowLearner(Restartable):
    """Model that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], method: str, mode: str) -> None:
        self.rows, self.model, self.noise = rows_of(p), build_model(p), p["noise"]
        self.seen = self.rows(p["X"][p["checked"]], p["y"][p["checked"]])
        self.X_new = tf.constant(p["X_new"])
        self.batches: list[tuple[Any, Any]] = []
        adam, e_rate = started_adam(self.model, float(p["m_rate"])), float(p["e_rate"])
        step = em_step(self.model, e_rate, adam, retraced=method == RETRACED)
        if method == RETRACED:
            self.modes = {"graph": self.on_batches(step)}
        else:
            self.modes = {
                name: self.on_batches(tf.function(step, jit_compile=by_xla))
                for name, by_xla in MODES.items()
                if mode in ("", name)
            }
        self.bound, self.moments = tf.function(self.model.elbo), tf.function(self.model.predict_f)
        # with Adam's slots: the modes share one Adam, and training starts after they were compared
        self.remember((*self.model.variables, *adam.variables))

    def on_batches(self, step: Callable[..., None]) -> Callable[[], None]:
        """Return a call of the iteration on the batches fed last."""
        return awaited(lambda: step(self.batches[:-1], self.batches[-1]), ())

    def feed(self, batches: Any, noise: Any) -> None:
        """Set the rows of each E-step and of the M-step, and their draws."""
        self.batches = [self.rows(*batch) for batch in batches]
        self.draw(noise)

    def draw(self, noise: Any) -> None:
        """Set the draws of the likelihood, if it samples."""
        if noise.size:
            self.model.likelihood.draws.assign(noise)

    def elbo(self) -> float:
        """Return the model's own bound from the checked rows."""
        # the same draws at each evaluation, so that a curve moves with the model alone
        self.draw(self.noise)
        return float(self.bound(self.seen))

    def figure(self, result: Any) -> float:
        """Return the bound after a call."""
        return self.elbo()

    def predict(self) -> tuple[Any, Any, Any]:
        """Return moments [P, t] of q(f) at the new rows, and the variance of Gaussian noise, or 0."""
        mean, variance = self.moments(self.X_new)
        noise = getattr(self.model.likelihood, "variance", None)
        return mean.numpy().T, variance.numpy().T, 0.0 if noise is None else noise.numpy()


class GPflowWalker:
    """Natural-gradient steps at a fixed θ, from q = p, with GPflow's own draws of a softmax."""

    def __init__(self, p: dict[str, Any], request: dict[str, Any]) -> None:
        tf.random.set_seed(request["seed"])
        gpflow.config.set_default_float(np.dtype(request["dtype"]).type)
        self.p, self.rows, self.model = p, rows_of(p), build_model(p, fresh_draws=True)
        self.compiled = tf.function(e_step(self.model, request["rate"]))
        self.elbo = tf.function(self.model.elbo)

    def minibatch(self, rows: Any) -> tuple[Any, Any]:
        """Return these rows of the data."""
        return self.rows(self.p["X"][rows], self.p["y"][rows])

    def step(self, k: int) -> None:
        """Take one natural-gradient step on minibatch `k`."""
        self.compiled(*self.minibatch(self.p["rows"][k]))

    def bound(self) -> float:
        """Return the model's ELBO from the checked rows."""
        return float(self.elbo(self.minibatch(self.p["checked"])))

    def state(self) -> Any:
        """Return the mean of q and the Cholesky factor of its covariance."""
        return self.model.q_mu.numpy(), self.model.q_sqrt.numpy()

    def restore(self, state: Any) -> None:
        """Set the mean and the factor of q."""
        self.model.q_mu.assign(state[0])
        self.model.q_sqrt.assign(state[1])

    def variances(self, k: int) -> Any:
        """Return the variances of q(f) at minibatch `k`, [b, P]."""
        return self.model.predict_f(self.minibatch(self.p["rows"][k])[0])[1].numpy()


# names that `serve.py` reads
build, learner, natural_gradient_run = GPflowStep, GPflowLearner, GPflowWalker


# --- posteriors --------------------------------------------------------------------------------


def to_gpflow(path: str | Path) -> Any:
    """Return the `gpflow.models.SVGP` of a posterior in a file; its data are in the model's units.

    Raises `UserError` if the file is not an exported posterior, or if GPflow lacks its kernel or likelihood.
    """
    exported = load_whitened(path)
    kernel = kernel_class(path, exported, KERNELS, "GPflow")
    isotropic = len(exported.lengthscales) == 1
    scales = float(exported.lengthscales[0]) if isotropic else exported.lengthscales
    return gpflow.models.SVGP(
        kernel(variance=exported.variance, lengthscales=scales),
        _build_likelihood(path, exported),
        JitteredPoints(exported.Z, exported.jitter),
        mean_function=gpflow.functions.Constant(exported.latent_mean)
        if len(exported.latent_mean)
        else None,
        num_latent_gps=len(exported.mean),
        q_mu=exported.mean.T,
        q_sqrt=exported.chol,
        whiten=True,
        num_data=exported.table.rows or None,
    )


def from_gpflow(model: Any, path: str | Path, table: TableScaling | None = None) -> Path:
    """Write the posterior of a `gpflow.models.SVGP`, whitened or not, to an .npz file.

    Args:
        model: a model with a kernel of `KERNELS` on all inputs, a constant mean, and inducing points.
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
    latent_mean: Any = ()
    if isinstance(model.mean_function, gpflow.functions.Constant):  # `Zero` is one
        latent_mean = np.broadcast_to(model.mean_function(points.Z[:1]).numpy()[0], len(mean))
    elif model.mean_function is not None:
        name = type(model.mean_function).__name__
        raise UserError(f"mean function {name}: svgpbench's is constant")
    Z = points.Z.numpy()
    # GPflow's jitter is global and read at each prediction: the file has its present value
    jitter = getattr(points, "jitter", gpflow.config.default_jitter())
    if chol.ndim == 2:  # q_diag: [M, P]
        chol = chol.T[..., None] * np.eye(len(Z))
    # GPflow adds the mean function after conditioning: q_mu is that of u less its prior mean
    if not model.whiten:
        K = model.kernel(Z).numpy() + jitter * np.eye(len(Z))
        mean, chol = whiten(K, mean, chol)
    name, parameters = _exported_likelihood(model.likelihood)
    scaling = table or plain_table(Z.shape[1])
    if not scaling.rows and model.num_data is not None:
        scaling = scaling._replace(rows=int(model.num_data))
    kernel, chol = named_kernel(model.kernel, KERNELS), with_positive_diagonal(chol)
    variance = float(model.kernel.variance.numpy())
    lengthscales = np.ravel(model.kernel.lengthscales.numpy())
    exported = ExportedPosterior(
        kernel,
        variance,
        lengthscales,
        name,
        parameters,
        float(jitter),
        Z,
        mean,
        chol,
        scaling,
        latent_mean,
    )
    return save_whitened(exported, path)


def _build_likelihood(path: str | Path, exported: ExportedPosterior) -> Any:
    values = exported.parameters
    if exported.likelihood == "gaussian":
        return gpflow.likelihoods.Gaussian(variance=values["noise_variance"])
    if exported.likelihood == "bernoulli-probit":
        plain = values["squash"] == DEFAULT_SQUASH
        return gpflow.likelihoods.Bernoulli() if plain else SquashedProbit(values["squash"])
    if exported.likelihood == "softmax":
        softmax = gpflow.likelihoods.Softmax(int(values["classes"]))
        softmax.num_monte_carlo_points = int(values["samples"])
        return softmax
    raise missing_likelihood(path, exported, "GPflow")


def _exported_likelihood(likelihood: Any) -> tuple[str, dict[str, float]]:
    """Return name and parameters of a likelihood."""
    kinds = gpflow.likelihoods
    if type(likelihood) is kinds.Gaussian and likelihood.variance is not None:
        return "gaussian", {"noise_variance": float(likelihood.variance.numpy())}
    if isinstance(likelihood, SquashedProbit):
        return "bernoulli-probit", {"squash": likelihood.squash}
    if type(likelihood) is kinds.Bernoulli and likelihood.invlink is kinds.utils.inv_probit:
        return "bernoulli-probit", {"squash": DEFAULT_SQUASH}
    if type(likelihood) is kinds.Softmax:
        samples = int(likelihood.num_monte_carlo_points)
        return "softmax", {"classes": int(likelihood.num_classes), "samples": samples}
    raise foreign_likelihood(likelihood)
