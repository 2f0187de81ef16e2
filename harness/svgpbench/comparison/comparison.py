"""Two methods, two backends or two folders of records, paired cell by cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from svgpbench.comparison.inputs import Sides
from svgpbench.errors import UserError
from svgpbench.metrics import METRICS, USUAL
from svgpbench.results.collect import dotted_settings
from svgpbench.results.difference import difference
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.pairs import OneDataSet

NO_SETTING = ("data.path", "backend.", "method.label")
"""What two sides may differ in and compute the same."""

MOST_VALUES = 3
"""Pairs of values that a note on a setting lists."""


Pairs: TypeAlias = list[tuple[Record, Record]]


@dataclass(frozen=True)
class Group:
    """Pairs of cells of one experiment and data set, and what else they share."""

    shared: dict[str, str]
    pairs: Pairs
    frame: pd.DataFrame  # a row a cell of a pair; `method` is its side

    @property
    def plain(self) -> pd.DataFrame:
        """The cells that are no perturbed replicas."""
        return self.frame[self.frame["perturbation"] == 0]

    def has(self, metric: str) -> bool:
        """Whether a cell has the measure, and none of the sides ended well without."""
        ended = self.plain[self.plain["status"] == "ok"]
        recorded = ended.groupby("method")[metric].count()
        return bool(len(recorded) and (recorded > 0).all())

    def is_usual(self, metric: str) -> bool:
        """Whether a table shows the measure unasked."""
        return len(self.frame) > 0 and metric in USUAL[str(self.frame["task"].iloc[0])]


@dataclass(frozen=True)
class Row:
    """One measure on one group: a positive difference is in favour of the first side."""

    metric: str
    shared: dict[str, str]
    pairs: int
    means: tuple[float, float]
    region: float
    effect: Effect

    def to_json(self, first: str, second: str) -> dict[str, Any]:
        """The row, numbers in full."""
        effect = self.effect
        return self.shared | {
            "metric": self.metric,
            "pairs": self.pairs,
            "means": {first: _plain(self.means[0]), second: _plain(self.means[1])},
            "difference": _plain(effect.value),
            "interval": [_plain(effect.low), _plain(effect.high)],
            "region": _plain(self.region),
            "outcome": str(effect.outcome),
            "note": effect.note,
        }


def _plain(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class Comparison:
    """Every row, and what a reader of them must know."""

    what: str
    first: str
    second: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Every row, numbers in full, and the notes."""
        rows = [row.to_json(self.first, self.second) for row in self.rows]
        sides = {"first": self.first, "second": self.second}
        return {"what": self.what, **sides, "rows": rows, "notes": list(self.notes)}


def compared(sides: Sides, metrics: Sequence[str] = ()) -> Comparison:
    """Each measure on each group of paired cells; the usual ones of a task where none is named.

    Raises `UserError` where no two cells pair, and for a measure that no two have.
    """
    first, second = sides.first.name, sides.second.name
    if first == second:
        raise UserError(f"A and B are both {first}: give two that differ")
    pairs, alone = paired(sides)
    groups, other_data = _groups(pairs, sides)
    rows = [
        _row(group, metric, sides)
        for metric in metrics or MEASURES
        for group in groups
        if (metrics or group.is_usual(metric)) and group.has(metric)
    ]
    for metric in metrics:
        if metric not in {row.metric for row in rows}:
            raise UserError(f"no two cells of {first} and {second} have {metric}")
    notes = [*sides.notes, *alone, *other_data]
    if sides.same_setup:
        notes += [_bits(pairs), *differing(pairs)]
    return Comparison(sides.what, first, second, tuple(rows), tuple(notes))


def paired(sides: Sides) -> tuple[Pairs, list[str]]:
    """Cells that differ in their side alone, in the first side's order, and a note on the others.

    Raises `UserError` where there are none.
    """

    def key(record: Record) -> tuple[object, ...]:
        config, split = record.config, record.config.split
        of_cell = (config.experiment, config.data.title, config.seed, config.perturbation)
        return (*of_cell, split.seed, split.fold, *sides.share(record).values())

    both = (sides.first, sides.second)
    ours, theirs = ({key(record): record for record in side.records} for side in both)
    pairs = [(record, theirs[at]) for at, record in ours.items() if at in theirs]
    if not pairs:
        raise UserError(
            f"no cell of {sides.first.name} has a partner in {sides.second.name}: same experiment, "
            "data, split, seed and backend"
        )
    alone = [
        f"{len(side.records) - len(pairs)} cells of {side.name} have no partner and are left out"
        for side in both
        if len(side.records) > len(pairs)
    ]
    return pairs, alone


