"""Flags for features that determine the target, and for test inputs repeated from training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from svgpbench_datasets.audit.dependence import (
    determining_sums,
    linear_pairs,
    single_ratios,
    target_columns,
)
from svgpbench_datasets.audit.facts import AuditFacts, Flag, Twins
from svgpbench_datasets.dataset import Dataset

DETERMINED = 1e-3
"""Von Neumann's ratio below which a quantity determines a regression target."""
DETERMINED_CLASS = 1e-2
"""Threshold for classes, where the ratio is the share of neighbours of another class, relative to chance."""
UNEXPLAINED = 1e-4
MOST_NAMED = 4


def determined(dataset: Dataset) -> Iterator[Flag]:
    """Flag features, and sums, differences and linear functions of two, that determine the target."""
    regression = dataset.task == "regression"
    threshold = DETERMINED if regression else DETERMINED_CLASS
    target = target_columns(dataset)
    # with few rows, gaps in the tails of y are wide; gaps between its ranks are not
    ranks = [np.asarray(pd.Series(dataset.y).rank(), np.float64)[:, None]] if regression else []
    singles = single_ratios(dataset.X, target, *ranks)
    names = dataset.feature_names
    for j in np.flatnonzero(singles < threshold)[:MOST_NAMED]:
        text = f"{names[j]} alone determines the target (neighbour ratio {singles[j]:.1e})"
        yield Flag("determines-target", text, leak=True)
    if len(dataset.y) < 50:  # with few rows some pair fits by chance
        return
    sums = determining_sums(dataset.X, target, singles, threshold)
    for i, j, sign in sums[:MOST_NAMED]:
        text = f"{names[i]} {sign} {names[j]} determines the target"
        yield Flag("sum-determines-target", text, leak=True)
    if regression:
        summed = [(i, j) for i, j, _ in sums]
        linear = [p for p in linear_pairs(dataset.X, dataset.y, UNEXPLAINED) if p not in summed]
        for i, j in linear[:MOST_NAMED]:
            text = f"the target is a linear function of {names[i]} and {names[j]}"
            yield Flag("pair-determines-target", text, leak=True)


def repeated_test_inputs(facts: AuditFacts) -> Iterator[Flag]:
    """Flag test inputs that are also training inputs; a leak if many come with their target."""
    if facts.test_seen == 0:
        return
    share = facts.test_seen / facts.test_rows
    text = (
        f"{facts.test_seen} of {facts.test_rows} test rows ({share:.1%}) have the inputs of a "
        f"training row, {facts.test_told} with its target ({facts.split})"
    )
    leak = Twins(facts.test_rows, facts.test_seen, facts.test_told).leak
    yield Flag("test-inputs-in-training", text, leak)
