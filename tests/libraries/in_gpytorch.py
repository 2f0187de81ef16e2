"""What GPyTorch makes of posteriors in a folder. Run by its own Python: in_gpytorch.py FOLDER."""

import json
import sys
from pathlib import Path

import gpytorch
import numpy as np
import torch

from svgpbench.errors import UserError
from svgpbench.libraries.gpytorch import from_gpytorch, to_gpytorch
from svgpbench.libraries.whitened import load_whitened

JITTER = 1e-5


def said(model, X):
    model.eval()
    model.likelihood.eval()
    with torch.no_grad():
        f = model(X)
        y = model.likelihood(f).mean if f.mean.ndim == 1 else f.mean[:, 0]
    found = {"mean": f.mean, "variance": f.variance}
    return {k: x.numpy().reshape(len(X), -1).T for k, x in found.items()} | {"y": y.numpy()}


def train(model, X, y):
    model.train()
    model.likelihood.train()
    softmax = isinstance(model.likelihood, gpytorch.likelihoods.SoftmaxLikelihood)
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model, len(X))
    adam = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(4):
        adam.zero_grad()
        (-bound(model(X), y.long() if softmax else y)).backward()
        adam.step()


class Own(gpytorch.models.ApproximateGP):
    """A model as in GPyTorch's own examples."""

    def __init__(self, Z, mean):
        q = gpytorch.variational.NaturalVariationalDistribution(len(Z))
        strategy = gpytorch.variational.VariationalStrategy(self, Z, q, jitter_val=JITTER)
        super().__init__(strategy)
        self.mean_module = mean
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=Z.shape[-1])
        )
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def refused(call):
    try:
        call()
    except UserError as error:
        return str(error)
    return "nothing was refused"


def main(folder):
    torch.manual_seed(0)
    X = torch.as_tensor(np.load(folder / "X.npy"))
    for path in sorted(folder.glob("*.ours.npz")):
        name = path.name.removesuffix(".ours.npz")
        model = to_gpytorch(path)
        np.savez(folder / f"{name}.there.npz", **said(model, X))
        train(model, X, torch.as_tensor(np.load(folder / f"{name}.y.npy")))
        np.savez(folder / f"{name}.trained.npz", **said(model, X))
        from_gpytorch(model, folder / f"{name}.back.npz", load_whitened(path).table)
    own = Own(X[:7], gpytorch.means.ConstantMean()).double()
    train(own, X, torch.sin(X[:, 0]))
    found = said(own, X)
    np.savez(folder / "own.trained.npz", **found | {"variance": found["variance"] - JITTER})
    from_gpytorch(own, folder / "own.back.npz")
    shifted = Own(X[:7], gpytorch.means.LinearMean(2))
    linear = Own(X[:7], gpytorch.means.ZeroMean())
    linear.covar_module = gpytorch.kernels.LinearKernel()
    refusals = [
        refused(lambda model=model: from_gpytorch(model, folder / "none.npz"))
        for model in (linear, shifted)
    ]
    (folder / "refusals.json").write_text(json.dumps(refusals))


main(Path(sys.argv[1]))
