"""What GPJax makes of posteriors in a folder. Run by its own Python: in_gpjax.py FOLDER."""

import json
import sys
from pathlib import Path

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gpjax.variational_families import VariationalGaussian

from svgpbench.errors import UserError
from svgpbench.libraries.gpjax import from_gpjax, to_gpjax
from svgpbench.libraries.whitened import load_whitened

JITTER = 1e-5
TRAINED = ("gaussian", "squashed")  # each takes XLA seconds to compile


@eqx.filter_jit
def moments(family, X, covariance):
    f = family.condition(None)(X, covariance=covariance)
    return f.mean[None], f.variance[None], jnp.ravel(family.model.likelihood(f).mean)


def said(family, X, covariance="diagonal"):
    return dict(zip(("mean", "variance", "y"), moments(family, X, covariance), strict=True))


def trained(family, X, y):
    data = gpx.Dataset(X, y[:, None])
    learned, rest = eqx.partition(family, eqx.is_inexact_array)

    @jax.jit
    def gradient(learned):
        return jax.grad(lambda at: -gpx.objectives.elbo(eqx.combine(at, rest), data))(learned)

    adam = optax.adam(0.05)
    state = adam.init(learned)
    for _ in range(4):
        updates, state = adam.update(gradient(learned), state, learned)
        learned = eqx.apply_updates(learned, updates)
    return eqx.combine(learned, rest)


def own(X, mean):
    """An unwhitened family that svgpbench did not make, away from q = p."""
    rng = np.random.default_rng(3)
    kernel = gpx.kernels.RBF(lengthscale=jnp.array([0.7, 1.1]), variance=1.3)
    prior = gpx.gps.Prior(kernel, mean, jitter=JITTER)
    root = jnp.asarray(0.3 * np.tril(np.abs(rng.normal(size=(7, 7)))))
    return VariationalGaussian(
        prior * gpx.likelihoods.Gaussian(0.5), X[:7], jnp.asarray(rng.normal(size=(7, 1))), root
    )


def refused(call):
    try:
        call()
    except UserError as error:
        return str(error)
    return "nothing was refused"


def main(folder):
    jax.config.update("jax_enable_x64", False)
    refusals = [refused(lambda: to_gpjax(folder / "gaussian.ours.npz"))]
    jax.config.update("jax_enable_x64", True)
    X = jnp.asarray(np.load(folder / "X.npy"))
    for path in sorted(folder.glob("*.ours.npz")):
        name = path.name.removesuffix(".ours.npz")
        if name.startswith("softmax"):
            refusals += [refused(lambda path=path: to_gpjax(path))] * (name == "softmax")
            continue
        family = to_gpjax(path)
        np.savez(folder / f"{name}.there.npz", **said(family, X, "dense"))
        if name not in TRAINED:
            continue
        family = trained(family, X, jnp.asarray(np.load(folder / f"{name}.y.npy")))
        np.savez(folder / f"{name}.trained.npz", **said(family, X))
        from_gpjax(family, folder / f"{name}.back.npz", load_whitened(path).table)
    model = own(X, gpx.mean_functions.Constant(0.4))
    found = said(model, X)
    np.savez(folder / "own.trained.npz", **found | {"variance": found["variance"] - JITTER})
    from_gpjax(model, folder / "own.back.npz")
    shifted = own(X, gpx.mean_functions.Constant(1.0) + gpx.mean_functions.Zero())
    refusals.append(refused(lambda: from_gpjax(shifted, folder / "none.npz")))
    (folder / "refusals.json").write_text(json.dumps(refusals))


main(Path(sys.argv[1]))
