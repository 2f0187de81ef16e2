"""Declared experiments: TOML files, shipped or the user's, that resolve to cells."""

from svgpbench.experiments.loading import load_experiment, shipped_experiments
from svgpbench.experiments.resolve import Selection, resolve
from svgpbench.experiments.schema import Experiment

__all__ = [
    "Experiment",
    "Selection",
    "load_experiment",
    "resolve",
    "shipped_experiments",
]
