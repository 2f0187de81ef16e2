"""What a speed run found: times, paired ratios, agreement, and the rounds that were discarded."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, NonNegativeFloat, TypeAdapter
from rich.table import Table

from svgpbench.benchmarks.timing.cases import OF_FAMILY
from svgpbench.benchmarks.timing.floor import Spent, Work, spend
from svgpbench.benchmarks.timing.rates import Rates
from svgpbench.benchmarks.timing.rounds import KeptRound, Round, Spread, spread

Form = TypeVar("Form")

TOLERANCE = 1e-8
"""Largest relative difference of two figures of one step."""

M_TOLERANCE = 1e-6
"""The same after an M-step, because Keras rounds Adam's rate and decays to float32."""


@dataclass
class Cell:
    """One step of one method on one problem, timed in the process of one backend or peer."""

    problem: str
    step: str
    source: str  # backend or peer
    method: str
    family: str  # M-steps agree within it
    peer: bool
    first_call_s: float = float("nan")  # trace and compile included
    figure: float = float("nan")
    as_peers: float | None = None  # the figure with the peers' estimates, where theirs are others
    difference: float | None = None  # relative, from the median of those it must agree with
    rounds: list[Round | KeptRound] = field(default_factory=list)
    mode: str = ""  # of a peer's, the fastest of `modes`
    modes: Mapping[str, float | str] = field(default_factory=dict)  # seconds a call, or why none
    error: str = ""
    refused: str = ""  # why a peer or a backend has no such step
    alone: bool = False  # whether no other method shows the same figure
    work: Work | None = None  # None of a peer, whose code is not counted
    dispatch_s: float | None = None  # the fastest step where every array is tiny
    kept_times: Spread | None = None  # of a record, which has no single calls

    @property
    def title(self) -> str:
        """Who was timed."""
        return f"{self.source} {self.method}"

    @property
    def group(self) -> tuple[str, str, str]:
        """Cells of one group must show the same figure."""
        family = self.family if self.step in OF_FAMILY or self.alone else ""
        return (self.problem, self.step, family)

    @property
    def untimed(self) -> bool:
        """Whether there is no time to show."""
        return bool(self.error or self.refused)

    @property
    def comparable(self) -> float:
        """The figure that peers must show too."""
        return self.figure if self.as_peers is None else self.as_peers

    def times(self) -> Spread | None:
        """Seconds a step over every call of the clean rounds; None where no round is clean."""
        return self.kept_times or spread([s for r in self.rounds if r.clean for s in r.seconds])

    def ratio_to(self, other: Cell) -> Spread | None:
        """How many times faster this is than `other`, from the rounds where both are clean."""
        pairs = zip(self.rounds, other.rounds, strict=False)
        return spread(
            [
                theirs.median_s / ours.median_s
                for ours, theirs in pairs
                if ours.clean and theirs.clean
            ]
        )


def check_agreement(cells: Sequence[Cell]) -> None:
    """Mark every cell whose figure is not that of its group: its speed is not to be shown.

    Where sampled expectations are estimated otherwise than by peers, backends must agree on ours as well.
    """
    for group in dict.fromkeys(cell.group for cell in cells):
        members = [cell for cell in cells if cell.group == group and not cell.untimed]
        _mark(members, [cell.comparable for cell in members])
    ours = [cell for cell in cells if cell.as_peers is not None]
    for method in dict.fromkeys((cell.problem, cell.step, cell.method) for cell in ours):
        members = [c for c in ours if (c.problem, c.step, c.method) == method and not c.error]
        _mark(members, [cell.figure for cell in members])


def _mark(members: Sequence[Cell], figures: Sequence[float]) -> None:
    if not members:
        return
    tolerance = M_TOLERANCE if members[0].step in OF_FAMILY else TOLERANCE
    middle = statistics.median(figures)
    for cell, figure in zip(members, figures, strict=True):
        difference = abs(figure - middle) / max(abs(middle), 1e-300)
        if len(members) > 1:
            cell.difference = max(difference, cell.difference or 0.0)
        if not difference <= tolerance:  # NaN too
            cell.error = (
                f"not timed: {figure:.12g} is {difference:.1e} off the median of "
                f"{len(members)}, tolerance {tolerance:g}"
            )


