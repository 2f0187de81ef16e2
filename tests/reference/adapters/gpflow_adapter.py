"""Adapter of GPflow: `gpflow.models.SVGP` with `NaturalGradient`."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from svgp_reference import Problem

library = f"GPflow {gpflow.__version__}"

KERNELS = {
    "se": gpflow.kernels.SquaredExponential,
    "matern32": gpflow.kernels.Matern32,
    "matern52": gpflow.kernels.Matern52,
}


class JitteredPoints(gpflow.inducing_variables.InducingPoints):
    """Inducing inputs with their own jitter on K(Z, Z), independent of GPflow's global jitter."""

    def __init__(self, Z: Any, jitter: float) -> None:
        super().__init__(Z)
        self.jitter = jitter


@gpflow.covariances.Kuu.register(JitteredPoints, gpflow.kernels.Stationary)  # type: ignore[untyped-decorator, unused-ignore]
def _jittered(points: JitteredPoints, kernel: Any, *, jitter: float = 0.0) -> Any:
    return kernel(points.Z) + points.jitter * tf.eye(points.num_inducing, dtype=points.Z.dtype)


def probit(f: Any) -> Any:
    """Return Φ(f)."""
    return 0.5 * tf.math.erfc(-f / np.sqrt(2.0))


class Probit(gpflow.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = Φ(f); GPflow's link is squashed to [1e-3, 1 − 1e-3]."""

    def __init__(self) -> None:
        super().__init__(invlink=probit)

    def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return tf.math.log(probit((2.0 * Y - 1.0) * F))  # 1 − Φ(f) is 0 from f = 8.3


def _likelihood(problem: Problem) -> Any:
    p, kinds = problem.likelihood_parameters, gpflow.likelihoods
    likelihood = {
        "gaussian": lambda: kinds.Gaussian(variance=p["noise_variance"]),
        "bernoulli-probit": Probit,
        "poisson": kinds.Poisson,
        "student-t": lambda: kinds.StudentT(scale=p["scale"], df=p["degrees_of_freedom"]),
    }[problem.likelihood]()
    nodes = problem.info["gauss_hermite_nodes"]
    if nodes:
        likelihood.quadrature = gpflow.quadrature.NDiagGHQuadrature(1, nodes)
    return likelihood


class Built(NamedTuple):
    """A model, its problem, and the batch."""

    problem: Problem
    model: Any
    batch: tuple[Any, Any]

    def loss(self) -> Any:
        """Return the negative bound. It is not compiled: that takes longer than these steps."""
        return self.model.training_loss(self.batch)


def build(problem: Problem) -> Built:
    """Return the SVGP at the problem's θ and q."""
    scales = problem.lengthscales
    model = gpflow.models.SVGP(
        KERNELS[problem.kernel](problem.variance, scales if len(scales) > 1 else scales[0]),
        _likelihood(problem),
        JitteredPoints(problem.Z, problem.jitter),
        mean_function=gpflow.functions.Constant(problem.mean_constant),
        q_mu=problem.q_mean[:, None],
        q_sqrt=problem.q_factor[None],
        whiten=problem.whitened,
        num_data=problem.n,
    )
    batch = tf.constant(problem.X_batch), tf.constant(problem.y_batch[:, None])
    return Built(problem, model, batch)


def bound(built: Built) -> dict[str, Any]:
    """Return the bound and its parts."""
    model, (X, y) = built.model, built.batch
    V = model.likelihood.variational_expectations(X, *model.predict_f(X), y)
    parts = {
        "bound": model.elbo(built.batch),
        "kl": model.prior_kl(),
        "expected_log_likelihood": V,
    }
    return {name: value.numpy() for name, value in parts.items()}


def predict(built: Built, X: Any) -> dict[str, Any]:
    """Return the marginals of q(f), and the log density of the problem's test targets."""
    model, problem = built.model, built.problem
    mean, variance = model.predict_f(tf.constant(X))
    y = tf.constant(problem.y_test[:, None])
    density = model.likelihood.predict_log_density(tf.constant(X), mean, variance, y)
    return {
        "mean": mean.numpy()[:, 0],
        "variance": variance.numpy()[:, 0],
        "log_density": density.numpy(),
    }


def step(built: Built, gamma: float) -> None:
    """Take one natural-gradient step in place."""
    natural = gpflow.optimizers.NaturalGradient(gamma=gamma)
    natural.minimize(built.loss, [(built.model.q_mu, built.model.q_sqrt)])


def gradient(built: Built) -> dict[str, Any]:
    """Return the gradient of the bound in constrained parameters."""
    model, problem = built.model, built.problem
    parameters = {
        "variance": model.kernel.variance,
        "lengthscales": model.kernel.lengthscales,
        "mean_constant": model.mean_function.c,
        "Z": model.inducing_variable.Z,
        "q_mean": model.q_mu,
        "q_factor": model.q_sqrt,
    }
    if problem.likelihood == "gaussian":
        parameters["noise_variance"] = model.likelihood.variance
    elif problem.likelihood == "student-t":
        parameters["scale"] = model.likelihood.scale
    raw = {name: x.unconstrained_variable for name, x in parameters.items()}
    with tf.GradientTape(persistent=True) as tape:
        loss = built.loss()
        total = tf.add_n([tf.reduce_sum(x) for x in parameters.values()])
    slopes, derivatives = tape.gradient(loss, raw), tape.gradient(total, raw)
    # transforms change each entry by itself, or only move it
    found = {name: (-slopes[name] / derivatives[name]).numpy() for name in raw}
    triangle = model.q_sqrt.transform.forward(tf.constant(found["q_factor"]))
    return found | {
        "lengthscales": np.atleast_1d(found["lengthscales"]),
        "mean_constant": np.sum(found["mean_constant"]),
        "q_mean": found["q_mean"][:, 0],
        "q_factor": triangle.numpy()[0],
    }
