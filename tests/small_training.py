"""A run of a training on the small problem of `svgpbench check`; tests change one part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from svgpbench.checks.cases import VARIANTS, SmallProblem, build_model, small_problem
from svgpbench.config import TrainingConfig
from svgpbench.kernels import Model, Theta
from svgpbench.methods import AnyMethod, build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trained, Trainer

PROBLEM = small_problem()


def trainer(
    ops: Ops,
    method: str | AnyMethod = "t-svgp tied-projected",
    *,
    kind: type[Trainer] = Trainer,
    problem: SmallProblem = PROBLEM,
    model: Model | None = None,
    theta: Theta | None = None,
    **changes: Any,
) -> Trainer:
    """Return a run of a method, or of a variant by its title; `changes` go to the training settings."""
    built = build_method(*VARIANTS[method]) if isinstance(method, str) else method
    model = model or build_model("gaussian", "matern52")
    targets = problem.targets(model.likelihood.support)
    data = TrainingData(problem.X, targets, problem.X[:10] + 0.2, targets[:10], y_scale=2.0)
    settings = TrainingConfig(**({"em_iterations": 3, "m_steps": 4, "m_rate": 0.05} | changes))
    theta = theta or problem.theta(model, built.basis)
    return kind(ops, model, built, data, theta, settings)


def column(trained: Trained, name: str) -> list[float]:
    """Return one number of every trace point of a run that ended well."""
    assert trained.status == "ok", trained.message
    return [float(point[name] or 0.0) for point in trained.trace]


def assert_traces_agree(found: Trained, reference: Trained, rel: float) -> None:
    """Assert that two runs have the same numbers at every trace point, their times left out."""
    for one, other in zip(found.trace, reference.trace, strict=True):
        for name in set(one) - {"seconds"}:
            assert one[name] == pytest.approx(other[name], rel=rel), name


def recorded_steps(run: Trainer, names: Sequence[str]) -> list[tuple[float, float]]:
    """Return a list to which every call of these steps of a run adds its rate and its scale."""
    calls: list[tuple[float, float]] = []

    def recording(step: Any) -> Any:
        def recorded(*arguments: Any) -> Any:
            rate, scale = arguments[-2:]
            calls.append((float(rate), float(scale)))
            return step(*arguments)

        return recorded

    run.steps = replace(run.steps, **{x: recording(getattr(run.steps, x)) for x in names})
    return calls
