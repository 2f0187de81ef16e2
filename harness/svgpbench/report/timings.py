"""Times of steps from a record of `svgpbench speed`, as a claim about speed reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from svgpbench.errors import UserError
from svgpbench.papers.schema import Timing
from svgpbench.report.evidence import Evidence
from svgpbench.speed.report import Cell, SpeedReport


@dataclass(frozen=True)
class Timed(Evidence):
    """A row a method and round: `method`, `round` and `seconds`, all steps of the claim together."""

    about: str = ""

    @property
    def condition(self) -> str:
        return self.about


def timed(results: Path, timing: Timing) -> Timed:
    """The rounds in which every step of a method was undisturbed; or why there are none.

    Raises `UserError` for a file that is no record.
    """
    path = results / timing.record
    if not path.is_file():
        return Timed(pd.DataFrame(), f"no record {timing.record} in {results}")
    try:
        report = SpeedReport.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: is no record of `svgpbench speed --out`") from None
    cells: dict[str, list[Cell]] = {}
    for cell in report.cells:
        if cell.problem == timing.problem and cell.step in timing.steps and not cell.untimed:
            cells.setdefault(cell.title, []).append(cell)
    rows = [
        {"method": title, "round": turn, "seconds": sum(r.median_s for r in rounds)}
        for title, of_steps in cells.items()
        if len(of_steps) == len(timing.steps)
        for turn, rounds in enumerate(zip(*(cell.rounds for cell in of_steps), strict=False))
        if all(r.clean for r in rounds)
    ]
    if not rows:
        steps = " + ".join(timing.steps)
        return Timed(pd.DataFrame(), f"{timing.record} has no times of {timing.problem} {steps}")
    return Timed(pd.DataFrame(rows).assign(cell_id=timing.record), about=_about(report, timing))


def command(timing: Timing, results: Path) -> str:
    """What makes the record, of every backend and peer."""
    steps = " ".join(f"--step {step}" for step in timing.steps)
    out = results / timing.record
    return f"svgpbench speed --peers --problem {timing.problem} {steps} --out {out}"


def _about(report: SpeedReport, timing: Timing) -> str:
    versions = {
        name: found["versions"].get(name.partition("@")[0])
        for name, found in report.environment.items()
        if name in report.settings.get("peers", ())
    }
    peers = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    threads = report.settings["threads"]
    steps = " + ".join(timing.steps)
    return f"{timing.problem}, {steps}, {threads} threads, beside {peers}"
