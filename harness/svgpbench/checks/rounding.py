"""Growth of rounding errors along a trajectory with learned inducing inputs.

Such trajectories are chaotic: two backends that agree to the last digit at the start differ after some
hundred M-steps. They may differ no faster than runs of one backend whose X is perturbed by 1e-15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import build_model
from svgpbench.config import TrainingConfig
from svgpbench.experiments.cell import perturbed
from svgpbench.experiments.rounding_model import MARGIN, PERTURBATION
from svgpbench.initialization.inducing_inputs import initial_inducing_inputs
from svgpbench.kernels import Theta
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer
from svgpbench_datasets import REGISTRY, k_fold, prepare

FLOOR = 1e-13
"""Differences of a few units in the last place, before any growth."""
ROWS, INDUCING, ITERATIONS, M_STEPS = 300, 15, 20, 15


@dataclass(frozen=True)
class Rounding:
    """Relative differences of the bound after `m_steps` M-steps."""

    m_steps: int
    backends: float  # largest between two backends
    perturbed: float  # largest between one backend and its perturbed replicas
    tolerance: float

    @property
    def ok(self) -> bool:
        """Return True if backends differ no more than rounding explains."""
        return self.backends <= self.tolerance


def trajectory(ops: Ops, replica: int = 0) -> list[float]:
    """Return the bound at every EM iteration on random rows of airfoil; replica 0 is unperturbed.

    It is NaN from the iteration on at which a run failed.
    """
    dataset = REGISTRY.load("airfoil")
    ready = prepare(dataset, k_fold(len(dataset.y), 5, 0, 0))
    rows = np.random.default_rng(0).choice(len(ready.y_train), ROWS, replace=False)
    X, y = ready.X_train[rows], ready.y_train[rows]
    theta = Theta(
        KernelParameters(np.ones(1), np.ones((1, X.shape[1]))),
        GaussianParameters(np.float64(1.0)),
        initial_inducing_inputs(X, INDUCING, "k-means", 0),
    )
    settings = TrainingConfig(em_iterations=ITERATIONS, m_steps=M_STEPS, m_rate=0.2)
    inputs = perturbed(X, PERTURBATION if replica else 0.0, replica)
    data = TrainingData(inputs, y, ready.X_test, ready.y_test)
    model = build_model("gaussian", "matern52")
    trained = Trainer(ops, model, build_method("t-svgp", {}), data, theta, settings).run()
    bounds = [float(point["elbo"] or np.nan) for point in trained.trace]
    return bounds + [np.nan] * (ITERATIONS - len(bounds))


def growth(
    backends: dict[str, list[float]], replicas: list[list[float]], replicated: str
) -> list[Rounding]:
    """Return differences at every fourth EM iteration and the last, each the largest so far."""
    replica_gaps = _spread([backends[replicated], *replicas])
    backend_gaps = _spread(list(backends.values()))
    return [
        Rounding(i * M_STEPS, backend_gap, replica_gap, MARGIN * max(replica_gap, FLOOR))
        for i, (backend_gap, replica_gap) in enumerate(
            zip(backend_gaps.tolist(), replica_gaps.tolist(), strict=True)
        )
        if i % 4 == 3 or i == ITERATIONS - 1
    ]


def _spread(runs: list[list[float]]) -> npt.NDArray[np.float64]:
    """Return the largest relative difference between runs up to each iteration."""
    table = np.array(runs)  # [runs, iterations]
    gap = (table.max(axis=0) - table.min(axis=0)) / np.abs(table).max(axis=0)
    # chaotic runs cross by chance: a gap that has opened counts from there on
    return np.maximum.accumulate(gap)