def _groups(pairs: Pairs, sides: Sides) -> tuple[list[Group], list[str]]:
    """The pairs by data set and what they share; a note on those of other data or other rows."""
    found: dict[tuple[str, ...], tuple[dict[str, str], Pairs]] = {}
    other: Counter[str] = Counter()
    for one, another in pairs:
        name = one.config.data.title
        if any(one.data.get(key) != another.data.get(key) for key in ("fingerprint", "split_hash")):
            other[name] += 1
            continue
        shared = {"experiment": one.config.experiment, "data": name} | sides.share(one)
        found.setdefault(tuple(shared.values()), (shared, []))[1].append((one, another))
    groups = [Group(shared, mine, _frame(mine, sides)) for shared, mine in found.values()]
    notes = [
        f"{count} pairs of {name} left out: the two sides have other data or another split"
        for name, count in other.items()
    ]
    return groups, notes


def _frame(pairs: Pairs, sides: Sides) -> pd.DataFrame:
    ours, theirs = zip(*pairs, strict=True)
    return pd.concat(
        [
            frame_of(ours).assign(method=sides.first.name),
            frame_of(theirs).assign(method=sides.second.name),
        ],
        ignore_index=True,
    )


def _row(group: Group, metric: str, sides: Sides) -> Row:
    first, second = sides.first.name, sides.second.name
    compared = OneDataSet(group.shared["data"], group.frame, metric)
    if sides.same_setup and not any(_apart(*pair) for pair in group.pairs):
        note = "the same bits in every cell"
        effect = Effect(group.shared["data"], Outcome.equal, 0.0, 0.0, 0.0, note)
    else:
        effect = compared.effect(first, second)
    means = group.plain.groupby("method")[metric].mean()
    region = compared.region(first, second)
    return Row(
        metric, group.shared, len(group.plain) // 2, (means[first], means[second]), region, effect
    )


def _bits(pairs: Pairs) -> str:
    """How many pairs are the same bit for bit, and how far the others are from that."""
    apart = [_apart(*pair) for pair in pairs]
    far = max((x for x in apart if x < math.inf), default=0.0)
    otherwise = sum(x == math.inf for x in apart)
    said = [f"{apart.count(0.0)} of {len(pairs)} pairs have the same bits, times left out"]
    said += [f"the farthest are {far:.0e} apart in a column of the trace"] * (far > 0.0)
    said += [f"{otherwise} ended otherwise"] * (otherwise > 0)
    return "; ".join(said)


def _apart(one: Record, other: Record) -> float:
    """How far two traces are apart in the columns that both have."""
    return min(difference(one, other), difference(other, one))


def differing(pairs: Pairs) -> Iterator[str]:
    """A line on each setting, version and machine in which the records of pairs differ."""
    found: dict[str, dict[tuple[Any, Any], int]] = {}
    for one, another in pairs:
        ours, theirs = _circumstances(one), _circumstances(another)
        for key in dict.fromkeys([*ours, *theirs]):
            values = (ours.get(key), theirs.get(key))
            if values[0] != values[1]:
                counts = found.setdefault(key, {})
                counts[values] = counts.get(values, 0) + 1
    for key, counts in found.items():
        listed = "; ".join(
            f"{ours} and {theirs} in {count} pairs"
            for (ours, theirs), count in list(counts.items())[:MOST_VALUES]
        )
        yield f"{key}: {listed}{'; ...' * (len(counts) > MOST_VALUES)}"


def _circumstances(record: Record) -> dict[str, Any]:
    """What may move a number: settings, the method's version, packages, sources, processor."""
    place = record.environment
    return {
        **{key: value for key, value in dotted_settings(record) if not key.startswith(NO_SETTING)},
        "version of the method": record.method_version,
        **({} if place is None else place.versions),
        **({} if place is None else {"python": place.python, "cpu": place.cpu}),
        **({} if place is None else {"commit": place.commit, "dirty": place.dirty}),
    }


def title(metric: str) -> str:
    """A measure, with which way is better."""
    measure = MEASURES[metric]
    part = " (test)" if metric in METRICS and measure.rows == "test" else ""
    return f"{measure.title}{part}, {measure.better} is better"
