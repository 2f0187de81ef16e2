"""Comparison of two methods, two backends or two folders of records, paired cell by cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from svgpbench.comparison.inputs import Sides
from svgpbench.errors import UserError
from svgpbench.json_values import json_value
from svgpbench.metrics import METRICS, USUAL
from svgpbench.results.difference import difference
from svgpbench.results.mixtures import dotted_settings
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.pairs import PairedRuns

NO_SETTING = ("data.path", "backend.", "method.label")
"""Settings that do not change the numbers of a cell; those ending in `.` are prefixes."""

MOST_VALUES = 3
"""Most pairs of values that a note on a setting lists."""

Pairs: TypeAlias = list[tuple[Record, Record]]


@dataclass(frozen=True)
class ComparedCells:
    """Pairs of cells with the same experiment, data set and other shared names."""

    shared: dict[str, str]
    pairs: Pairs
    frame: pd.DataFrame  # one row per cell of a pair; `method` is its side

    @property
    def plain(self) -> pd.DataFrame:
        """The rows of cells that are no perturbed replicas."""
        return self.frame[self.frame["perturbation"] == 0]

    def has(self, metric: str) -> bool:
        """Return True if an `ok` cell has the measure, on each side that has `ok` cells."""
        ended = self.plain[self.plain["status"] == "ok"]
        recorded = ended.groupby("method")[metric].count()
        return bool(len(recorded) and (recorded > 0).all())

    def is_usual(self, metric: str) -> bool:
        """Return True if tables of the task show the measure by default."""
        return len(self.frame) > 0 and metric in USUAL[str(self.frame["task"].iloc[0])]


@dataclass(frozen=True)
class ComparedMeasure:
    """One measure on one group. A positive difference is in favour of the first side."""

    metric: str
    shared: dict[str, str]
    pairs: int
    means: tuple[float, float]
    region: float
    effect: Effect

    def to_json(self, first: str, second: str) -> dict[str, Any]:
        """Return the row for JSON, with numbers in full."""
        content: dict[str, Any] = json_value(self.shared | {
            "metric": self.metric,
            "pairs": self.pairs,
            "means": {first: self.means[0], second: self.means[1]},
            "difference": self.effect.value,
            "interval": [self.effect.low, self.effect.high],
            "region": self.region,
            "outcome": str(self.effect.outcome),
            "note": self.effect.note,
        })  # fmt: skip
        return content


@dataclass(frozen=True)
class Comparison:
    """All rows of a comparison, with notes for the reader."""

    what: str
    first: str
    second: str
    rows: tuple[ComparedMeasure, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the rows, with numbers in full, and the notes for JSON."""
        rows = [row.to_json(self.first, self.second) for row in self.rows]
        sides = {"first": self.first, "second": self.second}
        return {"what": self.what, **sides, "rows": rows, "notes": list(self.notes)}


def compared(sides: Sides, metrics: Sequence[str] = ()) -> Comparison:
    """Compare each measure on each group of paired cells. Without `metrics`, use those usual for the task.

    Raises `UserError` if the sides have the same name, no two cells pair, or no pair has a given measure.
    """
    first, second = sides.first.name, sides.second.name
    if first == second:
        raise UserError(f"A and B are both {first}: give two that differ")
    pairs, alone = paired(sides)
    groups, other_data = _groups(pairs, sides)
    rows = [
        _row(group, metric, sides)
        # measure by measure: whoever prints the rows makes one table of neighbours with one measure
        for metric in metrics or MEASURES
        for group in groups
        if (metrics or group.is_usual(metric)) and group.has(metric)
    ]
    for metric in metrics:
        if metric not in {row.metric for row in rows}:
            raise UserError(f"no two cells of {first} and {second} have {metric}")
    notes = [*sides.notes, *alone, *other_data]
    if sides.same_setup:
        # methods are meant to differ; backends and folders are not, so notes say how far and why
        notes += [_bits(pairs), *differing(pairs)]
    return Comparison(sides.what, first, second, tuple(rows), tuple(notes))


def paired(sides: Sides) -> tuple[Pairs, list[str]]:
    """Return pairs of cells that differ in their side alone, and notes on cells without a partner.

    The pairs are in the order of the first side. Raises `UserError` if there are none.
    """

    def key(record: Record) -> tuple[object, ...]:
        config, split = record.config, record.config.split
        # training settings are no part of it: two folders may differ in them, and a note lists them
        cell = (config.experiment, config.data.title, config.seed, config.perturbation)
        return (*cell, split.seed, split.fold, *sides.share(record).values())

    first = {key(record): record for record in sides.first.records}
    second = {key(record): record for record in sides.second.records}
    pairs = [(record, second[cell]) for cell, record in first.items() if cell in second]
    if not pairs:
        raise UserError(
            f"no cell of {sides.first.name} has a partner in {sides.second.name}: same experiment, "
            "data, split, seed and backend"
        )
    alone = [
        f"{len(side.records) - len(pairs)} cells of {side.name} have no partner and are left out"
        for side in (sides.first, sides.second)
        if len(side.records) > len(pairs)
    ]
    return pairs, alone


