"""Flags that the numbers raise by themselves; what the registry declares is not looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svgpbench_datasets.audit.dependence import (
    counts_rows,
    determining_sums,
    linear_pairs,
    signal,
    single_ratios,
)
from svgpbench_datasets.audit.facts import Facts
from svgpbench_datasets.dataset import Dataset

DETERMINED = 1e-3
"""Von Neumann's ratio below which a quantity determines a regression target."""
DETERMINED_CLASS = 1e-2
"""The same for classes: the share of neighbours of another class, relative to chance."""
UNEXPLAINED = 1e-4
ORDERED = 0.3
SEEN = 0.01
FEWEST = 5
MOST_NAMED = 4


@dataclass(frozen=True)
class Flag:
    """One thing to know before trusting a result.

    Attributes:
        kind: a short name.
        leak: whether it hands test targets to the model; else it is a note.
        text: what was found, with its numbers.
    """

    kind: str
    leak: bool
    text: str


def flags_of(dataset: Dataset, facts: Facts) -> tuple[Flag, ...]:
    """Every flag that a data set raises, leaks first.

    Args:
        dataset: the data set.
        facts: its facts.

    Returns:
        the flags.
    """
    found = [
        *_row_numbers(dataset),
        *_determined(dataset),
        *_seen(facts),
        *_ordered(facts),
        *_capped(dataset),
        *_zeros(dataset),
        *_columns(dataset, facts),
        *_few(facts),
    ]
    return tuple(sorted(found, key=lambda flag: not flag.leak))


def _row_numbers(dataset: Dataset) -> list[Flag]:
    names = [
        name
        for name, column in zip(dataset.feature_names, dataset.X.T, strict=True)
        if counts_rows(column)
    ]
    return [Flag("row-number-input", True, f"{name} counts the rows") for name in names]


def _determined(dataset: Dataset) -> list[Flag]:
    regression = dataset.task == "regression"
    threshold = DETERMINED if regression else DETERMINED_CLASS
    target = signal(dataset)
    singles = single_ratios(dataset.X, target)
    names = dataset.feature_names
    flags = [
        Flag(
            "determines-target",
            True,
            f"{names[at]} alone determines the target (neighbour ratio {singles[at]:.1e})",
        )
        for at in np.flatnonzero(singles < threshold)[:MOST_NAMED]
    ]
    if len(dataset.y) >= 50:  # of few rows some pair fits by chance
        sums = determining_sums(dataset.X, target, singles, threshold)
        pairs = [(i, j) for i, j, _ in sums]
        flags += [
            Flag(
                "sum-determines-target",
                True,
                f"{names[i]} {sign} {names[j]} determines the target",
            )
            for i, j, sign in sums[:MOST_NAMED]
        ]
        if regression:
            linear = [p for p in linear_pairs(dataset.X, dataset.y, UNEXPLAINED) if p not in pairs]
            flags += [
                Flag(
                    "pair-determines-target",
                    True,
                    f"the target is a linear function of {names[i]} and {names[j]}",
                )
                for i, j in linear[:MOST_NAMED]
            ]
    return flags


def _seen(facts: Facts) -> list[Flag]:
    if facts.test_seen == 0:
        return []
    share = facts.test_seen / facts.test_rows
    text = (
        f"{facts.test_seen} of {facts.test_rows} test rows ({share:.1%}) have the inputs of a "
        f"training row ({facts.split})"
    )
    return [Flag("test-inputs-in-training", share >= SEEN, text)]


def _ordered(facts: Facts) -> list[Flag]:
    if facts.row_correlation < ORDERED:
        return []
    text = f"row number and target go together ({facts.row_correlation:.2f}): shuffle, never input"
    return [Flag("ordered-by-target", False, text)]


def _capped(dataset: Dataset) -> list[Flag]:
    """An end of the range that is the most frequent target by far, of many different ones."""
    if dataset.task != "regression":
        return []
    values, counts = np.unique(dataset.y, return_counts=True)
    if values.size < 20:
        return []
    flags = []
    for at, end in ((0, "least"), (-1, "greatest")):
        others = np.delete(counts, at).max()
        if counts[at] >= FEWEST and counts[at] >= 1.5 * others:
            text = f"the {end} target {values[at]:g} stands in {counts[at]} rows: capped?"
            flags.append(Flag("capped-target", False, text))
    return flags


def _zeros(dataset: Dataset) -> list[Flag]:
    """Zeros far below all other values of a column of positive measurements."""
    suspects = []
    for name, column in zip(dataset.feature_names, dataset.X.T, strict=True):
        zeros = int((column == 0).sum())
        if not FEWEST <= zeros < 0.6 * column.size or column.min() < 0:
            continue
        others = column[column != 0]
        apart = np.quantile(others, 0.05) >= 0.3 * np.median(others)
        if apart and np.unique(others).size >= 20:
            suspects.append(f"{name} ({zeros})")
    if not suspects:
        return []
    more = f" and {len(suspects) - 8} more" if len(suspects) > 8 else ""
    listed = ", ".join(suspects[:8]) + more
    return [Flag("zeros-apart", False, f"zeros far from the other values, missing?: {listed}")]


def _columns(dataset: Dataset, facts: Facts) -> list[Flag]:
    flags = []
    if facts.constant:
        few = ", ".join(facts.constant[:MOST_NAMED])
        more = f" and {len(facts.constant) - MOST_NAMED} more" * (len(facts.constant) > MOST_NAMED)
        flags.append(Flag("constant-column", False, f"constant: {few}{more}"))
    first: dict[bytes, str] = {}
    for name, column in zip(dataset.feature_names, dataset.X.T, strict=True):
        if name in facts.constant:
            continue
        twin = first.setdefault(column.tobytes(), name)
        if twin != name:
            flags.append(Flag("equal-columns", False, f"{twin} and {name} are equal"))
    return flags


def _few(facts: Facts) -> list[Flag]:
    flags = []
    if facts.distinct_inputs < 0.9 * facts.rows:
        text = f"{facts.distinct_inputs} of {facts.rows} input rows are distinct"
        flags.append(Flag("few-distinct-inputs", False, text))
    elif facts.repeated_rows:
        text = f"{facts.repeated_rows} rows repeat an earlier row"
        flags.append(Flag("repeated-rows", False, text))
    if rare := [f"{label} ({count})" for label, count in facts.classes.items() if count < 10]:
        flags.append(Flag("rare-class", False, f"fewer than 10 rows of class {', '.join(rare)}"))
    return flags
