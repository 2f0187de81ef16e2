"""Report of a speed run: times, paired ratios, agreement, and discarded rounds."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, NonNegativeFloat, TypeAdapter

from svgpbench.atomic import write_whole
from svgpbench.benchmarks.timing.cases import FAMILY_STEPS
from svgpbench.benchmarks.timing.floor import CostSplit, StepWork, spend
from svgpbench.benchmarks.timing.rates import Rates
from svgpbench.benchmarks.timing.rounds import OrderStatistics, Round, spread
from svgpbench.errors import UserError
from svgpbench.json_values import json_text, json_value
from svgpbench.runs.core_locks import SHARED_CORES

Form = TypeVar("Form")

TOLERANCE = 1e-8
"""Largest relative difference of a figure from the median of its group."""

M_TOLERANCE = 1e-6
"""Tolerance after an M-step, larger because Keras rounds Adam's rate and decays to float32."""


@dataclass
class TimedCell:
    """Step of one method on one problem, timed in the process of one backend or peer."""

    problem: str
    step: str
    source: str  # backend or peer
    method: str
    family: str  # M-steps agree within it
    peer: bool
    first_call_s: float = float("nan")  # trace and compile included
    figure: float = float("nan")
    as_peers: float | None = None  # the figure with the peers' estimates, if different
    difference: float | None = None  # relative, from the median of those it must agree with
    rounds: list[Round] = field(default_factory=list)
    mode: str = ""  # of a peer: the fastest of `modes`
    modes: Mapping[str, float | str] = field(default_factory=dict)  # seconds per call, or the error
    error: str = ""
    refused: str = ""  # the reason why a peer or a backend has no such step
    alone: bool = False  # True if no other method has the same figure
    work: StepWork | None = None  # None for a peer, whose code is not counted
    dispatch_s: float | None = None  # the fastest step with tiny arrays
    kept_times: OrderStatistics | None = None  # from a record, which has no single calls

    @property
    def title(self) -> str:
        """Source and method."""
        return f"{self.source} {self.method}"

    @property
    def group(self) -> tuple[str, str, str]:
        """Group of the cell. All cells of a group must have the same figure."""
        family = self.family if self.step in FAMILY_STEPS or self.alone else ""
        return (self.problem, self.step, family)

    @property
    def untimed(self) -> bool:
        """True if the cell has an error or was refused, so that it has no time."""
        return bool(self.error or self.refused)

    @property
    def comparable(self) -> float:
        """Figure that peers must have too."""
        return self.figure if self.as_peers is None else self.as_peers

    def times(self) -> OrderStatistics | None:
        """Return the seconds per step over all calls of clean rounds, or None if no round is clean."""
        return self.kept_times or spread([s for r in self.rounds if r.clean for s in r.seconds])

    def ratio_to(self, other: TimedCell) -> OrderStatistics | None:
        """Return how many times faster this cell is than `other`, from rounds in which both are clean.

        A round that is shorter than the clock's resolution has no ratio.
        """
        # not strict: a process that failed later has fewer rounds, which are the first ones
        rounds = zip(self.rounds, other.rounds, strict=False)
        pairs = [(a.median_s, b.median_s) for a, b in rounds if a.clean and b.clean]
        return spread([b / a for a, b in pairs if a > 0.0 < b])


def check_agreement(cells: Sequence[TimedCell]) -> None:
    """Set an error on every cell whose figure is not that of its group, so that it is not timed.

    Where our estimates of sampled expectations differ from the peers', backends must agree on ours as well.
    """
    for group in dict.fromkeys(cell.group for cell in cells):
        members = [cell for cell in cells if cell.group == group and not cell.untimed]
        _mark(members, [cell.comparable for cell in members])
    sampled = [cell for cell in cells if cell.as_peers is not None]
    for method in dict.fromkeys((cell.problem, cell.step, cell.method) for cell in sampled):
        members = [c for c in sampled if (c.problem, c.step, c.method) == method and not c.error]
        _mark(members, [cell.figure for cell in members])


