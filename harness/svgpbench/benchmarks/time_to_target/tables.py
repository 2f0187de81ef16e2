"""Tables of a comparison: seconds to each target beside the fastest peer, and the search."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns
from svgpbench.benchmarks.time_to_target.plan import LearningPlan, TrainingProblem
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES
from svgpbench.environment import OURS
from svgpbench.output.table import MISSING, Column, Table, number
from svgpbench.runs.core_locks import SHARED_CORES

NOT_REACHED = math.inf

DUAL_AND_OTHER = {OURS: ("t-svgp", "q-svgp"), "gpjax": ("dual", "whitened")}
"""Methods of a library whose M-steps hold the dual parameters, and the mean and covariance, fixed."""
CONTESTANT = Column("contestant", wrap=False)


def seconds_to(entry: ContestantRuns, target: float) -> list[float]:
    """Return the seconds of training to a target, one per seed; `NOT_REACHED` if a run did not reach it."""
    evaluations = (record.reached(target) for record in entry.trained)
    return [NOT_REACHED if x is None else x.seconds for x in evaluations]


def iterations_to(entry: ContestantRuns, target: float) -> list[float]:
    """Return the iterations to a target, one per seed; `NOT_REACHED` if a run did not reach it."""
    evaluations = (record.reached(target) for record in entry.trained)
    return [NOT_REACHED if x is None else x.iterations for x in evaluations]


def median(values: Sequence[float]) -> float:
    """Return the median over seeds, `NOT_REACHED` being later than any time and the median of none."""
    return statistics.median(values) if values else NOT_REACHED


def fastest_peer(entries: Sequence[ContestantRuns], target: float) -> float:
    """Return the median seconds of the fastest contestant that is not ours."""
    peers = (x for x in entries if x.contestant.library != OURS)
    return min((median(seconds_to(x, target)) for x in peers), default=NOT_REACHED)


def target_table(
    problem: str, settings: TrainingProblem, entries: Sequence[ContestantRuns]
) -> Table:
    """Return a table of seconds and iterations to each target, one row per trained contestant.

    All runs count.
    """
    header = [CONTESTANT]
    for target in settings.targets:
        header += [
            number(f"s to {target:g} (least–most)"),
            number("iterations"),
            number("fastest peer / this"),
        ]
    rows = []
    for entry in (x for x in entries if x.trained):
        row: list[str | None] = [entry.contestant.title]
        for target in settings.targets:
            seconds, peer = seconds_to(entry, target), fastest_peer(entries, target)
            iterations = median(iterations_to(entry, target))
            text = _seconds(median(seconds), settings.seconds)
            if len(seconds) > 1:
                ends = (_seconds(end(seconds), settings.seconds) for end in (min, max))
                text += f" ({'–'.join(ends)})"
            row += [
                text,
                f"{iterations:.0f}" if math.isfinite(iterations) else None,
                ratio(peer, median(seconds), settings.seconds),
            ]
        rows.append(row)
    title = f"{problem}, to a test NLPD, at most {settings.seconds:g} s of training"
    return Table(header, rows, title)


def saved_table(plan: LearningPlan, entries: Mapping[str, Sequence[ContestantRuns]]) -> Table:
    """Return a table of the iterations to each target, of the dual M-step beside the other of its library.

    The ratio is a median over seeds, with the least and the most. A run that misses the target counts with
    all its iterations, and the ratio is then a bound.
    """
    rows = []
    for problem, runs in entries.items():
        trained = {tuple(entry.contestant): entry for entry in runs if entry.trained}
        for library, (dual, other) in DUAL_AND_OTHER.items():
            pair = [trained.get((library, method)) for method in (dual, other)]
            for target in plan.problems[problem].targets:
                if row := _saved(problem, library, target, *pair):
                    rows.append(row)
    columns = (
        *(Column("problem", wrap=False), Column("library", wrap=False), number("NLPD", "g")),
        *(number("dual M-step, iterations"), number("other"), number("saves (least–most)")),
    )
    return Table(
        columns, rows, "Iterations that the dual M-step saves, each method at its own rates"
    )


def _saved(
    problem: str,
    library: str,
    target: float,
    dual: ContestantRuns | None,
    other: ContestantRuns | None,
) -> list[str | float] | None:
    """Return a row of `saved_table`, or None if a method is missing or the dual one misses the target."""
    if dual is None or other is None:
        return None
    others = {
        x.run.seed: n for x, n in zip(other.trained, iterations_to(other, target), strict=True)
    }
    ends = {x.run.seed: x.last.iterations for x in other.trained if x.last}
    ratios, missed = [], False
    for record, iterations in zip(dual.trained, iterations_to(dual, target), strict=True):
        seed = record.run.seed
        if seed in ends:
            missed |= others[seed] == NOT_REACHED
            # if the dual run misses, `iterations` is infinite and its ratio 0, the worst
            ratios.append(min(others[seed], ends[seed]) / iterations)
    middle = median(iterations_to(dual, target))
    if not ratios or middle == NOT_REACHED:
        return None
    text = f"{'> ' * missed}{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
    of_other = median(list(others.values()))
    shown = "not reached" if of_other == NOT_REACHED else f"{of_other:.0f}"
    return [problem, library, target, f"{middle:.0f}", shown, text]


def end_table(problem: str, settings: TrainingProblem, entries: Sequence[ContestantRuns]) -> Table:
    """Return a table of each contestant's settings, speed, and NLPD and ELBO at the end, as medians.

    NLPD and ELBO are of the runs that finished; times are of all runs.
    """
    header = (
        *(CONTESTANT, Column("mode"), number("γ", "g"), number("Adam", "g")),
        *(number("first call", ".1f", "s"), number("ms an iteration", ".3g")),
        *(number("NLPD", ".4f"), number("ELBO", _elbo), number("ended")),
    )
    rows = [[entry.contestant.title, *_ends(entry)] for entry in entries if entry.trained]
    title = f"{problem}, after {settings.seconds:g} s of training"
    counts = {x.threads for entry in entries for x in entry.trained if x.threads}
    if counts:
        title += f", threads: {', '.join(map(str, sorted(counts)))}"
    return Table(header, rows, title)


def _ends(entry: ContestantRuns) -> list[str | float | None]:
    assert entry.choice is not None
    lasts = [x.last for x in entry.trained if x.last and x.status != "error"]
    first = [x.first_call_s for x in entry.trained if x.first_call_s is not None]
    iteration_ms = [ms for x in entry.trained if (ms := x.ms_an_iteration) is not None]
    return [
        *(entry.choice.mode, entry.choice.rates.e, entry.choice.rates.m),
        median(first) if first else None,
        median(iteration_ms) if iteration_ms else None,
        median([x.nlpd or 0.0 for x in lasts]) if lasts else None,
        median([x.elbo for x in lasts]) if lasts else None,
        f"{len(lasts)} of {len(entry.trained)}",
    ]


def _seconds(value: float, budget: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else f"> {budget:g}"


def ratio(peer: float, this: float, budget: float) -> str:
    """Format the fastest peer's seconds over a contestant's, as a bound if one missed the target."""
    if math.isfinite(this):
        return f"{peer / this:.2f}" if math.isfinite(peer) else f"> {budget / this:.2f}"
    return f"< {peer / budget:.2f}" if math.isfinite(peer) else MISSING


def search_table(
    problem: str, settings: TrainingProblem, entries: Sequence[ContestantRuns]
) -> Table:
    """Return a table of the ELBO per pair of rates in each contestant's search, the best marked."""
    header = [
        *(CONTESTANT, Column("mode")),
        *(number(f"γ {rates.e:g} Adam {rates.m:g}") for rates in settings.grid),
    ]
    rows = []
    for entry in entries:
        for mode in dict.fromkeys(record.mode for record in entry.search if record.mode):
            records = {record.run.rates: record for record in entry.search if record.mode == mode}
            cells = [
                _last_elbo(records[rates]) if rates in records else "" for rates in settings.grid
            ]
            if entry.choice is not None and entry.choice.mode == mode:
                best = settings.grid.index(entry.choice.rates)
                cells[best] = f"*{cells[best]}"
            rows.append([entry.contestant.title, mode, *cells])
    title = f"{problem}, search: ELBO of training rows after {settings.search_s:g} s"
    return Table(header, rows, title)


def _last_elbo(record: TrainingRecord) -> str:
    return _elbo(record.last.elbo) if record.last and record.status != "error" else "failed"


def _elbo(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 1e8 else f"{value:.2e}"


def notes(problem: str, entries: Sequence[ContestantRuns]) -> Iterator[str]:
    """Yield one line per contestant or run that was refused, failed or was disturbed."""
    for entry in entries:
        who = f"{problem}, {entry.contestant.title}"
        if entry.refusal:
            yield f"{who}: refused: {entry.refusal}"
        elif entry.search and entry.choice is None:
            yield f"{who}: no rates of the grid came to the end of the search"
        for record in (*entry.search, *entry.trained):
            if record.status == "error":
                when = "before its first evaluation"
                if last := record.last:
                    when = f"after {last.seconds:.3g} s and {last.iterations} iterations"
                yield f"{record.run.title}: failed {when}: {record.message}"
        lost = max((record.other_cores for record in entry.trained), default=0.0)
        if lost > MAX_OTHER_CORES:
            yield f"{who}: other processes took {lost:.2f} cores while it trained; time it again"
        for note in dict.fromkeys(record.shared_cores for record in entry.trained):
            if note:
                yield f"{who}: {SHARED_CORES}: {note}"
