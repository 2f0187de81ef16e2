"""The work of one shard in a step: chunks of rows are reduced to sums of the size of q."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from svgpbench.config import BackendConfig
from svgpbench.errors import UserError
from svgpbench.kernels import Model, Theta
from svgpbench.methods.dual import DualSVGP
from svgpbench.ops import Ops, Tree
from svgpbench.plugins import framework_of, load_backend
from svgpbench.runs.sharded.shards import Floats, Shard, TableColumns, read
from svgpbench.runs.worker_setup import peak_memory_bytes, worker_environment
from svgpbench.training.session import Session, start_session
from svgpbench.tree import tree_map

METHOD = DualSVGP()


class Units(NamedTuple):
    """Centre and scale of rows: inputs and, last, the target, each [D + 1]."""

    centre: Floats
    scale: Floats

    def standardise(self, X: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return rows in these units."""
        standard = (X - self.centre[:-1]) / self.scale[:-1]
        return standard, (y - self.centre[-1]) / self.scale[-1]


class Work(NamedTuple):
    """Settings that are the same for every shard and every step."""

    model: Model
    columns: TableColumns
    units: Units
    backend: BackendConfig
    chunk: int  # rows at a time


class ShardSums(NamedTuple):
    """Sums over rows of one or more shards."""

    sites: Any  # dual parameters after an E-step of rate 1 on these rows alone
    expected: float  # Σ V at the state before the step
    rows: int
    peak_memory_bytes: int  # the most that one worker held


def added(first: ShardSums, second: ShardSums) -> ShardSums:
    """Return the total of two sums. Its peak memory is the larger one."""
    return ShardSums(
        tree_map(lambda a, b: a + b, first.sites, second.sites),
        first.expected + second.expected,
        first.rows + second.rows,
        max(first.peak_memory_bytes, second.peak_memory_bytes),
    )


def sums(shard: Shard, work: Work, theta: Theta, state: Tree) -> ShardSums:
    """Return the sums of one shard at θ and the whitened dual parameters, both on the host."""
    X, y = work.units.standardise(*read(shard, work.columns))
    session = at_state(_ops(work.backend, shard.device), work.model, theta, state)
    chunks = [slice(first, first + work.chunk) for first in range(0, len(y), work.chunk)]
    total = functools.reduce(added, (_chunk_sums(session, X[rows], y[rows]) for rows in chunks))
    return total._replace(peak_memory_bytes=peak_memory_bytes())


def _chunk_sums(session: Session, X: Floats, y: Floats) -> ShardSums:
    ops, steps, raw = session.ops, session.steps, session.raw
    batch, full_rate = session.batch(X, y), session.number(1.0)
    blocks = steps.factor(raw, session.prior, batch)
    sites = steps.e_phase(raw, blocks, batch, session.q, full_rate, full_rate)
    expected = float(ops.to_numpy(steps.expected(raw, blocks, batch, session.q)))
    return ShardSums(tree_map(ops.to_numpy, sites), expected, len(y), 0)


def negative_kl(model: Model, theta: Theta, state: Tree) -> float:
    """Return −KL[q ‖ p], computed with NumPy."""
    session = at_state(load_backend("numpy"), model, theta, state)
    return -float(session.kl(session.batch(np.asarray(theta.inducing)[:1], np.zeros(1))))


def at_state(ops: Ops, model: Model, theta: Theta, state: Tree) -> Session:
    """Return the method at θ and the whitened dual parameters, both on the host."""
    session = start_session(ops, model, METHOD, theta, 1, learn=())
    return replace(session, q=tree_map(ops.asarray, state))


def _ops(backend: BackendConfig, device: int) -> Ops:
    """Return the backend on device number `device`; raises `UserError` if it supports only one."""
    ops = _loaded(backend)
    if not device:
        return ops
    device_of: Callable[[int], Ops] | None = getattr(ops, "on_device", None)
    if device_of is None:
        raise UserError(f"backend {backend.name!r} computes on one device; jax does on several")
    return device_of(device)


@functools.lru_cache(maxsize=1)
def _loaded(backend: BackendConfig) -> Ops:
    """Return the backend, after setting the variables that its framework reads at import."""
    if framework_of(backend.name) is not None:
        for name, value in worker_environment(backend.device, 1).items():
            os.environ.setdefault(name, value)
    return load_backend(backend.name, backend.mode, backend.dtype, backend.device)
