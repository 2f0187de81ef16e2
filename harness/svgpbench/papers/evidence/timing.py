"""Step times from a record of `svgpbench speed`, for claims about speed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pandas as pd
from pydantic import Field

from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.config import Text
from svgpbench.csv_text import as_csv
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import latex, markdown
from svgpbench.papers.evidence.base import (
    EvidenceFrame,
    PartOfPaper,
    RecordedEvidence,
    TimesFrame,
)
from svgpbench.papers.report import WrittenFigure, WrittenTable, write_table

if TYPE_CHECKING:
    from svgpbench.papers.loading import Paper
    from svgpbench.papers.schema import Artefact


class TimingEvidence(RecordedEvidence):
    """Step times from a record of `svgpbench speed`."""

    part_of_paper: ClassVar[PartOfPaper] = "speed"

    kind: Literal["timing"]
    record: Text  # path below the results folder
    problems: Annotated[tuple[Text, ...], Field(min_length=1)]
    steps: Annotated[tuple[Text, ...], Field(min_length=1)]  # their times are summed in each round
    methods: tuple[Text, ...] = ()  # methods to time; empty: the default methods and the peers

    @property
    def source(self) -> str:
        return f"`{self.record}`"

    @property
    def description(self) -> str:
        return f"times of {self.record}"

    @property
    def path(self) -> str:
        return self.record

    def load(self, paper: Paper, artefact: Artefact, results: Path) -> TimesFrame:
        return load_timing(results, self)

    def command(self, paper: Paper, artefact: Artefact, results: Path) -> str:
        """Return the command that makes the record, with the problems of all artefacts that read it.

        It times `methods` on JAX, or every backend and peer if none is named.
        """
        declared = [x.evidence for x in paper.about.artefacts]
        readers = [x for x in declared if isinstance(x, TimingEvidence) and x.record == self.record]
        names = dict.fromkeys(name for reader in (*readers, self) for name in reader.problems)
        problems = " ".join(f"--problem {name}" for name in names)
        steps = " ".join(f"--step {step}" for step in dict.fromkeys(self.steps))
        methods = " ".join(f"--method '{method}'" for method in self.methods)
        timed = f"--backend jax {methods}" if methods else "--peers"
        return f"svgpbench speed {timed} {problems} {steps} --out {results / self.record}"

    def write(
        self, paper: Paper, artefact: Artefact, loaded: EvidenceFrame, results: Path, folder: Path
    ) -> Iterator[WrittenFigure | WrittenTable]:
        """Tabulate the summed times, and draw them against M if there is more than one problem."""
        folder.mkdir(parents=True, exist_ok=True)
        if len(self.problems) > 1:
            # Matplotlib takes a third of the time of `import svgpbench.api`
            from svgpbench.papers import times_figure

            png, pdf = folder / "times.png", folder / "times.pdf"
            caption = times_figure.draw_times(loaded, self, png, pdf)
            text = f"{paper.name}, {artefact.id}: {caption}"
            yield WrittenFigure("times", text, png, pdf, times_figure.__name__).with_caption()
        table, note = table_of_times(loaded.frame), f"Times: {loaded.condition}."
        texts = f"{markdown(table)}\n\n{note}", latex(table, note), as_csv(loaded.frame)
        yield write_table(folder / "times", [table], [note], texts, folded=False)


def load_timing(results: Path, timing: TimingEvidence) -> TimesFrame:
    """Return one row per problem, method and round in which every step was undisturbed.

    `seconds` is the sum over the steps. `problem` is categorical, so that a problem without times of the
    chosen methods stays as an empty group. If the record or a problem's times are missing, `why_not` has the
    reason. Raises `UserError` if the file cannot be read or is not a record of `svgpbench speed`.
    """
    path = results / timing.record
    if not path.is_file():
        return TimesFrame(pd.DataFrame(), f"no record {timing.record} in {results}")
    report = SpeedReport.read(path)
    frame = pd.DataFrame(
        [row for problem in timing.problems for row in _rounds(report, timing, problem)],
        columns=["problem", "method", "round", "seconds"],
    )
    for problem in timing.problems:
        if problem not in set(frame["problem"]):
            steps = " + ".join(timing.steps)
            why = f"{timing.record} has no times of {problem} {steps}"
            return TimesFrame(pd.DataFrame(), why)
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
    return TimesFrame(frame, about=about, source=timing.record)


def table_of_times(frame: pd.DataFrame) -> Table:
    """Return the summed step times in milliseconds: median and quartiles over rounds."""
    header = columns(("problem", "method"), ("median, ms", "quartiles, ms", "rounds"))
    rows = []
    groups = frame.groupby(["problem", "method"], observed=True, sort=False)["seconds"]
    for (problem, method), seconds in groups:
        low, middle, high = (1000 * seconds.quantile(q) for q in (0.25, 0.5, 0.75))
        span = f"{low:.3g} to {high:.3g}"
        rows.append([str(problem), str(method), f"{middle:.3g}", span, str(len(seconds))])
    return Table(header, rows)


def _rounds(report: SpeedReport, timing: TimingEvidence, problem: str) -> Iterator[dict[str, Any]]:
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
