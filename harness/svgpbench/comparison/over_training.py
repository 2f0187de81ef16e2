"""Two methods over the course of training: iterations saved, and the gain by quarter of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import matplotlib
import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.comparison.comparison import Pairs, title
from svgpbench.errors import UserError
from svgpbench.json_values import json_value
from svgpbench.metrics import loss
from svgpbench.output.figure import check_figure_path, write_figure
from svgpbench.output.palette import line_styles
from svgpbench.output.panel import STYLE, finish, grid, legend
from svgpbench.output.table import Column, Table, number
from svgpbench.results.frames import final_frame
from svgpbench.results.records import Record
from svgpbench.results.unsettled import bound_trace_of
from svgpbench.stats.differences import (
    REPLICATE,
    STARTS,
    Sample,
    TooFewError,
    bootstrap,
    percentile_interval,
    sampled,
)
from svgpbench.stats.effects import Effect, with_interval
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.pairs import is_learned
from svgpbench.stats.ranks import FEWEST

Floats: TypeAlias = npt.NDArray[np.float64]

QUARTERS = 4
PARTS_DRAWN = 10
"""Parts of the budget in a figure."""

MEANING = (
    "saves: the budget over the first iteration with a bound of at least B's last, medians over runs, with a "
    "95 % bootstrap interval over runs; gain: paired difference, positive in favour of A, a mean over the "
    "evaluations of a quarter of the budget; over data sets, sets that a method learns are the units; 4 − 2: "
    "the change from the second to the last quarter"
)

ALL = "mean over data sets"


class SavedIterations(NamedTuple):
    """Iterations of the first method to the bound at which the second one ends, on one data set."""

    data: str
    runs: int
    sooner: int  # runs in which the first method is there before the budget ends
    budget: float  # iterations of the second method, median over runs
    reached: float  # iterations of the first method, median over runs; ∞ if it does not get there
    factor: float  # budget / reached
    low: float | None  # 95 % bootstrap interval of `factor` over runs, from five on
    high: float | None


class GainOverTraining(NamedTuple):
    """Difference in favour of the first method by part of the budget, on one data set or over all."""

    metric: str
    data: str
    parts: tuple[Effect, ...]  # means over the evaluations of each part
    change: Effect  # from the second part to the last
    learned: bool = True  # False if no method learns the data set, which the mean then leaves out


def iterations_saved(pairs: Pairs) -> list[SavedIterations]:
    """Return what the first method saves on each data set; pairs with a failed cell are left out.

    The first method is there at the first evaluation whose bound is at least the last bound of the second.
    Bounds of minibatches are smoothed. The interval resamples runs; runs of one split share its rows.
    """
    rows = []
    for data, members in _by_data(pairs).items():
        of_pairs = np.array([_reached(*pair) for pair in members])
        budgets, reached = of_pairs.T
        # whole pairs are drawn, because their two runs share a split and a start;
        # medians: one run that never gets there is infinite, and would make a mean infinite too
        medians = bootstrap(of_pairs, np.median)
        low, high = map(float, percentile_interval(medians[:, 0] / medians[:, 1]))
        # the bootstrap of fewer runs is too narrow: most of its draws repeat the same few
        ends = (low, high) if len(members) >= STARTS else (None, None)
        budget, median = float(np.median(budgets)), float(np.median(reached))
        sooner = int((reached < budgets).sum())
        runs = len(members)
        rows.append(SavedIterations(data, runs, sooner, budget, median, budget / median, *ends))
    return rows


def _reached(first: Record, second: Record) -> tuple[float, float]:
    """Return the budget of the second run, and the iteration at which the first has its last bound."""
    ours, theirs = bound_trace_of(first), bound_trace_of(second)
    there = np.flatnonzero(ours.bound >= theirs.bound[-1])
    return float(theirs.iterations[-1]), float(ours.iterations[there[0]]) if len(there) else np.inf


def gains(pairs: Pairs, metric: str, parts: int = QUARTERS) -> list[GainOverTraining]:
    """Return the gain on each data set whose traces have the metric, and the mean over data sets.

    A difference is paired by split and start; it is in the unit of `unit_of`, and averaged over the
    evaluations of a part of the shorter run. Intervals are those of final differences: over splits of test
    scores, over starts of training scores. Over data sets, sets are the units, from five on.
    """
    measure, found = MEASURES[metric], []
    means: list[Floats] = []
    for data, members in _by_data(pairs).items():
        traced = [pair for pair in members if all(metric in record.trace for record in pair)]
        if not traced:
            continue
        index = pd.MultiIndex.from_tuples([_replicate(pair[0]) for pair in traced], names=REPLICATE)
        values = pd.DataFrame([_by_part(*pair, metric, parts) for pair in traced], index)
        overlap = float(
            np.mean([r.data["n_test"] / r.data["n_train"] for pair in traced for r in pair])
        )

        def estimate(column: pd.Series[float], of: str = data, overlap: float = overlap) -> Effect:
            try:
                sample = sampled(column, overlap, measure.rows)
            except TooFewError:
                return Effect(of, "", float(column.mean()))
            return Effect(of, "", sample.mean, *sample.interval)

        # from the second part on: the first is the start-up, with gains many times larger;
        # within each run first, since both parts share its split and start
        change = estimate(values.iloc[:, -1] - values.iloc[:, 1])
        learned = is_learned(final_frame([record for pair in traced for record in pair]))
        by_part = tuple(estimate(values[part]) for part in values)
        found.append(GainOverTraining(metric, data, by_part, change, learned))
        if learned:
            # splits first: one with more starts must not weigh more
            means.append(values.groupby(level=["split_seed", "fold"]).mean().mean().to_numpy())
    if len(means) > 1:
        by_set = np.array(means)
        change = _over_sets(by_set[:, -1] - by_set[:, 1])
        found.append(GainOverTraining(metric, ALL, tuple(map(_over_sets, by_set.T)), change))
    return found


def _over_sets(values: Floats) -> Effect:
    mean = float(values.mean())
    if len(values) < FEWEST:
        return Effect(ALL, "", mean)
    # data sets share no rows, so the correction for overlapping training parts is 0
    return Effect(ALL, "", mean, *Sample(values, 0.0, "data sets").interval)


def _by_part(first: Record, second: Record, metric: str, parts: int) -> Floats:
    """Return the difference by part of the shorter run's iterations, positive in favour of the first."""
    measure = MEASURES[metric]
    iterations = [np.array(r.trace["iteration"], dtype=np.float64) for r in (first, second)]
    # to the end of the shorter run: the difference is one after equal numbers of iterations
    edges = np.linspace(0.0, min(x[-1] for x in iterations), parts + 1)
    means = np.full((2, parts), np.nan)
    for side, (record, points) in enumerate(zip((first, second), iterations, strict=True)):
        values = np.array(record.trace[metric], dtype=np.float64)
        for part, (low, high) in enumerate(pairwise(edges)):
            # open on the left: an evaluation at an edge is in one part only
            inside = values[(low < points) & (points <= high)]
            means[side, part] = inside.mean() if len(inside) else np.nan
    scale: Any = 1.0
    if measure.relative:
        scale = 100.0 / np.abs(means[1])
    elif measure.per_datum:
        # the bound is a sum over the rows that train, of which `training.rows` may draw a part
        scale = 100.0 / (first.config.training.rows or first.data["n_train"])
    difference: Floats = scale * (loss(means[1], measure.better) - loss(means[0], measure.better))
    return difference


