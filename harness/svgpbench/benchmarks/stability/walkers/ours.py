"""Our own methods on a backend, through the compiled steps of training."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from svgpbench.benchmarks.stability.walk import Floats
from svgpbench.config import LikelihoodConfig
from svgpbench.environment import installed_versions
from svgpbench.kernels import Model, Theta, constrain, unconstrain
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.plugins import load_backend
from svgpbench.runs.worker_setup import pin
from svgpbench.training.blocks import Batch, factor_at
from svgpbench.training.steps import compile_steps
from svgpbench.tree import leaves, tree_map

STAND_ON = ("numpy", "jax", "torch", "tensorflow", "tensorflow-cpu")


def versions() -> dict[str, str]:
    """Return the versions of NumPy and of the frameworks."""
    return {name: v for name, v in installed_versions().items() if name in STAND_ON}


class Ours:
    """Walker of one of our methods, at its start, q = p."""

    def __init__(self, arrays: dict[str, Any], request: dict[str, Any]) -> None:
        pin(request["backend"], request["threads"], [])
        self.ops = ops = load_backend(request["backend"], "", request["dtype"])
        options = json.loads(str(arrays["options"]))
        if arrays["classes"]:
            options["classes"] = int(arrays["classes"])
        name = str(arrays["likelihood"])
        likelihood = build_likelihood(LikelihoodConfig.model_validate({"name": name, **options}))
        self.model = Model(kernel("matern52"), likelihood, request["jitter"])
        self.method = build_method(request["method"], {})
        self.arrays = arrays
        self.steps = compile_steps(ops, self.model, self.method, 1, 0, ())
        scales = KernelParameters(arrays["variance"][None], arrays["lengthscale"][None, None])
        start = tree_map(np.float64, likelihood.initial_parameters())
        theta = Theta(scales, start, arrays["Z"][: request["inducing"]])
        self.raw = tree_map(ops.asarray, unconstrain(theta))
        self.prior = self.steps.prior(self.raw)
        n = len(arrays["y"])
        self.q = self.method.initial_state(ops, self.prior, self.model.latents, n)
        self.rate = ops.asarray(np.float64(request["rate"]))

    def _batch(self, rows: Floats, draw: int) -> Batch:
        a, ops = self.arrays, self.ops
        noise = ops.asarray(a["noise"][draw]) if a["noise"].size else ()
        return Batch(ops.asarray(a["X"][rows]), ops.asarray(a["y"][rows]), ops.asarray(rows), noise)

    def _scale(self, rows: Floats) -> Any:
        return self.ops.asarray(np.float64(len(self.arrays["y"]) / len(rows)))

    def step(self, k: int) -> None:
        """Take one E-step on minibatch `k`."""
        rows = self.arrays["rows"][k]
        batches = tree_map(lambda x: x[None], self._batch(rows, k))
        self.q = self.steps.e_phase_batches(
            self.raw, self.prior, batches, self.q, self.rate, self._scale(rows)
        )

    def bound(self) -> float:
        """Return the method's bound from the checked rows."""
        rows = self.arrays["checked"]
        batch = self._batch(rows, -1)
        f = self.steps.factor(self.raw, self.prior, batch)
        return float(
            self.ops.to_numpy(self.steps.bound(self.raw, f, batch, self.q, self._scale(rows)))
        )

    def state(self) -> Any:
        """Return the leaves of q, which no step changes in place."""
        return [self.ops.to_numpy(x) for x in leaves(self.q)]

    def restore(self, state: Any) -> None:
        """Set q from its leaves."""
        arrays = iter(state)
        self.q = tree_map(lambda _: self.ops.asarray(next(arrays)), self.q)

    def variances(self, k: int) -> Floats:
        """Return the variances of q(f) at minibatch `k`, [P, b]."""
        ops, theta = self.ops, constrain(self.ops, self.raw)
        batch = self._batch(self.arrays["rows"][k], k)
        f = factor_at(ops, self.model, self.method, theta, self.prior, batch.X)
        q = self.method.factorise(ops, f, self.q)
        return ops.to_numpy(self.method.marginals(ops, f, q)[1])


def build(arrays: dict[str, Any], request: dict[str, Any]) -> Ours:
    """Return a walker at its start."""
    return Ours(arrays, request)
