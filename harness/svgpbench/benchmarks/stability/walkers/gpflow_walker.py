"""GPflow's natural gradient on its whitened SVGP, as in its own notebooks, in one `tf.function`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
SMALLEST_POSITIVE = 1e-6  # θ = floor + softplus(raw), as in svgpbench


def versions() -> dict[str, str]:
    """Return the versions of the library and its dependencies."""
    import gpflow
    import tensorflow as tf

    return {"gpflow": gpflow.__version__, "tensorflow": tf.__version__, "numpy": np.__version__}


class GPflow:
    """Walker of a `gpflow.models.SVGP`, at its start, q = p."""

    def __init__(self, arrays: dict[str, Any], request: dict[str, Any]) -> None:
        import gpflow
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(request["threads"])
        tf.config.threading.set_inter_op_parallelism_threads(request["threads"])
        tf.random.set_seed(request["seed"])
        dtype = np.dtype(request["dtype"])
        gpflow.config.set_default_float(dtype.type)
        gpflow.config.set_default_jitter(request["jitter"])
        gpflow.config.set_default_positive_minimum(SMALLEST_POSITIVE)
        self.tf, self.rows, self.checked = tf, arrays["rows"], arrays["checked"]
        self.X, self.y = arrays["X"].astype(dtype, copy=False), arrays["y"][:, None].astype(dtype)
        kernel = gpflow.kernels.Matern52(
            variance=float(arrays["variance"]), lengthscales=float(arrays["lengthscale"])
        )
        classes = int(arrays["classes"]) or 1
        likelihood = {
            "gaussian": lambda: gpflow.likelihoods.Gaussian(float(arrays["noise_variance"])),
            "bernoulli-probit": gpflow.likelihoods.Bernoulli,
            "softmax": lambda: gpflow.likelihoods.Softmax(classes),
        }[str(arrays["likelihood"])]()
        if classes > 1:
            self.y = self.y.astype(np.int64)
        self.model = gpflow.models.SVGP(
            kernel,
            likelihood,
            arrays["Z"][: request["inducing"]].astype(dtype),
            num_latent_gps=classes,
            num_data=len(self.y),
            whiten=True,
        )
        natural = gpflow.optimizers.NaturalGradient(gamma=request["rate"])
        q = [(self.model.q_mu, self.model.q_sqrt)]

        def e_step(X: Any, y: Any) -> None:
            natural.minimize(lambda: self.model.training_loss((X, y)), q)

        self.e_step, self.elbo = tf.function(e_step), tf.function(self.model.elbo)

    def step(self, k: int) -> None:
        """Take one natural-gradient step on minibatch `k`."""
        rows = self.rows[k]
        self.e_step(self.tf.constant(self.X[rows]), self.tf.constant(self.y[rows]))

    def bound(self) -> float:
        """Return the model's ELBO from the checked rows."""
        rows = self.checked
        return float(self.elbo((self.tf.constant(self.X[rows]), self.tf.constant(self.y[rows]))))

    def state(self) -> Any:
        """Return the mean of q and the Cholesky factor of its covariance."""
        return self.model.q_mu.numpy(), self.model.q_sqrt.numpy()

    def restore(self, state: Any) -> None:
        """Set the mean and the factor of q."""
        self.model.q_mu.assign(state[0])
        self.model.q_sqrt.assign(state[1])

    def variances(self, k: int) -> Floats:
        """Return the variances of q(f) at minibatch `k`, [b, P]."""
        found: Floats = self.model.predict_f(self.tf.constant(self.X[self.rows[k]]))[1].numpy()
        return found


def build(arrays: dict[str, Any], request: dict[str, Any]) -> GPflow:
    """Return a walker at its start."""
    return GPflow(arrays, request)
