"""A run of a training on the small problem of `svgpbench check`; tests change one part of it."""

from __future__ import annotations

from typing import Any

from svgpbench.checks.cases import VARIANTS, SmallProblem, build_model, small_problem
from svgpbench.config import TrainingConfig
from svgpbench.kernels import Model, Theta
from svgpbench.methods import AnyMethod, build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer

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
