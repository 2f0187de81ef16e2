"""GPJax's natural gradients: `natgrad` on its whitened Gaussian, with back-off, and `dual`, its t-SVGP."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


def versions() -> dict[str, str]:
    """Return the versions of the library and its dependencies."""
    import gpjax
    import jax

    return {"gpjax": gpjax.__version__, "jax": jax.__version__, "numpy": np.__version__}


class GPJax:
    """Walker of a variational family, at its start, q = p, split into q and all else."""

    def __init__(self, arrays: dict[str, Any], request: dict[str, Any]) -> None:
        import jax

        jax.config.update("jax_enable_x64", request["dtype"] == "float64")
        import equinox as eqx
        import gpjax as gpx
        import jax.numpy as jnp
        from gpjax.natural_gradients import natural_gradient_step, partition_variational

        prior = gpx.gps.Prior(
            mean_function=gpx.mean_functions.Zero(),
            kernel=gpx.kernels.Matern52(
                lengthscale=jnp.asarray(float(arrays["lengthscale"])),
                variance=jnp.asarray(float(arrays["variance"])),
            ),
            jitter=request["jitter"],
        )
        likelihood = (
            gpx.likelihoods.Gaussian(float(np.sqrt(arrays["noise_variance"])))
            if str(arrays["likelihood"]) == "gaussian"
            else gpx.likelihoods.Bernoulli()
        )
        families = gpx.variational_families
        family = {
            "natgrad": families.WhitenedVariationalGaussian,
            "dual": families.DualVariationalGaussian,
        }[request["method"]]
        Z = jnp.asarray(arrays["Z"][: request["inducing"]])
        self.q, rest = partition_variational(family(model=prior * likelihood, inducing_inputs=Z))
        n, rate = len(arrays["y"]), jnp.asarray(float(request["rate"]))
        self.arrays, self.jax = arrays, jax

        def data(X: Any, y: Any) -> Any:
            return gpx.Dataset(X=X, y=y[:, None], n_total=n)

        def objective(q: Any, batch: Any) -> Any:
            return -gpx.objectives.elbo(q, batch)

        def step(q: Any, X: Any, y: Any) -> Any:
            return natural_gradient_step(q, rest, data(X, y), objective, rate)[0]

        def bound(q: Any, X: Any, y: Any) -> Any:
            return gpx.objectives.elbo(eqx.combine(q, rest), data(X, y))

        def variances(q: Any, X: Any) -> Any:
            whole = eqx.combine(q, rest)
            if request["method"] == "dual":
                return whole.marginals(X)[1]
            return jax.vmap(lambda x: whole(x[None]).covariance_matrix[0, 0])(X)

        self.compiled = jax.jit(step), jax.jit(bound), jax.jit(variances)

    def _rows(self, rows: Floats) -> tuple[Any, Any]:
        X, y = self.arrays["X"][rows], self.arrays["y"][rows]
        return self.jax.numpy.asarray(X), self.jax.numpy.asarray(y)

    def step(self, k: int) -> None:
        """Take one natural-gradient step on minibatch `k`."""
        self.q = self.compiled[0](self.q, *self._rows(self.arrays["rows"][k]))

    def bound(self) -> float:
        """Return the family's ELBO from the checked rows."""
        return float(self.compiled[1](self.q, *self._rows(self.arrays["checked"])))

    def state(self) -> Any:
        """Return the leaves of q."""
        return self.jax.tree_util.tree_leaves(self.q)

    def restore(self, state: Any) -> None:
        """Set q from its leaves."""
        tree = self.jax.tree_util
        self.q = tree.tree_unflatten(tree.tree_structure(self.q), state)

    def variances(self, k: int) -> Floats:
        """Return the variances of q(f) at minibatch `k`, [b]."""
        found: Floats = np.asarray(self.compiled[2](self.q, self._rows(self.arrays["rows"][k])[0]))
        return found


def build(arrays: dict[str, Any], request: dict[str, Any]) -> GPJax:
    """Return a walker at its start."""
    return GPJax(arrays, request)
