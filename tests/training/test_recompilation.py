"""Nothing is compiled twice, in any method: batches, rates and θ change from call to call, shapes do not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import small_training

from svgpbench.backends import framework_missing, load_backend
from svgpbench.checks.cases import VARIANTS, build_model, likelihoods_of, small_problem
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.runs.worker_setup import compilations
from svgpbench.training.em import Trainer

PROBLEM = small_problem(n=30, M=4, b=8)
RISING = {"start": 0.1, "end": 0.4, "steps": 3}


def trainer(ops: Ops, title: str, likelihood: str) -> Trainer:
    """Two E-steps and two M-steps an iteration, each on a minibatch where the method takes one."""
    method = build_method(*VARIANTS[title])
    settings: dict[str, Any] = {
        "em_iterations": 4,
        "e_steps": 2,
        "e_rate": RISING,
        "m_steps": 2,
        "batch_size": None if method.collapsed or method.needs_all_data else 8,
    }
    model = build_model(likelihood, "matern52")
    return small_training.trainer(ops, method, problem=PROBLEM, model=model, **settings)


def compiled(run: Trainer) -> dict[str, int]:
    """Programs of each of the run's steps that has been called."""
    counts = {name: compilations(run.ops, [f]) for name, f in vars(run.steps).items()}
    return {name: count for name, count in counts.items() if count}


FIRST = {name: title for title, (name, _) in reversed(VARIANTS.items())}.values()
"""The first variant of each method. `make long` has the others, on JAX, which recompiles most easily."""


@pytest.mark.parametrize(
    ("ops", "title"),
    [(backend, title) for backend in ("jax", "tensorflow") for title in FIRST]
    + [pytest.param("jax", t, marks=pytest.mark.long) for t in VARIANTS if t not in FIRST],
    indirect=["ops"],
)
def test_phases_of_every_method_are_compiled_once(ops: Ops, title: str) -> None:
    run = trainer(ops, title, likelihoods_of(title)[0])
    at, rates = run.state, set()
    for iteration in range(1, 4):
        at, _ = run.e_phase(at._replace(iteration=iteration))
        at = run.m_phase(at)
        rates.add(float(ops.to_numpy(run.e_rate(iteration))))
    counts = compiled(run)
    assert set(counts.values()) == {1}, counts
    assert len(counts) >= 3 and len(rates) == 3
    assert all(np.all(np.isfinite(ops.to_numpy(x))) for x in at.raw.kernel)


@pytest.mark.parametrize(
    "backend", ["jax", "tensorflow", pytest.param("torch:compile", marks=pytest.mark.long)]
)
def test_a_run_compiles_nothing_after_its_second_iteration(backend: str) -> None:
    """Trace points too, and on JAX what it compiles of itself for work outside any step."""
    name, _, mode = backend.partition(":")
    if missing := framework_missing(name):
        pytest.skip(missing)
    ops = load_backend(name, mode)
    run, seen = trainer(ops, "t-svgp tied-projected", "gaussian"), list[str]()
    for _ in range(2):
        run.state = run.iterate(run.state)
    before = compiled(run)
    with watched(ops, seen):
        for _ in range(2):
            run.state = run.iterate(run.state)
    assert (compiled(run), seen) == (before, [])
    assert {"factor", "bound", "predict"} < set(before) and len(run.state.trace) == 4


@contextlib.contextmanager
def watched(ops: Ops, seen: list[str]) -> Iterator[None]:
    """Every program that JAX compiles meanwhile is seen."""
    if ops.name != "jax":
        yield
        return
    import jax

    def see(event: str, _: float, **what: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(str(what))

    jax.monitoring.register_event_duration_secs_listener(see)
    try:
        yield
    finally:
        if hasattr(jax.monitoring, "unregister_event_duration_listener"):  # JAX 0.6 keeps it
            jax.monitoring.unregister_event_duration_listener(see)