def _mark(members: Sequence[TimedCell], figures: Sequence[float]) -> None:
    if not members:
        return
    tolerance = M_TOLERANCE if members[0].step in FAMILY_STEPS else TOLERANCE
    # no library is the reference: of three, the odd one is refused; of two far apart, both are
    # a NaN has no place in an order: it is refused below, and moves no other figure's median
    middle = statistics.median([x for x in figures if not math.isnan(x)] or [math.nan])
    for cell, figure in zip(members, figures, strict=True):
        # 1e-300: figures of 0 agree, where 0/0 would be NaN and refused
        difference = abs(figure - middle) / max(abs(middle), 1e-300)
        # a difference from itself would be shown as an agreement of 0
        if len(members) > 1:
            cell.difference = max(difference, cell.difference or 0.0)
        if not difference <= tolerance:  # NaN too
            others = "the median of both" if len(members) == 2 else f"the median of {len(members)}"
            cell.error = f"not timed: {figure:.12g} is {difference:.1e} off {others}, tolerance {tolerance:g}"


@dataclass
class SpeedReport:
    """Cells of a run, its settings and its environment."""

    cells: list[TimedCell]
    settings: dict[str, Any]
    environment: dict[str, Any]  # of the parent, of each backend and of each peer
    interrupted: bool = False
    rates: dict[str, dict[str, Rates]] = field(default_factory=dict)  # by problem and source
    without_floor: dict[str, str] = field(default_factory=dict)  # reasons by source or cell
    shared_cores: list[str] = field(default_factory=list)  # notes on cores that another run had too

    def note_cores(self, note: str) -> None:
        """Add a note of `timing_cores`; an empty note or one that is there already changes nothing."""
        if note and note not in self.shared_cores:
            self.shared_cores.append(note)

    @property
    def ok(self) -> bool:
        """True if no cell has an error."""
        return not any(cell.error for cell in self.cells)

    def baselines(self, cell: TimedCell) -> list[TimedCell]:
        """Return the peers' timed cells of the same problem and step; none if `cell` is a peer's."""
        if cell.peer:
            return []
        same = (cell.problem, cell.step)
        return [c for c in self.cells if c.peer and (c.problem, c.step) == same and not c.untimed]

    def fastest(self, peer: str, cell: TimedCell) -> TimedCell | None:
        """Return a peer's fastest cell of the same problem and step, or None if it has no time."""
        timed = [(c.times(), c) for c in self.baselines(cell) if c.source == peer]
        medians = [(times.median, c) for times, c in timed if times]
        return min(medians, key=lambda pair: pair[0])[1] if medians else None

    def spent(self, cell: TimedCell) -> CostSplit | None:
        """Return the shares of a cell's median time, or None if they cannot be computed."""
        times, rates = cell.times(), self.rates.get(cell.problem, {})
        if times is None or cell.work is None or cell.source not in rates or cell.error:
            return None
        spent = spend(times.median, cell.work, rates, cell.source, cell.dispatch_s)
        # a record's rates may over- or underflow
        return spent if spent.floor > 0.0 and spent.seconds > 0.0 else None

    def discarded(self) -> tuple[int, int]:
        """Return the numbers of discarded rounds and of all rounds."""
        rounds = [r for cell in self.cells for r in cell.rounds]
        return sum(not r.clean for r in rounds), len(rounds)

    def notes(self) -> list[str]:
        """Return lines on what the table leaves out: agreement, versions, rounds, cells without a time."""
        bad, total = self.discarded()
        limit = self.settings["max_other_cores"]
        lines = [f"{bad} of {total} rounds discarded: other processes used over {limit:g} cores"]
        compared = [cell.difference for cell in self.cells if cell.difference is not None]
        if compared:
            lines.append(
                f"agreement before timing: {len(compared)} cells, worst difference "
                f"{max(compared):.1e} (tolerance {TOLERANCE:g}, of an M-step {M_TOLERANCE:g})"
            )
        for source in ("parent", *self.settings.get("peers", ())):
            if versions := self.environment.get(source, {}).get("versions"):
                text = ", ".join(f"{name} {version}" for name, version in versions.items())
                lines.append(f"versions of {'svgpbench' if source == 'parent' else source}: {text}")
        lines += [f"{SHARED_CORES}: {note}" for note in self.shared_cores]
        if self.interrupted:
            lines.insert(0, "interrupted: these are the steps that were timed until then")
        for cell in self.cells:
            where = f"{cell.problem} {cell.step} {cell.title}"
            if cell.error:
                lines.append(f"{where}: {cell.error}")
            elif cell.refused:
                lines.append(f"{where}: refused: {cell.refused}")
            elif cell.rounds and cell.times() is None:
                lines.append(
                    f"{where}: no time, as other processes disturbed every round; time on a quiet machine, "
                    "or give --max-other-cores"
                )
        lines += [f"{what}: no floor: {why}" for what, why in self.without_floor.items()]
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return everything except the single calls, as JSON."""
        bad, total = self.discarded()
        values: dict[str, Any] = json_value(
            {
                "settings": self.settings,
                "interrupted": self.interrupted,
                "environment": self.environment,
                "rounds": {"total": total, "discarded": bad},
                "rates": self.rates,
                "without_floor": self.without_floor,
                "shared_cores": self.shared_cores,
                "cells": [self._cell_json(cell) for cell in self.cells],
            }
        )
        return values

    def _cell_json(self, cell: TimedCell) -> dict[str, Any]:
        """Return the fields of a cell, without single calls, and what is computed from them."""
        ratios = {peer.title: cell.ratio_to(peer) for peer in self.baselines(cell)}
        fields = {name: value for name, value in vars(cell).items() if name != "kept_times"}
        return fields | {
            "rounds": [
                {name: x for name, x in r._asdict().items() if name != "seconds"}
                for r in cell.rounds
            ],
            "seconds": cell.times(),
            "faster_than": {name: ratio for name, ratio in ratios.items() if ratio},
            "spent_s": self.spent(cell),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> SpeedReport:
        """Return the report that `to_json` wrote.

        Raises `ValueError`, `TypeError` or `KeyError` for anything else.
        """
        limit = _read(_LIMIT, record["settings"]["max_other_cores"])
        return cls(
            cells=[_cell_of(values) for values in record["cells"]],
            # JSON has no infinity: a run that discarded no round has null
            settings=record["settings"] | {"max_other_cores": math.inf if limit is None else limit},
            environment=_read(_SOURCES, record["environment"]),
            interrupted=record["interrupted"],
            rates=_read(_RATES, record["rates"]),
            without_floor=_read(_REASONS, record["without_floor"]),
            # most records have none: they are older than the notes
            shared_cores=_read(_LINES, record.get("shared_cores", [])),
        )

    def write(self, path: Path) -> None:
        """Write the report as JSON. Raises `UserError` if the file cannot be written."""
        write_whole(path, f"{json_text(self.to_json())}\n".encode())

    @classmethod
    def read(cls, path: Path) -> SpeedReport:
        """Read the report that `svgpbench speed --out` wrote.

        Raises `UserError` if the file cannot be read or is not such a report.
        """
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(f"{path}: is no record of `svgpbench speed --out`") from None


_CELL, _LIMIT = TypeAdapter(TimedCell), TypeAdapter[float | None](NonNegativeFloat | None)
_RATES = TypeAdapter(dict[str, Annotated[dict[str, Rates], Field(min_length=1)]])
_SOURCES = TypeAdapter(dict[str, dict[str, Any]])
_REASONS, _LINES = TypeAdapter(dict[str, str]), TypeAdapter(list[str])


def _read(form: TypeAdapter[Form], values: Any) -> Form:
    # strict validation of JSON takes an object for a named tuple, but not "3" for a number
    return form.validate_json(json.dumps(values), strict=True)


def _cell_of(values: Mapping[str, Any]) -> TimedCell:
    """Return the cell of a record. Raises `ValueError` if it is not valid."""
    missing_figures = {
        name: float("nan") for name in ("first_call_s", "figure") if values[name] is None
    }
    cell = _read(_CELL, {**values, **missing_figures, "kept_times": values["seconds"]})
    if cell.work is not None and not cell.work.flops:
        raise ValueError("a step without work")
    return cell
