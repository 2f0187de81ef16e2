"""Step times from a record of `svgpbench speed`, for claims about speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from svgpbench.benchmarks.timing.record_files import read_report
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.papers import Paper
from svgpbench.papers.evidence.records import Evidence
from svgpbench.papers.schema import Timing


@dataclass(frozen=True)
class TimingEvidence(Evidence):
    """Evidence from step times, with one row per problem, method and round.

    `seconds` is the sum over the steps. `problem` is categorical, so that a problem without times of the
    chosen methods stays as an empty group.
    """

    about: str = ""

    @property
    def condition(self) -> str:
        return self.about


def load_timing(results: Path, timing: Timing) -> TimingEvidence:
    """Return the rounds in which every step of a method was undisturbed.

    If the record or a problem's times are missing, `why_not` has the reason. Raises `UserError` if the file
    cannot be read or is not a record of `svgpbench speed`.
    """
    path = results / timing.record
    if not path.is_file():
        return TimingEvidence(pd.DataFrame(), f"no record {timing.record} in {results}")
    report = read_report(path, "speed", SpeedReport.from_json)
    frame = pd.DataFrame(
        [row for problem in timing.problems for row in _rounds(report, timing, problem)],
        columns=["problem", "method", "round", "seconds"],
    )
    for problem in timing.problems:
        if problem not in set(frame["problem"]):
            steps = " + ".join(timing.steps)
            return TimingEvidence(
                pd.DataFrame(), f"{timing.record} has no times of {problem} {steps}"
            )
    problems = pd.Categorical(frame["problem"], timing.problems)
    frame = frame.assign(problem=problems, cell_id=timing.record)
    versions = {
        name: environment["versions"].get(name.partition("@")[0])
        for name, environment in report.environment.items()
        if name in report.settings.get("peers", ())
    }
    peers = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    what = f"{', '.join(timing.problems)}, {' + '.join(timing.steps)}"
    about = f"{what}, {report.settings['threads']} threads{', beside ' * bool(peers)}{peers}"
    return TimingEvidence(frame, about=about)


def _rounds(report: SpeedReport, timing: Timing, problem: str) -> Iterator[dict[str, Any]]:
    """Yield the undisturbed rounds of the methods with times of every step."""
    cells: dict[str, dict[str, TimedCell]] = {}
    for cell in report.cells:
        if cell.problem == problem and cell.step in timing.steps and not cell.untimed:
            cells.setdefault(cell.title, {})[cell.step] = cell
    for title, by_step in cells.items():
        # a sum without one of the steps would look fast
        if by_step.keys() != set(timing.steps):
            continue
        of_steps = [
            by_step[step].rounds for step in timing.steps
        ]  # a step may be there several times
        # steps may differ in their number of rounds: only those that all have are added
        for turn, rounds in enumerate(zip(*of_steps, strict=False)):
            if all(r.clean for r in rounds):
                seconds = sum(r.median_s for r in rounds)
                yield {"problem": problem, "method": title, "round": turn, "seconds": seconds}


def command(paper: Paper, timing: Timing, results: Path) -> str:
    """Return the command that makes the record.

    It times `timing.methods` on JAX, or every backend and peer if none is named. Its problems are those of
    every artefact of the paper that reads the record.
    """
    timings = [artefact.timing for artefact in paper.about.artefacts if artefact.timing]
    readers = [x for x in timings if x.record == timing.record]
    names = dict.fromkeys(name for reader in (*readers, timing) for name in reader.problems)
    problems = " ".join(f"--problem {name}" for name in names)
    steps = " ".join(f"--step {step}" for step in dict.fromkeys(timing.steps))
    methods = " ".join(f"--method '{method}'" for method in timing.methods)
    timed = f"--backend jax {methods}" if methods else "--peers"
    return f"svgpbench speed {timed} {problems} {steps} --out {results / timing.record}"
