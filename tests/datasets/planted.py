"""Tables of arrays, copies of data sets with something done to them, and what an audit of them raises."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from svgpbench_datasets import REGISTRY, Dataset, k_fold
from svgpbench_datasets.audit.facts import Flag, facts_of
from svgpbench_datasets.audit.report import flags_of

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def table(X: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Dataset:
    """A regression of y on columns x0, x1, ..."""
    names = tuple(f"x{at}" for at in range(X.shape[1]))
    return Dataset("t", "regression", X, y, names, "y", "made in a test")


def raised(dataset: Dataset) -> tuple[Flag, ...]:
    split = k_fold(len(dataset.y), 5, 0, 0)
    return flags_of(dataset, facts_of(dataset, split))


def leaks(dataset: Dataset) -> set[str]:
    return {flag.kind for flag in raised(dataset) if flag.leak}


def notes(dataset: Dataset) -> set[str]:
    return {flag.kind for flag in raised(dataset) if not flag.leak}


def changed(name: str, change: Callable[[Any, Any, Any], Arrays]) -> Dataset:
    """A copy of a data set in another row order, with something done to it."""
    dataset = REGISTRY.load(name)
    random = np.random.default_rng(7)
    rows = random.permutation(len(dataset.y))
    X, y = change(dataset.X[rows].copy(), dataset.y[rows].copy(), random)
    names = tuple(f"x{at}" for at in range(X.shape[1]))
    return dataclasses.replace(dataset, X=X, y=y, feature_names=names)


def unchanged(X: Any, y: Any, random: Any) -> Arrays:
    return X, y


def added(column: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Arrays]:
    return lambda X, y, random: (np.column_stack([X, column(y, random)]), y)
