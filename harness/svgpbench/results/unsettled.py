"""Runs whose bound still moved at their end, which tables, figures and commands must not hide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from svgpbench.results.records import Record
from svgpbench.stats.convergence import BoundTrace, bound_trace
from svgpbench.stats.measures import MEASURES

MOST_NAMED = 5
"""Most methods that a note names."""

AT_THE_END = "in the last quarter of the run"

LONGER = "train longer, lower m_rate, or use the optimiser l-bfgs (full batch)"
"""Advice on runs whose bound still rose."""

LOWER = "lower e_rate or m_rate"
"""Advice on runs whose bound fell."""

GUARD = ', or set steps = "guarded"'
"""What else there is to do about them, if their steps were not guarded."""


def advice(moves: Iterable[float], *, guarded: bool) -> str:
    """Return what to do about bounds that moved: positive moves are rises, negative ones are falls.

    `guarded` is True if all steps were guarded.
    """
    moves, lower = list(moves), LOWER if guarded else LOWER + GUARD
    rises = [LONGER] if any(move > 0 for move in moves) else []
    falls = [lower] if any(move < 0 for move in moves) else []
    if rises and falls:
        return f"where it rose, {LONGER}; where it fell, {lower}"
    return "".join(rises + falls)


def rows_of_bound(record: Record) -> int:
    """Return the number of rows that the bound of a record covers, 0 if it is not known."""
    rows = record.data.get("n_train")
    return record.config.training.rows or (rows if isinstance(rows, int) else 0)


def bound_trace_of(record: Record) -> BoundTrace:
    """Return the bound of a record, smoothed if it is of minibatches, with its region."""
    covered = rows_of_bound(record)
    batches = record.config.training.uses_minibatches(covered)
    trace = bound_trace(record.trace.get("iteration", ()), record.trace.get("elbo", ()), batches)
    return trace._replace(region=MEASURES["elbo"].region_at(0.0, covered))


def unsettled(record: Record) -> str:
    """Return how the bound of an `ok` run moved in its last quarter; empty if it had settled."""
    move = bound_trace_of(record).unsettled if record.status == "ok" else ""
    return move and f"the bound {move} {AT_THE_END}"


def unsettled_note(records: Sequence[Record]) -> str:
    """Return one note on the methods whose bound still moved at the end of a run; empty if none did.

    The methods come in the order of their largest move, measured in regions of practical equivalence.
    Perturbed replicas are left out.
    """
    moves: dict[tuple[str, str], list[BoundTrace]] = defaultdict(list)
    runs: Counter[tuple[str, str]] = Counter()
    for record in records:
        if record.config.is_replica or record.status != "ok":
            continue
        key = (record.config.method.title, record.config.data.title)
        runs[key] += 1
        trace = bound_trace_of(record)
        if trace.move:
            moves[key].append(trace)
    if not moves:
        return ""
    largest = {key: max(traces, key=_regions) for key, traces in moves.items()}
    order = sorted(largest, key=lambda key: -_regions(largest[key]))
    named = [
        f"{method} on {data} ({largest[method, data].unsettled}; {len(moves[method, data])} of "
        f"{runs[method, data]} runs)"
        for method, data in order[:MOST_NAMED]
    ]
    if len(order) > MOST_NAMED:
        named.append(f"and {len(order) - MOST_NAMED} more")
    guarded = all(record.config.training.steps == "guarded" for record in records)
    remedy = advice((largest[key].move for key in order), guarded=guarded)
    return f"NOT SETTLED, the bound still moved {AT_THE_END}: {', '.join(named)}; {remedy}"


def _regions(trace: BoundTrace) -> float:
    """Return by how many regions the bound moved."""
    # the region is 0 if the number of rows is not recorded
    return abs(trace.move) / max(trace.region, 1e-300)
