"""Experiments declared in TOML files, and their resolution to cells."""

from svgpbench.experiments.loading import load_experiment, shipped_experiments
from svgpbench.experiments.resolve import Selection, resolve
from svgpbench.experiments.schema import ArtefactEntry, Experiment, FigureEntry, TableEntry

__all__ = [
    "ArtefactEntry",
    "Experiment",
    "FigureEntry",
    "Selection",
    "TableEntry",
    "load_experiment",
    "resolve",
    "shipped_experiments",
]
