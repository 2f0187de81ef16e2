"""E-steps of t-SVGP on all data: each is a map over shards and a tree of sums.

With whitened dual parameters (c, C), a step of rate ρ gives (1 − ρ)(c, C) + ρ Σ_i (λ₁ᵢwᵢ, βᵢwᵢwᵢᵀ). The
bound is Σ_i V_i − KL. Both depend on the data through sums over rows (Adam et al. 2021, Eqs. 22–24). With
Gaussian noise, one step of rate 1 gives the best q, and the bound is SGPR's (Titsias 2009).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from svgpbench.config import BackendConfig, InducingConfig, KernelConfig
from svgpbench.errors import UserError
from svgpbench.initialization.inducing_inputs import initial_bases
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, lengthscale_count
from svgpbench.ops import Tree
from svgpbench.plugins import load_backend
from svgpbench.runs.sharded.part import METHOD, ShardSums, Units, Work, added, negative_kl, sums
from svgpbench.runs.sharded.shards import (
    Moments,
    Shard,
    TableColumns,
    counts_together,
    merged,
    moments,
    read,
    target_counts,
)
from svgpbench.runs.sharded.workers import Workers
from svgpbench.training.batches import EVALUATION_ROWS
from svgpbench.training.session import start_session
from svgpbench.tree import tree_map
from svgpbench_datasets.standardise import is_constant

MOST_TARGETS = 10**7
"""Number of targets that the prior mean is computed from; of more rows, equal shares of every value."""


class ShardedStep(NamedTuple):
    """A pass over the data."""

    bound: float  # at the state before the step
    seconds: float
    peak_memory_bytes: int  # the most that one worker held


class ShardedRun(NamedTuple):
    """Results of the passes; the last step only evaluates the bound of the state."""

    theta: Theta
    state: Tree
    units: Units
    rows: int
    steps: tuple[ShardedStep, ...]


def climb(
    workers: Workers,
    shards: Sequence[Shard],
    columns: TableColumns,
    model: Model,
    kernel: KernelConfig,
    inducing: InducingConfig,
    backend: BackendConfig,
    *,
    iterations: int = 1,
    rate: float = 1.0,
    seed: int = 0,
    on_step: Callable[[ShardedStep], None] = lambda step: None,
) -> ShardedRun:
    """Run E-steps from q = p at the initial θ, and evaluate the bound before each and at the end.

    Latent functions of labels and counts have the constant prior mean of all targets, as those of `fit`.

    Raises:
        UserError: if the likelihood samples or has steps that are halved, which are not sums over shards.
    """
    if model.likelihood.damps or model.likelihood.samples:
        raise UserError(
            f"likelihood {model.likelihood.name!r} has steps that are no sums over rows; "
            "use one that is log-concave and does not sample"
        )
    total_moments: Moments = workers.total(moments, shards, (columns,), merged)
    spread = total_moments.norm / np.sqrt(total_moments.rows)
    constant = is_constant(total_moments.mean, spread)
    centre, scale = total_moments.mean.copy(), np.where(constant, 1.0, spread)
    real = model.likelihood.support == "real"
    if not real:  # targets that are not real-valued are not scaled
        centre[-1], scale[-1] = 0.0, 1.0
    units = Units(centre, scale)
    theta = _start(shards[0], columns, units, model, kernel, inducing, seed)
    if not real:
        counts = workers.total(target_counts, shards, (columns,), counts_together)
        shares = -(-counts // -(-counts.sum() // MOST_TARGETS))  # a rare value keeps a row
        y = np.repeat(counts.index.to_numpy(), shares)
        mean = model.likelihood.latent_mean(load_backend("numpy"), theta.likelihood, y)
        theta = theta._replace(mean=np.asarray(mean))
    work = Work(model, columns, units, backend, EVALUATION_ROWS)
    rows = sum(shard.rows for shard in shards)
    state = start_session(load_backend("numpy"), model, METHOD, theta, rows, learn=()).q
    steps: list[ShardedStep] = []
    for iteration in range(iterations + 1):
        since = time.perf_counter()
        total: ShardSums = workers.total(sums, shards, (work, theta, state), added)
        bound = total.expected + negative_kl(model, theta, state)
        step = ShardedStep(bound, time.perf_counter() - since, total.peak_memory_bytes)
        steps.append(step)
        on_step(step)
        if iteration < iterations:
            state = tree_map(lambda a, b: (1.0 - rate) * a + rate * b, state, total.sites)
    return ShardedRun(theta, state, units, rows, tuple(steps))


def _start(
    shard: Shard,
    columns: TableColumns,
    units: Units,
    model: Model,
    kernel: KernelConfig,
    inducing: InducingConfig,
    seed: int,
) -> Theta:
    """Return the initial θ, with inducing inputs from the rows of one shard.

    Raises `UserError` if the shard has fewer rows than inducing inputs.
    """
    X, _ = units.standardise(*read(shard, columns))
    if inducing.count > len(X):
        raise UserError(f"inducing inputs: {inducing.count} of {len(X)} rows of a shard")
    count = lengthscale_count(kernel.ard, X.shape[1])
    lengthscales = np.broadcast_to(np.asarray(kernel.lengthscale, np.float64), (count,))[None]
    parameters = KernelParameters(np.array([kernel.variance]), lengthscales.copy())
    likelihood = tree_map(np.float64, model.likelihood.initial_parameters())
    theta = Theta(parameters, likelihood, ())
    covariance = model.covariance(load_backend("numpy"), theta)
    return theta._replace(inducing=initial_bases(X, inducing, seed, covariance))
