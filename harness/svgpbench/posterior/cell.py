"""The worker's part of a fit: it trains on every row and saves the posterior beside the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import build_trainer, forget_data, load_data
from svgpbench.experiments.identity import completed
from svgpbench.experiments.outcome import CellOutcome, columns
from svgpbench.posterior.posterior import Posterior, TrainingFacts
from svgpbench.posterior.progress import checkpoint_of_fit
from svgpbench.posterior.saved import save_posterior
from svgpbench.training.state import Ended
from svgpbench.tree import tree_map
from svgpbench_datasets import Dataset, Prepared


def posterior_path(config: CellConfig) -> Path:
    """Return the path of the posterior of a fit, which is beside its table."""
    return Path(str(config.data.path)).with_name("posterior.npz")


def run_cell(
    config: CellConfig, checkpoint: Path | None = None, every_s: float = 0.0
) -> CellOutcome:
    """Train, and save the posterior if the run ended with status `ok`.

    Raises `UserError` as `build_trainer` does, and if the variance of the target is no float64.
    """
    trainer, ready = build_trainer(config)
    if not 1e-153 < ready.y_scale < 1e153:  # predictions have a variance, its square
        size = "large" if ready.y_scale > 1.0 else "small"
        raise UserError(
            f"column {config.data.target!r} is too {size} to standardise: its variance is "
            "beyond float64; rescale it"
        )
    trained = trainer.run(checkpoint_of_fit(Path(str(config.data.path))))
    outcome = CellOutcome(
        status=trained.status, message=trained.message, trace=columns(trained.trace)
    )
    if trained.status == "ok":
        facts = _facts(config, load_data(config.data), ready, outcome, trained.ended)
        # NumPy predicts in float64 from these numbers, whatever dtype trained them
        theta, state = (
            tree_map(lambda x: np.asarray(x, dtype=np.float64), tree)
            for tree in (trained.theta, trained.q)
        )
        scaled = ready.standardiser
        save_posterior(
            Posterior(facts, theta, state, scaled.mean, scaled.scale), posterior_path(config)
        )
    forget_data()  # the next fit has another table
    return outcome


def _facts(
    config: CellConfig, dataset: Dataset, ready: Prepared, outcome: CellOutcome, ended: Ended
) -> TrainingFacts:
    complete = completed(config, dataset)
    n = complete.training.rows or len(ready.y_train)  # rows that trained
    return TrainingFacts(
        kernel=complete.kernel,
        likelihood=complete.likelihood,
        method=complete.method,
        functions=complete.inducing.functions,
        jitter=complete.jitter,
        seed=complete.seed,
        minibatches=complete.training.uses_minibatches(n),
        n=n,
        features=dataset.feature_names,
        class_labels=dataset.class_labels,
        y_mean=ready.y_mean,
        y_scale=ready.y_scale,
        trace=outcome.trace,
        ended=ended,
    )
