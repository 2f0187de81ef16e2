"""Advice as texts and tables: the answer in three lines, then a table, or all of the evidence."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from svgpbench.comparison.advice import Advice, ExperimentField, Ranked, rule
from svgpbench.comparison.advice_by_time import TimedField
from svgpbench.comparison.cases import LEAST_DATA, NOT_SEARCHED, Case, count
from svgpbench.metrics import METRICS
from svgpbench.output.number_formats import scaled
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.stats.effects import with_interval

MOST_ROWS: Final = 10
"""Most rows of the first table."""
MOST_DATA: Final = 8
"""Most data sets whose differences are listed one by one."""
MOST_METHODS: Final = 12
"""Most methods that are listed. A sweep of rates may have more."""
MOST_NAMES: Final = 3
SEARCHES: Final = 6
"""Pairs of rates that a search tries, as in the shipped plan of `svgpbench learn`."""
HEADER: Final = ("likelihood", "N", "M", "score", "advice", "training cost", "unsettled or failed")
NEEDED: Final = (
    'What would be needed is an experiment file with `rates = "searched"` (`svgpbench run FILE.toml`, then '
    "`svgpbench advise --experiment FILE.toml`) or a plan (`svgpbench learn --plan FILE.toml`). Hours are "
    "those of one core, by the recorded times:"
)


class AnswerRow(NamedTuple):
    """A row of the table of answers, with the records that are still needed for advice."""

    cells: Sequence[str]
    needed: str = ""


def advice_as_markdown(advice: Advice, evidence: bool = False) -> str:
    """Return the question, the answer, and all parts of the advice as Markdown."""
    text = advice.question.text
    lines = "\n".join(f"- {name}: {said}" for name, said in answer_lines(advice))
    parts = [f"## {text[0].upper()}{text[1:]}", lines, *advice_parts(advice, evidence)]
    return "\n\n".join(markdown(x) if isinstance(x, Table) else x for x in parts)


def as_plain(part: str | Table) -> str | Table:
    """Return a part without the signs of Markdown for bold and headings."""
    if isinstance(part, str):
        return re.sub(r"\*\*|^#+ ", "", part, flags=re.MULTILINE)
    rows = [[as_plain(text) for text in row] for row in part.texts]
    return Table(part.columns, rows)


def answer_lines(advice: Advice) -> tuple[tuple[str, str], ...]:
    """Return the answer in three named lines: which method, for which data, on what evidence."""
    every: list[ExperimentField | TimedField] = [*advice.fields, *advice.timed]
    advising = [field for field in every if field.recommended]
    fields = [field for field in advice.fields if not advising or field in advising]
    timed = [field for field in advice.timed if field in advising or not advice.fields]
    sizes = [case.n for field in fields for case in field.cases]
    sizes += [case.n for field in timed for case in field.cases]
    asked = advice.question
    records = "records near it" if asked.n or asked.dimensions or asked.inducing else "the records"
    data = asked.text + (f"; {records} have N = {_span(sizes)}" if sizes else "")
    return (
        ("method", _recommended(advising) or f"no advice{_converged(fields)}"),
        ("data", data),
        ("evidence", _extent(fields, timed) or "no records here are near"),
    )


def _recommended(fields: Sequence[ExperimentField | TimedField]) -> str:
    """Return the recommended methods with their likelihood and score, empty if there are none."""
    texts = []
    for field in fields:
        if isinstance(field, TimedField):
            names = [timed.contestant for timed in field.recommended]
            what = f"{field.likelihood}, by time"
        else:
            names = [ranked.method for ranked in field.recommended]
            what = f"{field.cases[0].likelihood}, by {METRICS[field.metric].title}"
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        texts.append(f"{', '.join(names[:MOST_NAMES])}{more} ({what})")
    return "; ".join(texts)


def _converged(fields: Sequence[ExperimentField]) -> str:
    """Return how many methods have converged and are stable, empty without experiments."""
    tried = sum(field.tried for field in fields)
    known = tried - sum(len({run.method for run in field.unsettled}) for field in fields)
    text = f": {known} of {tried} methods, counted per experiment, are known to have converged"
    return text if fields else ""


def _extent(fields: Sequence[ExperimentField], timed: Sequence[TimedField]) -> str:
    """Return the numbers of records, data sets and experiments, empty if there are none."""
    texts = []
    if fields:
        sets = _sources([case for field in fields for case in field.cases])
        rates = {field.experiment: field.rates for field in fields}
        comparable = sum(origin != "as printed" for origin in rates.values())
        texts.append(
            f"{sum(field.records for field in fields)} records of {count(len(sets), 'data set')}; "
            f"comparable rates in {comparable} of {count(len(rates), 'experiment')}"
        )
    if timed:
        sets = _sources([case for field in timed for case in field.cases])
        texts.append(f"times on {count(len(sets), 'data set')}")
    return "; ".join(texts)


def next_command(advice: Advice, evidence: bool, asked: Sequence[str], data: Sequence[str]) -> str:
    """Return the command that a reader of the advice runs next.

    Args:
        advice: the answer of the records.
        evidence: True if the comparisons of the experiments have been shown.
        asked: arguments of the command that gave the advice, without `--evidence`.
        data: arguments that name the data set, empty without one.
    """
    if (advice.fields or advice.timed) and not evidence:
        return shlex.join(["svgpbench", "advise", *asked, "--evidence"])
    return shlex.join(
        ["svgpbench", "inducing", *data] if data else ["svgpbench", "list", "methods"]
    )


def advice_parts(advice: Advice, evidence: bool = False) -> list[str | Table]:
    """Return the table of answers, the records that are still needed, and the rule.

    Args:
        advice: the answer of the records.
        evidence: add the comparison of each experiment.
    """
    parts: list[str | Table] = []
    rows = list(_answer_rows(advice))
    if rows:
        parts.append(Table(columns(HEADER), [row.cells for row in rows[:MOST_ROWS]]))
        needed = [row.needed for row in rows[:MOST_ROWS] if row.needed]
        if needed:
            parts += [NEEDED, "\n".join(f"- {line}" for line in needed)]
    else:
        parts.append(_no_evidence(advice))
    notes = [rule(advice.question.within), *advice.notes]
    if len(rows) > MOST_ROWS:
        notes.append(f"{len(rows) - MOST_ROWS} more rows are left out: name a --likelihood")
    if evidence:
        parts += [part for field in advice.timed for part in _timed(field)]
        parts += [part for field in advice.fields for part in _field(field)]
    return [*parts, "\n".join(f"- {note}" for note in notes)]


def _no_evidence(advice: Advice) -> str:
    text = "**No evidence**: no records here are near, and nothing is extrapolated."
    if not advice.nearest:
        return f"{text} No record has that likelihood."
    listed = "; ".join(f"{case.experiment}, {case.text}" for case in advice.nearest)
    return f"{text} The nearest: {listed}."


def _answer_rows(advice: Advice) -> Iterator[AnswerRow]:
    """Yield, for each likelihood, one row on the end of training and one per plan on times."""
    likelihoods = [field.cases[0].likelihood for field in advice.fields]
    likelihoods += [field.likelihood for field in advice.timed]
    for likelihood in dict.fromkeys(likelihoods):
        fields = [field for field in advice.fields if field.cases[0].likelihood == likelihood]
        if fields:
            yield _row_at_the_end(likelihood, fields, METRICS[advice.metric].title)
        yield from (_row_by_time(timed) for timed in advice.timed if timed.likelihood == likelihood)


def _row_at_the_end(likelihood: str, fields: Sequence[ExperimentField], title: str) -> AnswerRow:
    """Return the row of the experiments that give advice, or the reasons if none does."""
    advising = [field for field in fields if field.recommended]
    shown = advising or fields
    cases = [case for field in shown for case in field.cases]
    answers = "; ".join(f"{field.answer} ({field.experiment})" for field in advising)
    cells = (
        likelihood,
        _span([case.n for case in cases]),
        _span([size for case in cases for size in case.inducing]),
        f"{title} at the end of training",
        answers or _no_advice(fields),
        _cost(shown),
        _fails(shown),
    )
    return AnswerRow(cells, "" if advising else _to_decide(likelihood, fields))


def _no_advice(fields: Sequence[ExperimentField]) -> str:
    """Return why no experiment recommends a method, each reason once with its experiments."""
    experiments: dict[str, list[str]] = {}  # by reason
    for field in fields:
        printed = NOT_SEARCHED in field.why_not
        reason = NOT_SEARCHED if printed else "; ".join(field.why_not)
        experiments.setdefault(reason, []).append(field.experiment)
    if len(fields) == 1 or len(experiments.get(NOT_SEARCHED, ())) == len(fields):
        return f"**no advice**: {next(iter(experiments))}"
    reasons = [
        f"in {len(names)} {reason}"
        if reason == NOT_SEARCHED
        else f"in {len(names)} ({', '.join(names)}) {reason}"
        for reason, names in experiments.items()
    ]
    return f"**no advice**: of {len(fields)} experiments, {'; '.join(reasons)}"


def _cost(fields: Sequence[ExperimentField]) -> str:
    """Return the cost of the cheapest recommended method, or else the median and largest time of a run."""
    if fields[0].recommended:
        cheapest = fields[0].cheapest or fields[0].recommended[0]
        return f"{cheapest.method}: {scaled(cheapest.flops)} FLOPs, {scaled(cheapest.seconds)} s per run"
    seconds = [
        float(x)
        for field in fields
        for case in field.cases
        for record in case.records
        if (x := record.timing.get("train_s")) is not None
    ]
    if not seconds:
        return "–"
    return f"median {median(seconds):.2g} s per run, at most {max(seconds):.0f} s"


def _fails(fields: Sequence[ExperimentField]) -> str:
    """Return the number of methods that are not compared, and the names of unstable and failed ones."""
    unsettled = [(field.experiment, run) for field in fields for run in field.unsettled]
    methods = {(experiment, run.method) for experiment, run in unsettled}
    unstable = [run.method for _, run in unsettled if "is unstable" in run.why]
    failed = [name for field in fields for name in field.failed]
    parts = []
    if methods:
        tried = sum(field.tried for field in fields)
        parts.append(f"not known to have converged: {len(methods)} of {tried} methods")
    if unstable:
        parts.append(f"unstable: {_few(unstable)}")
    if failed:
        parts.append(f"failed runs: {_few(failed)}")
    return "; ".join(parts) or "–"


def _to_decide(likelihood: str, fields: Sequence[ExperimentField]) -> str:
    """Return the records that the experiment closest to advice still needs, and their training time."""
    best = max(fields, key=_closeness)
    missing = max(0, LEAST_DATA - best.sources)
    searched = best.rates != "as printed"
    hours = best.hours * (missing if searched else LEAST_DATA * SEARCHES)
    what = (
        f"{count(missing, 'more data set')} with converged runs"
        if searched
        else f"{LEAST_DATA} data sets with {SEARCHES} pairs of rates each"
    )
    longer = ", longer if runs have not converged" if best.unsettled else ""
    return (
        f"{likelihood}, at the end of training: {what}, in an experiment like {best.experiment}; "
        f"about {_hours(hours)}{longer}"
    )


def _closeness(field: ExperimentField) -> tuple[bool, int]:
    """Return a sort key, larger if closer to advice: rates and convergence, then number of data sets."""
    return field.rates != "as printed" and len(field.methods) > 1, len(_sources(field.cases))


def _row_by_time(field: TimedField) -> AnswerRow:
    targets = ", ".join(f"{target:g}" for target in dict.fromkeys(field.targets.values()))
    answer = field.answer if field.recommended else f"**{field.answer[:9]}**{field.answer[9:]}"
    if len(field.targets) == 1 and not field.recommended:
        answer += f" (on it: {_fastest(field)})"
    late = [
        timed.contestant
        for timed in field.methods
        if any(math.isinf(x) for seconds in timed.seconds.values() for x in seconds)
    ]
    cells = (
        field.likelihood,
        _span([case.n for case in field.cases]),
        _span([size for case in field.cases for size in case.inducing]),
        f"seconds to an NLPD of {targets}",
        answer,
        f"{field.hours * 60:.0f} min per problem, for all methods with their search of rates",
        f"did not reach it in time: {_few(late)}" if late else "–",
    )
    missing = LEAST_DATA - field.sources
    if field.recommended or missing <= 0:
        return AnswerRow(cells)
    plan = "the default plan" if field.plan == "plan" else f"the plan {field.plan}"
    needed = (
        f"{field.likelihood}, seconds to an NLPD of {targets}: {count(missing, 'more problem')} like those "
        f"of {plan}; about {_hours(field.hours * missing)}"
    )
    return AnswerRow(cells, needed)


def _fastest(field: TimedField) -> str:
    """Return the times of the fastest contestants, such as `t-svgp 22.1 s, q-svgp 30 s`."""
    (problem,) = field.targets
    times = [(timed.contestant, timed.typical(problem)) for timed in field.methods]
    texts = [f"{name} {seconds:.3g} s" for name, seconds in times if math.isfinite(seconds)]
    return ", ".join(texts[:MOST_NAMES]) or "no method reached it"


def _field(field: ExperimentField) -> Iterator[str | Table]:
    """Yield the heading, the answer, the comparison and the evidence of an experiment."""
    likelihood = field.cases[0].likelihood
    yield f"### {field.experiment}, {likelihood}"
    yield f"**{field.answer[0].upper()}{field.answer[1:]}.**"
    if len(field.methods) > 1:
        yield _ranking(field)
    if len(field.counted) <= MOST_DATA and len(field.methods) > 1:
        title = METRICS[field.metric].title
        yield (
            f"By how much {field.methods[0].method} is better in {title}, paired by split and start, "
            "with 95 % intervals:"
        )
        yield _differences(field)
    yield "\n".join(_evidence(field))


def _ranking(field: ExperimentField) -> Table:
    header = columns(["method"], ("beaten on", "open on", "average rank", "FLOPs", "seconds"))
    rows = [
        (
            ranked.method,
            f"{len(ranked.beaten)} of {field.sources}",
            str(ranked.undecided),
            f"{ranked.rank:.2f}",
            scaled(ranked.flops),
            scaled(ranked.seconds),
        )
        for ranked in field.methods[:MOST_METHODS]
    ]
    return Table(header, rows)


def _differences(field: ExperimentField) -> Table:
    header = columns(["method"], [case.data for case in field.counted])
    rows = [[ranked.method, *_by_data(field, ranked)] for ranked in field.methods[1:MOST_METHODS]]
    return Table(header, rows)


def _by_data(field: ExperimentField, ranked: Ranked) -> Iterator[str]:
    """Yield the difference and its outcome on each counted data set."""
    effects = {effect.of: effect for effect in ranked.against}
    for case in field.counted:
        effect = effects[case.data]
        chaotic = " (chaotic)" if effect.note.startswith("chaotic") else ""
        yield f"{with_interval(effect)} {effect.outcome}{chaotic}".strip()


def _evidence(field: ExperimentField) -> Iterator[str]:
    """Yield list items on records, rates, data and methods that are not compared."""
    cases = [case.text for case in field.cases]
    shown = cases if len(cases) <= MOST_DATA else [*cases[:2], f"... {len(cases) - 2} more"]
    sets = count(len(_sources(field.cases)), "data set")
    yield f"- evidence: {field.records} records of `{field.experiment}` on {sets}"
    yield f"- rates: {field.rates}"
    yield f"- data: {'; '.join(shown)}"
    if len(field.methods) > MOST_METHODS:
        yield f"- the first {MOST_METHODS} of {len(field.methods)} methods are listed"
    if any(math.isnan(ranked.flops) for ranked in field.methods):
        yield "- –: not counted"
    reasons: dict[str, list[str]] = {}  # by method
    for run in field.unsettled:
        why = run.why.removeprefix(run.method).lstrip(" :")
        reasons.setdefault(run.method, []).append(f"{run.data}: {why}")
    yield from (
        f"- not compared: {method}, on {count(len(whys), 'data set')} ({whys[0]})"
        for method, whys in reasons.items()
    )
    if field.failed:
        yield f"- failed runs: {', '.join(field.failed)}"
    yield from (f"- {note}" for note in field.notes)


def _timed(field: TimedField) -> Iterator[str | Table]:
    """Yield the heading, the answer and the seconds of each contestant to each target."""
    yield f"### svgpbench learn, plan `{field.plan}`, {field.likelihood}"
    yield f"**{field.answer[0].upper()}{field.answer[1:]}.**"
    header = columns(["method"], [f"{x}, to {target:g}" for x, target in field.targets.items()])
    rows = [
        (timed.contestant, *(_seconds(timed.typical(problem)) for problem in field.targets))
        for timed in field.methods
    ]
    yield Table(header, rows)
    yield "Seconds of training, the median over seeds."


def _seconds(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "not within the run"


def _sources(cases: Sequence[Case]) -> set[str]:
    return {case.source for case in cases}


def _span(values: Sequence[int]) -> str:
    """Return the range of values, such as `405–1202`."""
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least}–{most}"


def _few(names: Sequence[str]) -> str:
    """Return the most frequent names and the number of others, as code since some have commas."""
    ordered = [f"`{name}`" for name, _ in Counter(names).most_common()]
    more = f" and {len(ordered) - MOST_NAMES} more" if len(ordered) > MOST_NAMES else ""
    return f"{', '.join(ordered[:MOST_NAMES])}{more}"


def _hours(hours: float) -> str:
    if hours < 0.1:
        return "0.1 core hours or less"
    return f"{hours:.2g} core hours" if hours < 10 else f"{hours:.0f} core hours"
