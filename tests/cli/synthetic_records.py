"""Synthetic records of adam2021-fig3: the shapes of its curves without the hours they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from hand_records import identified

from svgpbench.config import CellConfig
from svgpbench.experiments import load_experiment, resolve
from svgpbench.results.records import Record, write_record

GROWTH = {
    "t-SVGP": 3.0,
    "q-SVGP natgrad": 3.2,
    "q-SVGP Adam": 8.0,
    "q-SVGP Adam (fair)": 6.0,
    "t-SVGP untied": 3.1,
}
BACKEND_NOISE = {"jax": 0.0, "torch": 1e-13, "tensorflow": 2e-13}
BAD_ADAM = "q-SVGP Adam"


def synthetic_record(cell: CellConfig, *, fails: bool = False) -> Record:
    """A record with plausible curves, the same for the same cell."""
    total = cell.training.em_iterations
    t = np.arange(1, total + 1, dtype=float)
    label, name = cell.method.title, cell.data.name
    size = 100.0 + 13.0 * len(name)
    regression = cell.likelihood.name == "gaussian"
    learned = 1.0 - np.exp(-t / GROWTH[label])
    wiggle = 0.02 * np.random.default_rng(cell.split.fold).standard_normal()
    elbo = -size * (3.0 - 2.0 * learned) * (1.0 + wiggle)
    if label == BAD_ADAM and regression:  # one step of rate 1: the bound falls off the page
        elbo = elbo - size * 300.0 * np.abs(np.sin(t))
    elbo = elbo * (1.0 + BACKEND_NOISE.get(cell.backend.name, 0.0) + 1e3 * cell.perturbation)
    nlpd = 1.2 - 0.7 * learned + wiggle
    trace = {"iteration": list(range(1, total + 1)), "elbo": list(elbo), "nlpd": list(nlpd)}
    if regression:
        trace |= {"nlpd_original": list(nlpd + 1.7), "rmse": list(0.9 - 0.5 * learned)}
        trace["rmse_original"] = [5.5 * x for x in trace["rmse"]]
    else:
        trace["error_rate"] = list(0.5 - 0.4 * learned)
    trace["seconds"] = list(0.01 * t)
    if fails:
        trace = {key: column[:7] for key, column in trace.items()}
    message = "K(Z, Z) is not positive definite at EM iteration 8"
    made = identified(
        cell,
        **{key: column[-1] for key, column in trace.items() if key != "iteration"},
        status="not_pd" if fails else "ok",
        trace=trace,
        data={"n_train": 100 + len(name), "n_test": 25},
    )
    return made.model_copy(update={"message": message}) if fails else made


def write_all(
    folder: Path,
    cells: Iterable[CellConfig],
    fails: Callable[[CellConfig], bool] = lambda cell: False,
) -> None:
    for cell in cells:
        write_record(folder, synthetic_record(cell, fails=fails(cell)))


def quick_cells() -> list[CellConfig]:
    return resolve(load_experiment("adam2021-fig3"), "quick")


def one_adam_fold_fails(cell: CellConfig) -> bool:
    return (cell.data.name, cell.method.title, cell.split.fold) == ("sonar", BAD_ADAM, 1)
