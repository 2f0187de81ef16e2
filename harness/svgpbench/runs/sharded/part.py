"""The work of one shard in a step: chunks of rows are reduced to sums of the size of q."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from svgpbench.config import BackendConfig, TrainingConfig
from svgpbench.errors import UserError
from svgpbench.kernels import Model, Theta
from svgpbench.methods.dual import DualSVGP
from svgpbench.ops import Ops, Tree
from svgpbench.plugins import framework_of, load_backend
from svgpbench.runs.sharded.shards import Columns, Floats, Shard, read
from svgpbench.runs.worker_setup import peak_memory_bytes, worker_environment
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer
from svgpbench.tree import tree_map

METHOD = DualSVGP()


class Units(NamedTuple):
    """Centre and scale of rows: inputs and, last, the target, each [D + 1]."""

    centre: Floats
    scale: Floats

    def of(self, X: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return rows in these units."""
        standard = (X - self.centre[:-1]) / self.scale[:-1]
        return standard, (y - self.centre[-1]) / self.scale[-1]


class Work(NamedTuple):
    """Settings that are the same for every shard and every step."""

    model: Model
    columns: Columns
    units: Units
    backend: BackendConfig
    chunk: int  # rows at a time


class Sums(NamedTuple):
    """Sums over rows of one or more shards."""

    sites: Any  # dual parameters after an E-step of rate 1 on these rows alone
    expected: float  # Σ V at the state before the step
    rows: int
    peak_memory_bytes: int  # the most that one worker held


def added(one: Sums, other: Sums) -> Sums:
    """Return the sums of both; the peak memory is the larger one."""
    return Sums(
        tree_map(lambda a, b: a + b, one.sites, other.sites),
        one.expected + other.expected,
        one.rows + other.rows,
        max(one.peak_memory_bytes, other.peak_memory_bytes),
    )


def sums(shard: Shard, work: Work, theta: Theta, state: Tree) -> Sums:
    """Return the sums of one shard at θ and the whitened dual parameters, both on the host."""
    X, y = work.units.of(*read(shard, work.columns))
    ops = _ops(work.backend, shard.device)
    total: Sums | None = None
    for at in range(0, len(y), work.chunk):
        rows = slice(at, at + work.chunk)
        part = _of_chunk(ops, work.model, theta, state, X[rows], y[rows])
        total = part if total is None else added(total, part)
    assert total is not None  # a shard has rows
    return total._replace(peak_memory_bytes=peak_memory_bytes())


def negative_kl(model: Model, theta: Theta, state: Tree) -> float:
    """Return −KL[q ‖ p], computed with NumPy."""
    D = np.asarray(theta.inducing).shape[-1]
    trainer = _trainer(load_backend("numpy"), model, theta, np.zeros((1, D)), np.zeros(1))
    return _bound(trainer, state, 0.0)


def _of_chunk(ops: Ops, model: Model, theta: Theta, state: Tree, X: Floats, y: Floats) -> Sums:
    trainer = _trainer(ops, model, theta, X, y)
    at, steps = trainer.at, trainer.steps
    batch = trainer.batches.full(theta.inducing)
    one, held = ops.asarray(np.float64(1.0)), tree_map(ops.asarray, state)
    blocks = steps.factor(at.raw, at.prior, batch)
    moved = steps.e_phase(at.raw, blocks, batch, held, one, one)
    whole = float(ops.to_numpy(steps.bound(at.raw, blocks, batch, held, one)))
    empty = float(ops.to_numpy(steps.bound(at.raw, blocks, batch, held, 0.0 * one)))
    return Sums(tree_map(ops.to_numpy, moved), whole - empty, len(y), 0)


def _bound(trainer: Trainer, state: Tree, scale: float) -> float:
    ops, at, steps = trainer.ops, trainer.at, trainer.steps
    batch = trainer.batches.full(at.raw.inducing)
    blocks = steps.factor(at.raw, at.prior, batch)
    held = tree_map(ops.asarray, state)
    weight = ops.asarray(np.float64(scale))
    return float(ops.to_numpy(steps.bound(at.raw, blocks, batch, held, weight)))


def _trainer(ops: Ops, model: Model, theta: Theta, X: Floats, y: Floats) -> Trainer:
    data = TrainingData(X, y, X[:0], y[:0])
    settings = TrainingConfig(e_steps=1, m_steps=0, learn=())
    return Trainer(ops, model, METHOD, data, theta, settings)


def _ops(backend: BackendConfig, device: int) -> Ops:
    """Return the backend on device number `device`; raises `UserError` if it supports only one."""
    ops = _loaded(backend)
    if not device:
        return ops
    on: Callable[[int], Ops] | None = getattr(ops, "on", None)
    if on is None:
        raise UserError(f"backend {backend.name!r} computes on one device; jax does on several")
    return on(device)


@functools.lru_cache(maxsize=1)
def _loaded(backend: BackendConfig) -> Ops:
    """Return the backend, after setting the variables that its framework reads at import."""
    if framework_of(backend.name) is not None:
        for name, value in worker_environment(backend.device, 1).items():
            os.environ.setdefault(name, value)
    return load_backend(backend.name, backend.mode, backend.dtype, backend.device)
