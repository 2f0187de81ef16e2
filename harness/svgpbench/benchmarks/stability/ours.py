"""Our own methods as a script of `serve.py`: stability runs through the compiled steps of training."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from svgpbench.backends import load_backend
from svgpbench.benchmarks.stability.walk import Floats
from svgpbench.config import LikelihoodConfig
from svgpbench.environment import installed_versions
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.runs.worker_setup import pin
from svgpbench.training.blocks import Batch
from svgpbench.training.session import start_session
from svgpbench.tree import leaves, rebuild, tree_map

FRAMEWORKS = ("numpy", "jax", "torch", "tensorflow", "tensorflow-cpu")
VERSIONS = tuple(name for name in installed_versions() if name in FRAMEWORKS)


def start(threads: int) -> None:
    """Do nothing: threads are set before this process starts, and by the run for its backend."""


class SessionWalker:
    """E-steps of one of our methods at a fixed θ, from q = p."""

    def __init__(self, arrays: dict[str, Any], request: dict[str, Any]) -> None:
        pin(request["backend"], request["threads"], [])
        self.ops = ops = load_backend(request["backend"], "", request["dtype"])
        options = json.loads(str(arrays["options"]))
        if arrays["classes"]:
            options["classes"] = int(arrays["classes"])
        name = str(arrays["likelihood"])
        likelihood = build_likelihood(LikelihoodConfig.model_validate({"name": name, **options}))
        model = Model(kernel("matern52"), likelihood, request["jitter"])
        method, self.arrays = build_method(request["method"], {}), arrays
        scales = KernelParameters(arrays["variance"][None], arrays["lengthscales"][None, None])
        start = tree_map(np.float64, likelihood.initial_parameters())
        theta = Theta(scales, start, arrays["Z"])
        self.session = start_session(ops, model, method, theta, arrays["n"], learn=())
        self.rate = self.session.number(request["rate"])

    def _batch(self, rows: Floats, draw: int) -> Batch:
        a = self.arrays
        noise = a["noise"][draw] if a["noise"].size else ()
        return self.session.batch(a["X"][rows], a["y"][rows], rows, noise)

    def step(self, k: int) -> None:
        """Take one E-step on minibatch `k`."""
        session, batch = self.session, self._batch(self.arrays["rows"][k], k)
        batches, scale = tree_map(lambda x: x[None], batch), session.scale(batch)
        q = session.steps.e_phase_batches(
            session.raw, session.prior, batches, session.q, self.rate, scale
        )
        self.session = replace(session, q=q)

    def bound(self) -> float:
        """Return the method's bound from the checked rows."""
        bound = self.session.bound(self._batch(self.arrays["checked"], -1))
        return float(self.ops.to_numpy(bound))

    def state(self) -> Any:
        """Return the leaves of q, which no step changes in place."""
        return [self.ops.to_numpy(x) for x in leaves(self.session.q)]

    def restore(self, state: Any) -> None:
        """Set q from its leaves."""
        q = rebuild(self.session.q, map(self.ops.asarray, state))
        self.session = replace(self.session, q=q)

    def variances(self, k: int) -> Floats:
        """Return the variances of q(f) at minibatch `k`, [P, b]."""
        X = self.ops.asarray(self.arrays["X"][self.arrays["rows"][k]])
        return self.ops.to_numpy(self.session.marginals(X)[1])


natural_gradient_run = SessionWalker
