"""Advice as Markdown, which a terminal shows as it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator

from svgpbench.metrics import METRICS
from svgpbench.report.advice import Advice, Field, Ranked, rule
from svgpbench.report.grading import with_interval
from svgpbench.report.pareto import scaled
from svgpbench.report.table_formats import TextTable, markdown

MOST_DATA = 8
"""Data sets whose differences are listed one by one."""

MOST_METHODS = 12
"""Methods that are listed; a sweep of rates has more."""


def advice_as_markdown(advice: Advice) -> str:
    """The question, an answer for each experiment with its ranking, and the rule."""
    text = advice.question.text
    parts = [f"## {text[0].upper()}{text[1:]}"]
    if not advice.fields:
        parts.append(_no_evidence(advice))
    for field in advice.fields:
        parts += _field(field)
    notes = (rule(advice.question.within), *advice.notes)
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts)


def _no_evidence(advice: Advice) -> str:
    said = "**No evidence**: no records here are near, and nothing is extrapolated."
    if not advice.nearest:
        return f"{said} No record has that likelihood."
    listed = "; ".join(f"{case.experiment}, {case.text}" for case in advice.nearest)
    return f"{said} The nearest: {listed}."


def _field(field: Field) -> Iterator[str]:
    """The heading, the answer, the ranking and what it rests on."""
    likelihood = field.cases[0].likelihood
    yield f"### {field.experiment}, {likelihood}"
    yield f"**{field.answer[0].upper()}{field.answer[1:]}.**"
    yield markdown(_ranking(field))
    if len(field.cases) <= MOST_DATA and len(field.methods) > 1:
        title = METRICS[field.metric].title
        yield (
            f"By how much {field.methods[0].method} is better in {title}, paired by split and start, "
            "with 95 % intervals:"
        )
        yield markdown(_differences(field))
    yield "\n".join(_evidence(field))


def _ranking(field: Field) -> TextTable:
    header = ("method", "beaten on", "open on", "average rank", "FLOPs", "seconds")
    rows = [
        (
            one.method,
            f"{len(one.beaten)} of {len(field.cases)}",
            str(one.undecided),
            f"{one.rank:.2f}",
            scaled(one.flops),
            scaled(one.seconds),
        )
        for one in field.methods[:MOST_METHODS]
    ]
    return TextTable(header, rows, words=1)


def _differences(field: Field) -> TextTable:
    header = ("method", *(case.data for case in field.cases))
    rows = [[one.method, *_by_data(field, one)] for one in field.methods[1:MOST_METHODS]]
    return TextTable(header, rows, words=1)


def _by_data(field: Field, one: Ranked) -> Iterator[str]:
    effects = {effect.of: effect for effect in one.against}
    for case in field.cases:
        effect = effects[case.data]
        chaotic = " (chaotic)" if effect.note.startswith("chaotic") else ""
        yield f"{with_interval(effect)} {effect.outcome}{chaotic}".strip()


def _evidence(field: Field) -> Iterator[str]:
    cases = [case.text for case in field.cases]
    shown = cases if len(cases) <= MOST_DATA else [*cases[:2], f"... {len(cases) - 2} more"]
    count = len(cases)
    sets = f"{count} data set{'s' * (count > 1)}"
    yield f"- evidence: {field.records} records of `{field.experiment}` on {sets}"
    yield f"- data: {'; '.join(shown)}"
    if len(field.methods) > MOST_METHODS:
        yield f"- the first {MOST_METHODS} of {len(field.methods)} methods are listed"
    if any(math.isnan(one.flops) for one in field.methods):
        yield "- –: not counted"
    yield from (f"- {note}" for note in field.notes)