def _groups(pairs: Pairs, sides: Sides) -> tuple[list[ComparedCells], list[str]]:
    """Return the groups of pairs, and notes on pairs with different data or splits, which are left out."""
    by_group: dict[tuple[str, ...], tuple[dict[str, str], Pairs]] = {}
    misfits: Counter[str] = Counter()
    for first, second in pairs:
        name = first.config.data.title
        # the same name may hold other rows by now, and a difference of scores on other rows is not
        # one of methods: fingerprint and hash tell
        if any(
            first.data.get(key) != second.data.get(key) for key in ("fingerprint", "split_hash")
        ):
            misfits[name] += 1
            continue
        shared = {"experiment": first.config.experiment, "data": name} | sides.share(first)
        by_group.setdefault(tuple(shared.values()), (shared, []))[1].append((first, second))
    groups = []
    for shared, members in by_group.values():
        by_side = zip((sides.first, sides.second), zip(*members, strict=True), strict=True)
        frames = [frame_of(records).assign(method=side.name) for side, records in by_side]
        groups.append(ComparedCells(shared, members, pd.concat(frames, ignore_index=True)))
    notes = [
        f"{count} pairs of {name} left out: the two sides have other data or another split"
        for name, count in misfits.items()
    ]
    return groups, notes


def _row(group: ComparedCells, metric: str, sides: Sides) -> ComparedMeasure:
    first, second = sides.first.name, sides.second.name
    data = group.shared["data"]
    data_set = PairedRuns(data, group.frame, metric)
    # equal bits are equal however few the starts, which alone might not make an interval
    if sides.same_setup and not any(_apart(*pair) for pair in group.pairs):
        note = "the same bits in every cell"
        effect = Effect(data, Outcome.equal, 0.0, 0.0, 0.0, note)
    else:
        effect = data_set.effect(first, second)
        if effect.value is not None and effect.low is None:  # too few starts for an interval
            effect = data_set.every_run(first, second)
    means = group.plain.groupby("method")[metric].mean()
    region = data_set.region(first, second)
    # the frame has a row for each of the two cells of a pair
    pairs = len(group.plain) // 2
    return ComparedMeasure(
        metric, group.shared, pairs, (means[first], means[second]), region, effect
    )


def _bits(pairs: Pairs) -> str:
    """Return a note on the number of pairs that agree bit for bit, and on the differences of the others."""
    apart = [_apart(*pair) for pair in pairs]
    far = max((x for x in apart if x < math.inf), default=0.0)
    # infinite: the runs ended differently or share too few columns, so there is no distance
    otherwise = sum(x == math.inf for x in apart)
    parts = [f"{apart.count(0.0)} of {len(pairs)} pairs have the same bits, times left out"]
    parts += [f"the farthest are {far:.0e} apart in a column of the trace"] * (far > 0.0)
    parts += [f"{otherwise} ended otherwise"] * (otherwise > 0)
    return "; ".join(parts)


def _apart(first: Record, second: Record) -> float:
    """Return the difference of two records of which one may lack columns that the other has."""
    # `difference` needs every column of its first record; the older record has fewer of them
    return min(difference(first, second), difference(second, first))


def differing(pairs: Pairs) -> Iterator[str]:
    """Yield a note on each setting, version and machine property in which paired records differ."""
    differences: dict[str, dict[tuple[Any, Any], int]] = {}
    for first, second in (map(_circumstances, pair) for pair in pairs):
        for key in dict.fromkeys([*first, *second]):
            values = (first.get(key), second.get(key))
            if values[0] != values[1]:
                counts = differences.setdefault(key, {})
                counts[values] = counts.get(values, 0) + 1
    for key, counts in differences.items():
        listed = "; ".join(
            f"{a} and {b} in {count} pairs" for (a, b), count in list(counts.items())[:MOST_VALUES]
        )
        yield f"{key}: {listed}{'; ...' * (len(counts) > MOST_VALUES)}"


def _circumstances(record: Record) -> dict[str, Any]:
    """Return all that may change a number: settings, versions, packages, sources and processor."""
    circumstances: dict[str, Any] = {
        **{key: value for key, value in dotted_settings(record) if not key.startswith(NO_SETTING)},
        "version of the method": record.method_version,
    }
    if (machine := record.environment) is not None:
        circumstances |= machine.versions
        circumstances |= {"python": machine.python, "cpu": machine.cpu}
        circumstances |= {"commit": machine.commit, "dirty": machine.dirty}
    return circumstances


def title(metric: str) -> str:
    """Return the title of a measure and its better direction."""
    measure = MEASURES[metric]
    part = " (test)" if metric in METRICS and measure.rows == "test" else ""
    return f"{measure.title}{part}, {measure.better} is better"
