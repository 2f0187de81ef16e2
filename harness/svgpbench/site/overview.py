"""Summaries on the overview page: claims in short, methods, and machines with their dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from svgpbench.benchmarks.stability.records import NO_VERDICT, StabilityRecord
from svgpbench.methods.method import MethodInfo
from svgpbench.output.number_formats import in_bytes
from svgpbench.output.table import Column, Table, columns, number
from svgpbench.papers.grades import Grade
from svgpbench.results.records import Record
from svgpbench.site.fields import Field
from svgpbench.stats.effects import Outcome

PREDICATES: Mapping[Grade, tuple[str, str]] = {
    Grade.direction: ("holds in direction only", "hold in direction only"),
    Grade.mixed: ("is mixed", "are mixed"),
    Grade.fails: ("fails", "fail"),
    Grade.open: ("is open", "are open"),
    Grade.not_testable: ("cannot be tested here", "cannot be tested here"),
    Grade.not_run: ("has not run", "have not run"),
}
"""What is said of one claim and of several, by grade. `in_short` words the other two grades."""


def in_short(grades: Iterable[Grade]) -> str:
    """Return the counts of grades as a sentence.

    For instance `12 of 20 claims hold, 5 after a correction; 2 fail, 6 are open.`
    """
    counts = Counter(grades)
    total, corrected = counts.total(), counts[Grade.corrected]
    holding = counts[Grade.holds] + corrected
    text = f"{holding} of {total} claim{'s' * (total != 1)} hold{'s' * (holding == 1)}"
    if corrected:
        text += f", {corrected} after a correction"
    rest = [
        f"{counts[grade]} {PREDICATES[grade][counts[grade] > 1]}"
        for grade in PREDICATES
        if counts[grade]
    ]
    return "; ".join(filter(None, [text, ", ".join(rest)])) + "."


def method_table(
    methods: Mapping[str, MethodInfo],
    fields: Sequence[Field],
    stability: Iterable[StabilityRecord],
) -> Table:
    """Return where each method is best, what it costs and how it fails, one row per method."""
    decided = [x for x in stability if x.run.library == "svgpbench" and x.status not in NO_VERDICT]
    rows = []
    for name, info in methods.items():
        better, worse = _comparisons(name, fields)
        survived = [x.status == "ok" for x in decided if x.run.method == name]
        rows.append(
            (
                name,
                "; ".join(_firsts(name, fields)),
                f"{better} : {worse}" if better or worse else None,
                info.e_step,
                _seconds(name, fields),
                _failures(name, fields),
                f"{survived.count(False)} of {len(survived)}" if survived else None,
            )
        )
    best = (Column("method"), Column("best average rank in"), number("better : worse"))
    costs = columns(("cost of an E-step", "seconds per 1,000 rows"))
    return Table((*best, *costs, Column("failed runs"), number("failed in stability map")), rows)


def _firsts(name: str, fields: Sequence[Field]) -> list[str]:
    """Return `experiment (scores)` for the experiments of several methods that a method leads by rank."""
    lines = []
    for field in fields:
        titles = [
            score.title
            for score in field.scores
            if (ranks := field.ranks.get(score.name)) is not None
            and name in {field.names[rank.method] for rank in ranks.leaders}
        ]
        if titles and len(set(field.names.values())) > 1:
            lines.append(f"{field.experiment} ({', '.join(titles)})")
    return lines


def _comparisons(name: str, fields: Sequence[Field]) -> tuple[int, int]:
    """Return how often a method is better and worse than another, over data sets and scores."""
    outcomes = Counter(
        outcome
        for field in fields
        for pairs in field.outcomes.values()
        for (first, second), by_data in pairs.items()
        # two labels of one method, such as two options, are no comparison of methods
        if field.names[first] == name != field.names[second]
        for outcome in by_data.values()
    )
    return outcomes[Outcome.better], outcomes[Outcome.worse]


def _seconds(name: str, fields: Sequence[Field]) -> str:
    """Return the seconds of training per 1,000 rows: the median over experiments, least and most."""
    medians = []
    for field in fields:
        cells = field.compared
        cells = cells[(cells["method"].map(field.names) == name) & (cells["status"] == "ok")]
        per_rows = (1000 * cells["seconds"] / cells["n_train"]).dropna()
        if len(per_rows):
            # a median per experiment first: one with thousands of cells would decide alone
            medians.append(float(per_rows.median()))
    if not medians:
        return ""
    middle, least, most = map(_two_digits, (median(medians), min(medians), max(medians)))
    return f"{middle} ({least} to {most})" if len(medians) > 1 else middle


def _failures(name: str, fields: Sequence[Field]) -> str:
    """Return the share of failed runs of a method, with their number by status."""
    statuses: Counter[str] = Counter()
    for field in fields:
        frame = field.frame
        statuses.update(frame["status"][frame["method"].map(field.names) == name])
    if not statuses:
        return ""
    total, completed = statuses.total(), statuses.pop("ok", 0)
    listed = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    share = f"{_two_digits(100 * (total - completed) / total)} % of {total:,}"
    return f"{share}: {listed}" if listed else share


def _two_digits(number: float) -> str:
    """Return a number rounded to two digits, as `100` and not `1e+02`."""
    return f"{float(f'{number:.2g}'):g}"


def machine_table(records: Iterable[Record]) -> Table:
    """Return the machines of the records, with number and dates of their records."""
    days: dict[tuple[str, str, str, int, str], list[str]] = {}
    for record in records:
        if (x := record.environment) is not None:
            machine = (x.cpu, x.gpu or "none", x.system, x.cores, in_bytes(x.memory_bytes))
            days.setdefault(machine, []).append(f"{record.started:%Y-%m-%d}")
    rows = [(*machine, len(on), min(on), max(on)) for machine, on in days.items()]
    numbers = (number("cores"), number("memory"), number("records", ","))
    return Table((*columns(("CPU", "GPU", "system")), *numbers, *columns(("first", "last"))), rows)