def unit_of(metric: str) -> str:
    """Return the unit of a gain, in which data sets can be compared."""
    measure = MEASURES[metric]
    if measure.relative:
        return "% of the second's value"
    return "nats per 100 rows" if measure.per_datum else "absolute"


def trend(gain: GainOverTraining) -> str:
    """Say whether a gain grows or fades from the second part to the last, if its interval tells."""
    if not gain.learned:
        return "no method learns it"
    change, start = gain.change, gain.parts[1].value
    if change.low is None or change.high is None or start is None:
        return ""
    if change.low <= 0.0 <= change.high:
        return "no change shown"
    end = gain.parts[-1].value or 0.0
    if start * end < 0.0:
        return "turns"
    return f"{'loss ' * (start < 0.0)}{'grows' if abs(end) > abs(start) else 'fades'}"


def _replicate(record: Record) -> tuple[int, int, int]:
    return record.config.split.seed, record.config.split.fold, record.config.seed


def _by_data(pairs: Pairs) -> dict[str, Pairs]:
    """Return the pairs of each data set, without replicas and without pairs of which a cell failed."""
    by_data: dict[str, Pairs] = {}
    for pair in pairs:
        if all(r.status == "ok" and not r.config.is_replica for r in pair):
            by_data.setdefault(pair[0].config.data.title, []).append(pair)
    return by_data


def saved_table(rows: Sequence[SavedIterations], first: str, second: str) -> Table:
    """Return the iterations saved as a table."""
    columns = (
        *(Column("data set", wrap=False), number("runs"), number("sooner in")),
        *(number(f"{second} ends at", "g"), number(f"{first} is there at", _iterations)),
        number("saves", _factor),
    )
    values = [[r.data, r.runs, r.sooner, r.budget, r.reached, r] for r in rows]
    return Table(columns, values, f"Iterations that {first} saves")


