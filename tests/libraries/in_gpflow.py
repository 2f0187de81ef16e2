"""What GPflow makes of posteriors in a folder. Run by its own Python: in_gpflow.py FOLDER."""

import json
import sys
from pathlib import Path

import gpflow
import numpy as np
import tensorflow as tf

from svgpbench.errors import UserError
from svgpbench.libraries.gpflow import from_gpflow, to_gpflow
from svgpbench.libraries.whitened import load_whitened


def said(model, X):
    mean, variance = model.predict_f(X)
    p = model.likelihood.predict_mean_and_var(X, mean, variance)[0]
    return {"mean": mean.numpy().T, "variance": variance.numpy().T, "y": p.numpy()[:, 0]}


def train(model, X, y):
    kind = np.int64 if isinstance(model.likelihood, gpflow.likelihoods.Softmax) else np.float64
    adam = tf.optimizers.Adam(0.05)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = model.training_loss((X, y[:, None].astype(kind)))
        gradients = tape.gradient(loss, model.trainable_variables)
        adam.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def own(X, **options):
    """A model that svgpbench did not make, away from q = p."""
    rng = np.random.default_rng(3)
    kernel = gpflow.kernels.SquaredExponential(1.3, lengthscales=[0.7, 1.1])
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.3), X[:7], **options)
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(0.3 * np.abs(rng.normal(size=model.q_sqrt.shape)))
    return model


def refused(call):
    try:
        call()
    except UserError as error:
        return str(error)
    return "nothing was refused"


def main(folder):
    tf.random.set_seed(0)
    X = np.load(folder / "X.npy")
    for path in sorted(folder.glob("*.ours.npz")):
        name = path.name.removesuffix(".ours.npz")
        model = to_gpflow(path)
        np.savez(folder / f"{name}.there.npz", **said(model, X))
        train(model, X, np.load(folder / f"{name}.y.npy"))
        np.savez(folder / f"{name}.trained.npz", **said(model, X))
        from_gpflow(model, folder / f"{name}.back.npz", load_whitened(path).table)
    for name, options in {
        "unwhitened": {"whiten": False, "mean_function": gpflow.functions.Constant(0.4)},
        "diagonal": {"q_diag": True},
    }.items():
        model = own(X, **options)
        np.savez(folder / f"{name}.trained.npz", **said(model, X))
        from_gpflow(model, folder / f"{name}.back.npz")
    linear = gpflow.models.SVGP(gpflow.kernels.Linear(), gpflow.likelihoods.Gaussian(), X[:4])
    shifted = own(X, mean_function=gpflow.functions.Linear())
    sliced = own(X)
    sliced.kernel = gpflow.kernels.Matern52(active_dims=[0])
    exact = gpflow.models.GPR((X, X[:, :1]), gpflow.kernels.Matern52())
    refusals = [
        refused(lambda model=model: from_gpflow(model, folder / "none.npz"))
        for model in (linear, shifted, sliced, exact)
    ]
    (folder / "refusals.json").write_text(json.dumps(refusals))


main(Path(sys.argv[1]))
