"""Our methods as a peer's script: the compiled steps of training, on the backend named by the mode.

Loaded by `benchmarks/timing/peers/serve.py`, which feeds, times and evaluates it as it does the peers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.benchmarks.timing.cases import timed_method
from svgpbench.benchmarks.timing.problems import model_of, theta_of
from svgpbench.config import LEARN
from svgpbench.environment import installed_versions
from svgpbench.kernels import Theta, constrain, unconstrain
from svgpbench.kernels.bases import Decoupled
from svgpbench.numerics.adam import adam_start
from svgpbench.ops import Array, Tree
from svgpbench.plugins import load_backend
from svgpbench.runs.worker_setup import pin
from svgpbench.training.blocks import Batch, factor_at, learnable, learned
from svgpbench.training.m_step import AtTheta
from svgpbench.training.steps import compile_steps
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]

VERSIONS = tuple(installed_versions())


def start(threads: int) -> None:
    """Do nothing.

    The threads of NumPy and OpenMP were set before this process started, a backend's are set by `Learner`.
    """


class Learner:
    """Method at its start, q = p, that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], title: str, mode: str) -> None:
        backend, _, compiled = mode.partition(":")
        pin(backend, int(os.environ["OMP_NUM_THREADS"]), [])
        self.ops = ops = load_backend(backend, compiled)
        self.model, self.method = model_of(p), timed_method(title).build()
        self.learn = learnable(self.method, LEARN)
        self.steps = compile_steps(ops, self.model, self.method, int(p["e_steps"]), 1, self.learn)
        self.modes = {mode: self.iterate}
        self.rates = [ops.asarray(p[name]) for name in ("e_rate", "m_rate")]
        n = int(p["n"])
        self.scale = ops.asarray(np.float64(n / p["rows"].shape[1]))
        seen = p["checked"]
        self.seen = self.batch(p["X"][seen], p["y"][seen], p["noise"])
        self.seen_scale = ops.asarray(np.float64(n / len(seen)))
        self.new = ops.asarray(p["X_new"])
        raw = tree_map(ops.asarray, unconstrain(self.theta(p)))
        prior = self.steps.prior(raw)
        q = self.method.initial_state(ops, prior, self.model.latents, n)
        self.at = self.start = (AtTheta(raw, prior, q), adam_start(ops, learned(raw, self.learn)))
        self.moments = ops.jit(self._moments)

    def theta(self, p: dict[str, Any]) -> Theta:
        """Return θ at the start, with the bases of the method.

        Raises `NotImplementedError` if the method has two bases and the problem has none.
        """
        theta = theta_of(p, self.model)
        if self.method.basis != "decoupled":
            return theta
        if "gamma" not in p:
            raise NotImplementedError("it has two bases, and the problem has no two_bases")
        return theta._replace(inducing=Decoupled(p["gamma"], p["beta"]))

    def batch(self, X: Floats, y: Floats, noise: Floats) -> Batch:
        """Return rows and draws on the device. No method here needs row numbers."""
        asarray = self.ops.asarray
        return Batch(asarray(X), asarray(y), (), asarray(noise) if noise.size else ())

    def feed(self, batches: Sequence[tuple[Floats, Floats]], noise: Floats) -> None:
        """Set the rows of each E-step and of the M-step, and their draws."""
        self.of_e_steps, self.of_m_step = (
            self.batch(
                np.stack([X for X, _ in part]),
                np.stack([y for _, y in part]),
                np.stack([noise] * len(part)),
            )
            for part in (batches[:-1], batches[-1:])
        )

    def iterate(self) -> None:
        """Run one iteration on the batches fed last, and wait for its result."""
        (raw, p, q), adam = self.at
        e_rate, m_rate = self.rates
        q = self.steps.e_phase_batches(raw, p, self.of_e_steps, q, e_rate, self.scale)
        self.at = self.steps.m_phase_batches(raw, p, q, adam, self.of_m_step, m_rate, self.scale)
        self.ops.sync(self.at)

    def elbo(self) -> float:
        """Return the method's bound from the checked rows."""
        raw, p, q = self.at[0]
        f = self.steps.factor(raw, p, self.seen)
        bound = self.steps.bound(raw, f, self.seen, q, self.seen_scale)
        return float(self.ops.to_numpy(bound))

    def figure(self, result: Any) -> float:
        """Return the bound after a call."""
        return self.elbo()

    def _moments(self, at: AtTheta, X: Array) -> tuple[Array, Array, Tree]:
        ops, method, theta = self.ops, self.method, constrain(self.ops, at.raw)
        f = factor_at(ops, self.model, method, theta, at.prior, X)
        return (*method.marginals(ops, f, method.factorise(ops, f, at.state)), theta.likelihood)

    def predict(self) -> tuple[Floats, Floats, Floats]:
        """Return moments [P, t] of q(f) at the new rows, and the variance of Gaussian noise [], or 0."""
        mean, variance, likelihood = tree_map(self.ops.to_numpy, self.moments(self.at[0], self.new))
        return mean, variance, getattr(likelihood, "noise_variance", np.zeros(()))

    def reset(self) -> None:
        """Go back to the start. No step changes an array in place."""
        self.at = self.start


learner = Learner