def _factor(row: SavedIterations) -> str:
    if not row.factor:
        return "none"
    interval = f" [{row.low:.2f}, {row.high:.2f}]" if row.low is not None else ""
    return f"{row.factor:.2f} ×{interval}"


def _iterations(value: float) -> str:
    return f"{value:g}" if np.isfinite(value) else "never"


def gain_table(rows: Sequence[GainOverTraining], first: str, second: str) -> Table:
    """Return the gains in one metric as a table."""
    metric = rows[0].metric
    values_only = [number(f"quarter {part}", "+.3g") for part in range(1, QUARTERS)]
    columns = (
        *(Column("data set", wrap=False), *values_only),
        *(number(f"quarter {QUARTERS}", with_interval), number("4 − 2", with_interval)),
        Column("trend"),
    )
    values = [
        [row.data, *(x.value for x in row.parts[:-1]), row.parts[-1], row.change, trend(row)]
        for row in rows
    ]
    heading = f"{title(metric)}: gain of {first} over {second}, {unit_of(metric)}"
    return Table(columns, values, heading)


def to_json(saved: Sequence[SavedIterations], gained: Sequence[GainOverTraining]) -> dict[str, Any]:
    """Return iterations saved and gains for JSON, with numbers in full."""

    def numbers(effect: Effect) -> dict[str, float | None]:
        return {"value": effect.value, "low": effect.low, "high": effect.high}

    content: dict[str, Any] = json_value(
        {
            "iterations_saved": [row._asdict() for row in saved],
            "gains": [
                {
                    **{"metric": row.metric, "data": row.data, "unit": unit_of(row.metric)},
                    "quarters": [numbers(part) for part in row.parts],
                    "change": numbers(row.change),
                    "trend": trend(row),
                }
                for row in gained
            ],
        }
    )
    return content


def draw_gains(pairs: Pairs, metrics: Sequence[str], first: str, second: str, path: Path) -> str:
    """Draw the gain against the share of the budget, a panel per metric, and return the caption.

    Raises `UserError` if the file cannot be written or no trace has a metric.
    """
    check_figure_path(path)
    panels = {m: rows for m in metrics if (rows := gains(pairs, m, PARTS_DRAWN))}
    if not panels:
        raise UserError(f"no trace has {', '.join(metrics)}")
    names = list(dict.fromkeys(row.data for rows in panels.values() for row in rows))
    styles = line_styles(name for name in names if name != ALL)
    # the mean over a part stands in its middle
    share = (np.arange(PARTS_DRAWN) + 0.5) / PARTS_DRAWN
    with matplotlib.rc_context(STYLE):
        figure, axes = grid(1, len(panels), width=2.6, height=2.3)
        for panel, (metric, rows) in zip(axes[0], panels.items(), strict=True):
            later: list[float] = []
            for row in rows:
                values = np.array([part.value for part in row.parts], dtype=np.float64)
                # a run of few evaluations has none in some parts, which would break its line
                known = np.isfinite(values)
                # the first part is the start-up, whose gains may be of another order
                later += list(values[1:][known[1:]])
                if row.data != ALL:
                    colour, dash = styles[row.data]
                    panel.plot(
                        share[known], values[known], color=colour, linestyle=dash, linewidth=0.9
                    )
                    continue
                panel.plot(share[known], values[known], color="0.1", linewidth=2.0)
                if all(part.low is not None for part in row.parts):
                    low, high = ([getattr(x, end) for x in row.parts] for end in ("low", "high"))
                    panel.fill_between(share, low, high, color="0.1", alpha=0.12, linewidth=0)
            panel.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
            panel.set_xlim(0.0, 1.0)
            finish(panel)
            # not 0 where all gains are 0: Matplotlib warns of equal limits and takes others
            room = 0.15 * max(np.ptp([*later, 0.0]), 1e-12)
            panel.set_ylim(min([*later, 0.0]) - room, max([*later, 0.0]) + room)
            panel.set_title(f"{MEASURES[metric].title}, {unit_of(metric)}")
            panel.set_xlabel("share of the budget")
        axes[0][0].set_ylabel(f"gain of {first}\nover {second}")
        legend(figure, styles)
        write_figure(figure, path)
    return (
        f"Gain of {first} over {second} against the share of the budget, means over tenths; above 0 {first} "
        "is better. Thin: data sets; thick: their mean with its 95 % interval over sets, from five on. The "
        "first tenth may leave the panel."
    )


def gains_of(pairs: Pairs, metrics: Sequence[str]) -> Iterator[list[GainOverTraining]]:
    """Yield the gains in each metric that traces have."""
    for metric in metrics:
        if rows := gains(pairs, metric):
            yield rows
