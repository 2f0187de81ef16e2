"""Tables of a comparison: seconds to each target beside the fastest peer, and the search."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from rich.table import Table

from svgpbench.benchmarks.time_to_target.comparison import Entry
from svgpbench.benchmarks.time_to_target.plan import OURS, Race
from svgpbench.benchmarks.time_to_target.records import DIED, Record
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES

NEVER = math.inf
NOTHING = "–"


def seconds_to(entry: Entry, target: float) -> list[float]:
    """Return the seconds of training to a target, one per seed; `NEVER` if a run did not reach it."""
    found = (record.reached(target) for record in entry.trained)
    return [NEVER if look is None else look.seconds for look in found]


def iterations_to(entry: Entry, target: float) -> list[float]:
    """Return the iterations to a target, one per seed; `NEVER` if a run did not reach it."""
    found = (record.reached(target) for record in entry.trained)
    return [NEVER if look is None else look.iterations for look in found]


def median(values: Sequence[float]) -> float:
    """Return the median over seeds, `NEVER` being later than any time; `NEVER` if there are none."""
    return statistics.median(values) if values else NEVER


def fastest_peer(entries: Sequence[Entry], target: float) -> float:
    """Return the median seconds of the fastest contestant that is not ours."""
    theirs = (x for x in entries if x.contestant.library != OURS)
    return min((median(seconds_to(x, target)) for x in theirs), default=NEVER)


def target_table(problem: str, race: Race, entries: Sequence[Entry]) -> Table:
    """Return a table of seconds and iterations to each target, one row per trained contestant.

    All runs count.
    """
    title = f"{problem}, to a test NLPD, at most {race.seconds:g} s of training"
    found = Table(title=title, title_justify="left")
    found.add_column("contestant", no_wrap=True)
    for target in race.targets:
        found.add_column(f"s to {target:g} (least–most)", no_wrap=True)
        found.add_column("iterations")
        found.add_column("fastest peer / this")
    for entry in (x for x in entries if x.trained):
        cells = [entry.contestant.title]
        for target in race.targets:
            seconds, peer = seconds_to(entry, target), fastest_peer(entries, target)
            cells += [
                _with_spread(seconds, race.seconds),
                _count(median(iterations_to(entry, target))),
                ratio(peer, median(seconds), race.seconds),
            ]
        found.add_row(*cells)
    return found


def end_table(problem: str, race: Race, entries: Sequence[Entry]) -> Table:
    """Return a table of each contestant's settings, speed, and NLPD and ELBO at the end, as medians.

    NLPD and ELBO are of the runs that finished; times are of all runs.
    """
    title = f"{problem}, after {race.seconds:g} s of training"
    found = Table(title=title, title_justify="left")
    found.add_column("contestant", no_wrap=True)
    for head in ("mode", "γ", "Adam", "first call, s", "ms an iteration", "NLPD", "ELBO", "ended"):
        found.add_column(head)
    for entry in (x for x in entries if x.trained):
        found.add_row(entry.contestant.title, *_ends(entry))
    return found


def _ends(entry: Entry) -> list[str]:
    assert entry.choice is not None
    lasts = [x.last for x in entry.trained if x.last and x.end != DIED]
    first = [x.first_call_s for x in entry.trained if x.first_call_s is not None]
    each = [ms for x in entry.trained if (ms := x.ms_an_iteration) is not None]
    return [
        entry.choice.mode,
        f"{entry.choice.rates.e:g}",
        f"{entry.choice.rates.m:g}",
        f"{median(first):.1f}" if first else NOTHING,
        f"{median(each):.3g}" if each else NOTHING,
        f"{median([x.nlpd or 0.0 for x in lasts]):.4f}" if lasts else NOTHING,
        f"{median([x.elbo for x in lasts]):.0f}" if lasts else NOTHING,
        f"{len(lasts)} of {len(entry.trained)}",
    ]


def _with_spread(seconds: Sequence[float], budget: float) -> str:
    if len(seconds) == 1:
        return _seconds(seconds[0], budget)
    ends = f"{_seconds(min(seconds), budget)}–{_seconds(max(seconds), budget)}"
    return f"{_seconds(median(seconds), budget)} ({ends})"


def _seconds(value: float, budget: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else f"> {budget:g}"


def _count(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else NOTHING


def ratio(peer: float, this: float, budget: float) -> str:
    """Format the fastest peer's seconds over a contestant's, as a bound if one missed the target."""
    if math.isfinite(this):
        return f"{peer / this:.2f}" if math.isfinite(peer) else f"> {budget / this:.2f}"
    return f"< {peer / budget:.2f}" if math.isfinite(peer) else NOTHING


def search_table(problem: str, race: Race, entries: Sequence[Entry]) -> Table:
    """Return a table of the ELBO per pair of rates in each contestant's search, the best marked."""
    title = f"{problem}, search: ELBO of training rows after {race.search_s:g} s"
    found = Table(title=title, title_justify="left")
    found.add_column("contestant", no_wrap=True)
    found.add_column("mode")
    for rates in race.grid:
        found.add_column(f"γ {rates.e:g}\nAdam {rates.m:g}")
    for entry in entries:
        for mode in dict.fromkeys(record.mode for record in entry.search if record.mode):
            at = {record.run.rates: record for record in entry.search if record.mode == mode}
            cells = [_ended(at[rates]) if rates in at else "" for rates in race.grid]
            if entry.choice is not None and entry.choice.mode == mode:
                best = race.grid.index(entry.choice.rates)
                cells[best] = f"*{cells[best]}"
            found.add_row(entry.contestant.title, mode, *cells)
    return found


def _ended(record: Record) -> str:
    return f"{record.last.elbo:.0f}" if record.last and record.end != DIED else "died"


def notes(problem: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Yield one line per contestant or run that was refused, failed or was disturbed."""
    for entry in entries:
        who = f"{problem}, {entry.contestant.title}"
        if entry.refusal:
            yield f"{who}: refused: {entry.refusal}"
        elif entry.search and entry.choice is None:
            yield f"{who}: no rates of the grid came to the end of the search"
        for record in (*entry.search, *entry.trained):
            if record.end == DIED:
                at = record.last
                when = (
                    f"after {at.seconds:.3g} s and {at.iterations} iterations" if at else "at once"
                )
                yield f"{record.run.title}: died {when}: {record.message}"
        lost = max((record.other_cores for record in entry.trained), default=0.0)
        if lost > MAX_OTHER_CORES:
            yield f"{who}: other processes took {lost:.2f} cores while it trained; time it again"
