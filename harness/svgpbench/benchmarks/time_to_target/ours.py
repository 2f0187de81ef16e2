"""Our methods as a peer's script: the compiled steps of training, on the backend named by the mode.

Loaded by `benchmarks/timing/peers/serve.py`, which feeds, times and evaluates it as it does the peers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.backends import load_backend
from svgpbench.benchmarks.timing.cases import timed_method
from svgpbench.benchmarks.timing.problems import model_of, theta_of
from svgpbench.environment import installed_versions
from svgpbench.kernels import constrain
from svgpbench.kernels.bases import Decoupled
from svgpbench.runs.worker_setup import pin
from svgpbench.training.blocks import Batch
from svgpbench.training.session import start_session
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]

VERSIONS = tuple(installed_versions())


def start(threads: int) -> None:
    """Do nothing.

    Threads of NumPy and OpenMP were set before this process started. `SessionLearner` sets a backend's.
    """


class SessionLearner:
    """Method at its start, q = p, that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], title: str, mode: str) -> None:
        backend, _, compiled = mode.partition(":")
        # no cores: `serve.py` has pinned this process to them already
        pin(backend, int(os.environ["OMP_NUM_THREADS"]), [])
        self.ops = ops = load_backend(backend, compiled)
        model, method = model_of(p), timed_method(title).build()
        theta = theta_of(p, model)
        if method.basis == "decoupled":
            if "gamma" not in p:
                raise NotImplementedError("it has two bases, and the problem has no two_bases")
            theta = theta._replace(inducing=Decoupled(p["gamma"], p["beta"]))
        session = start_session(ops, model, method, theta, int(p["n"]), e_steps=int(p["e_steps"]))
        self.state = self.start = (session, session.adam())
        self.modes = {mode: self.iterate}
        self.rates = [ops.asarray(p[name]) for name in ("e_rate", "m_rate")]
        self.scale = session.number(session.n / p["rows"].shape[1])
        rows = p["checked"]
        self.checked = self.batch(p["X"][rows], p["y"][rows], p["noise"])
        self.new = ops.asarray(p["X_new"])

    def batch(self, X: Floats, y: Floats, noise: Floats) -> Batch:
        """Return rows and draws on the device. No method here needs row numbers."""
        return self.start[0].batch(X, y, noise=noise if noise.size else ())

    def feed(self, batches: Sequence[tuple[Floats, Floats]], noise: Floats) -> None:
        """Set the rows of each E-step and of the M-step, and their draws."""
        self.e_step_batches, self.m_step_batch = (
            self.batch(
                np.stack([X for X, _ in part]),
                np.stack([y for _, y in part]),
                np.stack([noise] * len(part)),
            )
            for part in (batches[:-1], batches[-1:])
        )

    def iterate(self) -> None:
        """Run one iteration on the batches fed last, and wait for its result."""
        (session, adam), (e_rate, m_rate) = self.state, self.rates
        raw, p, steps, scale = session.raw, session.prior, session.steps, self.scale
        q = steps.e_phase_batches(raw, p, self.e_step_batches, session.q, e_rate, scale)
        stepped, adam = steps.m_phase_batches(raw, p, q, adam, self.m_step_batch, m_rate, scale)
        self.ops.sync((stepped, adam))
        self.state = replace(session, **stepped._asdict()), adam

    def elbo(self) -> float:
        """Return the method's bound from the checked rows."""
        return float(self.ops.to_numpy(self.state[0].bound(self.checked)))

    def figure(self, result: Any) -> float:
        """Return the bound after a call."""
        return self.elbo()

    def predict(self) -> tuple[Floats, Floats, Floats]:
        """Return moments [P, t] of q(f) at the new rows, and the variance of Gaussian noise [], or 0."""
        session, to_numpy = self.state[0], self.ops.to_numpy
        mean, variance = map(to_numpy, session.marginals(self.new))
        likelihood = tree_map(to_numpy, constrain(self.ops, session.raw).likelihood)
        return mean, variance, getattr(likelihood, "noise_variance", np.zeros(()))

    def reset(self) -> None:
        """Go back to the start. No step changes an array in place."""
        self.state = self.start


learner = SessionLearner
