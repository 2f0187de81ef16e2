"""Sections of the page of speed: training to quality, step times, survival."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from svgpbench.benchmarks.stability.map import draw_map, tables
from svgpbench.benchmarks.stability.plan import read_stability_plan
from svgpbench.benchmarks.stability.records import read_stability
from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns, compare_contestants
from svgpbench.benchmarks.time_to_target.curves import draw_learning
from svgpbench.benchmarks.time_to_target.plan import LearningPlan, read_learning_plan
from svgpbench.benchmarks.time_to_target.profile import draw_profile, profile_table
from svgpbench.benchmarks.time_to_target.records import read_training
from svgpbench.benchmarks.time_to_target.tables import end_table, notes, target_table
from svgpbench.benchmarks.timing.method_ratios import (
    MethodRatios,
    draw_ratios,
    notes_of,
    ratios_of,
    ratios_table,
    summary_table,
)
from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.benchmarks.timing.roofline import draw_roofline
from svgpbench.benchmarks.timing.tables import CONVENTION, floor_table, rates_table, times_table
from svgpbench.errors import UserError
from svgpbench.output.table import Table
from svgpbench.site.downloads import FOLDER
from svgpbench.site.pages import Link, slug

PICTURES = "speed"
DUAL_OVER_MEAN = ("t-svgp", "q-svgp")


@dataclass(frozen=True)
class Section:
    """Tables and picture of a record."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    picture: str  # path relative to the site; empty for none
    caption: str
    links: tuple[Link, ...]

    @property
    def anchor(self) -> str:
        """Anchor of the section on the page."""
        return slug(self.title.lower().replace(": ", "-").replace(" ", "-"))


def speed_sections(results: Path, site: Path) -> tuple[list[Section], list[str]]:
    """Return one section per record or problem, and one line per file that is not a valid record."""
    (site / PICTURES).mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    left_out: list[str] = []
    # called one by one below, so that a damaged record costs its own section only
    makers: list[Callable[[], Iterator[Section]]] = [
        partial(_training_to_quality, results / "learning", site),
        partial(_dual_over_mean, results / "speed", site),
        *(partial(_times, path, site) for path in sorted((results / "speed").glob("*.json"))),
        partial(_survival, results / "survival", site),
    ]
    for make in makers:
        try:
            sections += make()
        except UserError as error:
            left_out.append(str(error))
    return sections, left_out


def _times(path: Path, site: Path) -> Iterator[Section]:
    """Yield the section of a record of step times."""
    report = SpeedReport.read(path)
    shown = [times_table(report)]
    picture = caption = ""
    lines = list(report.notes())
    if report.rates:
        shown += [floor_table(report), rates_table(report)]
        lines += CONVENTION.splitlines()
        picture = f"{PICTURES}/roofline-{slug(path.stem)}.png"
        caption = draw_roofline([report], site / picture)
    title = f"Steps: {path.stem}"
    yield Section(title, tuple(shown), tuple(lines), picture, caption, _links("speed", path))


def _dual_over_mean(folder: Path, site: Path) -> Iterator[Section]:
    """Yield t-SVGP's times over q-SVGP's, of all readable records."""
    rows: list[MethodRatios] = []
    for path in sorted(folder.glob("*.json")):
        with suppress(UserError):  # `_times` says which file is no record
            report = SpeedReport.read(path)
            rows += ratios_of(report, path.stem, *DUAL_OVER_MEAN)
    if not rows:
        return
    picture = f"{PICTURES}/dual-over-mean.png"
    caption = draw_ratios(rows, *DUAL_OVER_MEAN, site / picture)
    shown = tuple(table(rows, *DUAL_OVER_MEAN) for table in (summary_table, ratios_table))
    notes = tuple(notes_of(rows, *DUAL_OVER_MEAN))
    links = _links("speed", *(folder / f"{x}.json" for x in dict.fromkeys(r.record for r in rows)))
    yield Section("Steps: t-svgp over q-svgp", shown, notes, picture, caption, links)


def _training_to_quality(folder: Path, site: Path) -> Iterator[Section]:
    """Yield the profile over all problems, then each problem on which a contestant trained."""
    plan, records = read_learning_plan(), read_training(folder)
    contestants = list(dict.fromkeys(run.contestant for run in records))
    entries = {
        problem: [
            x for x in compare_contestants(plan, problem, contestants, records.get) if x.search
        ]
        for problem in plan.problems
    }
    entries = {name: runs for name, runs in entries.items() if any(x.trained for x in runs)}
    links = _links("learning", *sorted(folder.glob("*.jsonl")))
    if len(entries) > 1:
        yield _profile(entries, site, links)
    for problem, runs in entries.items():
        yield _on_problem(plan, problem, runs, site, links)


def _on_problem(
    plan: LearningPlan,
    problem: str,
    entries: Sequence[ContestantRuns],
    site: Path,
    links: tuple[Link, ...],
) -> Section:
    settings, picture = plan.problems[problem], f"{PICTURES}/learning-{slug(problem)}.png"
    draw_learning(plan, {problem: entries}, site / picture)
    caption = (
        f"Training to quality on {problem}: test NLPD against seconds of training. One curve per seed, one "
        "line per target, a cross where a run failed. Every contestant searched its rates in the same way."
    )
    shown = tuple(table(problem, settings, entries) for table in (target_table, end_table))
    lines = tuple(notes(problem, entries))
    title = f"Training to quality: {problem}"
    return Section(title, shown, lines, picture, caption, links)


def _profile(
    entries: Mapping[str, Sequence[ContestantRuns]], site: Path, links: tuple[Link, ...]
) -> Section:
    picture = f"{PICTURES}/learning-profile.png"
    draw_profile(entries, site / picture)
    caption = (
        "Share of tasks that a contestant finishes within a multiple of the fastest contestant's seconds. "
        "A task is a share of the possible gain in test NLPD, of one problem and seed."
    )
    shown = (profile_table(entries),)
    return Section("Training to quality: all problems", shown, (), picture, caption, links)


def _survival(folder: Path, site: Path) -> Iterator[Section]:
    plan, ended = read_stability_plan(), read_stability(folder)
    if not ended:
        return
    picture = f"{PICTURES}/survival.png"
    draw_map(plan, ended, site / picture)
    caption = (
        f"Natural gradients over {plan.steps} minibatches at a fixed θ. A row is a method. A column is one "
        "value of a setting, with the other settings at their centre. A cell that survived shows its "
        "bound in nats per datum, any other the step at which it failed and the cause."
    )
    links = _links("survival", *sorted(folder.glob("*.jsonl")))
    yield Section(
        "Rates at which natural gradients survive",
        tuple(tables(plan, ended)),
        (),
        picture,
        caption,
        links,
    )


def _links(folder: str, *paths: Path) -> tuple[Link, ...]:
    return tuple(Link(path.name, f"{FOLDER}/{folder}/{path.name}") for path in paths)