@dataclass
class SpeedReport:
    """Every cell of a run, and where it ran."""

    cells: list[Cell]
    settings: dict[str, Any]
    environment: dict[str, Any]  # of the parent, of each backend and of each peer
    interrupted: bool = False
    rates: dict[str, dict[str, Rates]] = field(default_factory=dict)  # problem -> who measured
    without_floor: dict[str, str] = field(default_factory=dict)  # who or what, and why

    @property
    def ok(self) -> bool:
        """Whether every cell ran and agreed."""
        return not any(cell.error for cell in self.cells)

    def baselines(self, cell: Cell) -> list[Cell]:
        """The peers' cells of the same problem and step."""
        if cell.peer:
            return []
        same = (cell.problem, cell.step)
        return [c for c in self.cells if c.peer and (c.problem, c.step) == same and not c.untimed]

    def fastest(self, peer: str, cell: Cell) -> Cell | None:
        """A peer's fastest method in what `cell` did; None where it has no time to show."""
        timed = [(c.times(), c) for c in self.baselines(cell) if c.source == peer]
        medians = [(times.median, c) for times, c in timed if times]
        return min(medians, key=lambda pair: pair[0])[1] if medians else None

    def spent(self, cell: Cell) -> Spent | None:
        """Where the median of a cell's time goes; None where that was not measured."""
        times, rates = cell.times(), self.rates.get(cell.problem, {})
        if times is None or cell.work is None or cell.source not in rates or cell.error:
            return None
        found = spend(times.median, cell.work, rates, cell.source, cell.dispatch_s)
        held = found.floor > 0.0 and found.seconds > 0.0  # rates of a record may be beyond floats
        return found if held else None

    def discarded(self) -> tuple[int, int]:
        """Contaminated rounds, and all."""
        rounds = [r for cell in self.cells for r in cell.rounds]
        return sum(not r.clean for r in rounds), len(rounds)

    def table(self) -> Table:
        """Times in milliseconds a step; ratios above 1 mean faster than a peer's fastest method."""
        peers = list(dict.fromkeys(c.source for c in self.cells if c.peer))
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("problem", "step", "who"):
            table.add_column(name, no_wrap=True)
        for name in ("median, ms", "min", "quartiles", "first call, s", "rounds"):
            table.add_column(name, justify="right", no_wrap=True)
        for peer in peers:
            table.add_column(f"× {peer}", justify="right", no_wrap=True)
        for cell in self.cells:
            times = cell.times()
            if times is not None and not cell.untimed:
                table.add_row(*self._row(cell, times, peers))
        return table

    def _row(self, cell: Cell, times: Spread, peers: Sequence[str]) -> list[str]:
        clean = sum(r.clean for r in cell.rounds)
        row = [
            *(cell.problem, cell.step, cell.title),
            *(milliseconds(seconds) for seconds in (times.median, times.least)),
            f"{milliseconds(times.q1)}–{milliseconds(times.q3)}",
            f"{cell.first_call_s:.2f}",
            f"{clean}/{len(cell.rounds)}",
        ]
        for peer in peers:
            fastest = self.fastest(peer, cell)
            ratio = cell.ratio_to(fastest) if fastest else None
            row.append(f"{ratio.median:.2f} ({ratio.q1:.2f}–{ratio.q3:.2f})" if ratio else "")
        return row

    def notes(self) -> list[str]:
        """What the table does not show: agreement, discarded rounds, and cells without a time."""
        bad, total = self.discarded()
        limit = self.settings["max_other_cores"]
        lines = [f"{bad} of {total} rounds discarded: other processes used over {limit:g} cores"]
        compared = [cell.difference for cell in self.cells if cell.difference is not None]
        if compared:
            lines.append(
                f"agreement before timing: {len(compared)} cells, worst difference "
                f"{max(compared):.1e} (tolerance {TOLERANCE:g}, of an M-step {M_TOLERANCE:g})"
            )
        for cell in self.cells:
            where = f"{cell.problem} {cell.step} {cell.title}"
            if cell.error:
                lines.append(f"{where}: {cell.error}")
            elif cell.refused:
                lines.append(f"{where}: refused: {cell.refused}")
            elif cell.rounds and cell.times() is None:
                lines.append(f"{where}: every round disturbed, no time to show")
        lines += [f"{what}: no floor: {why}" for what, why in self.without_floor.items()]
        return lines

    def to_json(self) -> dict[str, Any]:
        """Everything but the single calls."""
        bad, total = self.discarded()
        return {
            "settings": self.settings,
            "interrupted": self.interrupted,
            "environment": self.environment,
            "rounds": {"total": total, "discarded": bad},
            "rates": {
                problem: {who: rates._asdict() for who, rates in found.items()}
                for problem, found in self.rates.items()
            },
            "without_floor": self.without_floor,
            "cells": [self._cell_json(cell) for cell in self.cells],
        }

    def _cell_json(self, cell: Cell) -> dict[str, Any]:
        times = cell.times()
        ratios = {c.title: cell.ratio_to(c) for c in self.baselines(cell)}
        spent = self.spent(cell)
        return {
            "problem": cell.problem,
            "step": cell.step,
            "source": cell.source,
            "method": cell.method,
            "family": cell.family,
            "alone": cell.alone,
            "peer": cell.peer,
            "mode": cell.mode,
            "modes": dict(cell.modes),
            "error": cell.error,
            "refused": cell.refused,
            "figure": _finite(cell.figure),
            "as_peers": None if cell.as_peers is None else _finite(cell.as_peers),
            "difference": None if cell.difference is None else _finite(cell.difference),
            "first_call_s": _finite(cell.first_call_s),
            "seconds": times._asdict() if times else None,
            "faster_than": {name: r._asdict() for name, r in ratios.items() if r},
            "work": cell.work._asdict() if cell.work else None,
            "dispatch_s": cell.dispatch_s,
            "spent_s": asdict(spent) if spent else None,
            "rounds": [
                KeptRound(r.median_s, r.min_s, r.calls, r.other_cores, r.clean)._asdict()
                for r in cell.rounds
            ],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> SpeedReport:
        """The report that `to_json` wrote, now or before there were rates and work.

        Raises `ValueError`, `TypeError` or `KeyError` for anything else.
        """
        _read(_LIMIT, record["settings"]["max_other_cores"])
        return cls(
            cells=[_cell_of(found) for found in record["cells"]],
            settings=record["settings"],
            environment=record["environment"],
            interrupted=record["interrupted"],
            rates=_read(_RATES, record.get("rates", {})),
            without_floor=_read(_REASONS, record.get("without_floor", {})),
        )


_CELL, _LIMIT = TypeAdapter(Cell), TypeAdapter(NonNegativeFloat)
_RATES = TypeAdapter(dict[str, Annotated[dict[str, Rates], Field(min_length=1)]])
_REASONS = TypeAdapter(dict[str, str])


def _read(form: TypeAdapter[Form], found: Any) -> Form:
    # as JSON, in which a strict form takes an object for a named tuple, and no "3" for a number
    return form.validate_json(json.dumps(found), strict=True)


def _cell_of(found: Mapping[str, Any]) -> Cell:
    said = {
        "problem": found["problem"],
        "step": found["step"],
        "source": found["source"],
        "method": found["method"],
        "family": found.get("family", found["method"]),
        "peer": found["peer"],
        "first_call_s": _number(found["first_call_s"]),
        "figure": _number(found["figure"]),
        "as_peers": found.get("as_peers"),
        "difference": found["difference"],
        "rounds": found["rounds"],
        "mode": found.get("mode", ""),
        "modes": found.get("modes", {}),
        "error": found["error"],
        "refused": found.get("refused", ""),
        "alone": found.get("alone", False),
        "work": found.get("work"),
        "dispatch_s": found.get("dispatch_s"),
        "kept_times": found["seconds"],
    }
    cell = _read(_CELL, said)
    if cell.work is not None and not cell.work.flops:
        raise ValueError("a step without work")
    return cell


def milliseconds(seconds: float) -> str:
    """Three digits."""
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:.0f}"


def _number(x: float | None) -> float:
    return float("nan") if x is None else x


def _finite(x: float) -> float | None:
    return x if np.isfinite(x) else None
