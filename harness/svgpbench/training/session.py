"""A session: a method on a backend with its model, θ, compiled steps and state.

session = start_session(ops, model, method, theta, n=len(y))
batch = session.batch(X, y)
session = session.e_step(batch, rate=0.5)
elbo = session.bound(batch)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.config import LEARN, Learnable
from svgpbench.kernels import Model, Theta, unconstrain
from svgpbench.methods.method import AnyMethod
from svgpbench.numerics.adam import AdamState, adam_start
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch, trainable_names, trainable_part
from svgpbench.training.steps import Steps, compile_steps
from svgpbench.tree import tree_map


@dataclass(frozen=True)
class Session:
    """A method on a backend at θ and q, with its compiled steps. It never changes: a step returns another."""

    ops: Ops
    model: Model
    method: AnyMethod
    steps: Steps
    trainable: tuple[Learnable, ...]  # the parts of θ that an M-step moves
    n: int  # number of data
    raw: Theta  # unconstrained, with the bases
    prior: Any  # the method's blocks at `raw`
    q: Tree  # the method's state

    def number(self, x: float) -> Array:
        """Return a scalar [] on the device."""
        return self.ops.asarray(np.float64(x))

    def batch(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        rows: Any = (),
        noise: Any = (),
        basis_points: Any = (),
    ) -> Batch:
        """Return rows of the data and their draws as a batch on the device; the last three may be ()."""
        host = Batch(X, y, rows, noise, basis_points)
        device: Batch = tree_map(self.ops.asarray, host)
        return device

    def scale(self, batch: Batch) -> Array:
        """Return the factor n/b [] with which a batch stands for all data."""
        return self.number(self.n / batch.y.shape[0])

    def adam(self) -> AdamState:
        """Return the start of Adam on the trainable part of θ."""
        return adam_start(self.ops, trainable_part(self.raw, self.trainable))

    def e_step(self, batch: Batch, rate: float) -> Session:
        """Return the session after the E-steps of `steps` on a batch."""
        blocks = self.steps.factor(self.raw, self.prior, batch)
        scale = self.scale(batch)
        q = self.steps.e_phase(self.raw, blocks, batch, self.q, self.number(rate), scale)
        return replace(self, q=q)

    def bound(self, batch: Batch) -> Array:
        """Return the bound [], estimated from a batch."""
        blocks = self.steps.factor(self.raw, self.prior, batch)
        return self.steps.bound(self.raw, blocks, batch, self.q, self.scale(batch))

    def kl(self, batch: Batch) -> Array:
        """Return KL[q ‖ p] []; a batch that samples basis points gives an estimate."""
        blocks = self.steps.factor(self.raw, self.prior, batch)
        return self.method.kl(self.ops, blocks, self.method.factorise(self.ops, blocks, self.q))

    def marginals(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and variance of q(f), each [P, b], at inputs X [b, D]."""
        return self.steps.marginals(self.raw, self.prior, self.q, X)


def start_session(
    ops: Ops,
    model: Model,
    method: AnyMethod,
    theta: Theta,
    n: int,
    *,
    learn: tuple[Learnable, ...] = LEARN,
    e_steps: int = 1,
    m_steps: int = 1,
) -> Session:
    """Return a method at its initial state, usually q = p, on a backend.

    Args:
        ops: the backend.
        model: kernel, likelihood and jitter.
        method: the method.
        theta: initial θ on the host, constrained, with the bases that the method has.
        n: number of data.
        learn: parts of θ that M-steps move, if the method can.
        e_steps: number of E-steps of a compiled E-phase.
        m_steps: number of M-steps of a compiled M-phase.

    Raises:
        UserError: if a value of θ is too small.
    """
    raw = tree_map(ops.asarray, unconstrain(theta))
    return session_at(ops, model, method, raw, n, learn, e_steps, m_steps)


def session_at(
    ops: Ops,
    model: Model,
    method: AnyMethod,
    raw: Theta,
    n: int,
    learn: tuple[Learnable, ...],
    e_steps: int,
    m_steps: int,
) -> Session:
    """Return what `start_session` returns, at an unconstrained θ on the device."""
    trainable = trainable_names(method, learn)
    steps = compile_steps(ops, model, method, e_steps, m_steps, trainable)
    prior = steps.prior(raw)
    q = method.initial_state(ops, prior, model.latents, n)
    return Session(ops, model, method, steps, trainable, n, raw, prior, q)
