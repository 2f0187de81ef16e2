"""What a fit's worker does, in this process: a table is written, trained on, and its posterior loaded."""

import tempfile
from pathlib import Path

import numpy as np

from svgpbench.api import load_posterior
from svgpbench.config import CellConfig
from svgpbench.posterior.cell import posterior_path, run_cell

QUICK = {"em_iterations": 3, "m_steps": 2, "m_rate": 0.05, "e_rate": 0.3}
TASKS = {"bernoulli-probit": "classification", "softmax": "multiclass"}


def height(X):
    noise = np.random.default_rng(1).normal(size=len(X))
    return 40.0 + 5.0 * np.sin(X["left"].to_numpy()) + 0.2 * noise


def trained(X, y=None, **tables):
    """The posterior of a short training on inputs X [n, 2], by tables of an experiment file."""
    likelihood = tables.get("likelihood", {"name": "gaussian"})
    task = TASKS.get(likelihood["name"], "regression")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        X.assign(y=height(X) if y is None else y).to_parquet(path, index=False)
        data = {"name": "table", "path": str(path), "target": "y", "task": task}
        config = CellConfig.model_validate(
            {
                "experiment": "fit",
                "data": data | {"standardise_y": task == "regression"},
                "split": {"kind": "none"},
                "method": {"name": "t-svgp"},
                "kernel": {},
                "likelihood": likelihood,
                "inducing": {"count": 9},
                "training": QUICK,
                "backend": {"name": "numpy"},
                "jitter": 1e-5,  # not what a library has by itself
            }
            | tables
        )
        outcome = run_cell(config)
        assert outcome.status == "ok", outcome.message
        return load_posterior(posterior_path(config))
