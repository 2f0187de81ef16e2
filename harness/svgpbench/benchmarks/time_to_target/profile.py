"""Performance profile: the share of tasks that a contestant finishes within a factor of the fastest.

A task is a problem, a seed and a share of the possible gain in test NLPD. A run finishes it when its NLPD is
at most f_L + (1 − share)(f_0 − f_L), where f_0 is the NLPD at the start and f_L the lowest NLPD that any run
of the problem and seed has after it.

Source: Dolan and Moré 2002 (the profile); Moré and Wild 2009, Eq. 2.2 (the NLPD to reach).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns
from svgpbench.benchmarks.time_to_target.curves import styles_of
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.benchmarks.time_to_target.tables import CONTESTANT
from svgpbench.output.figure import write_figure
from svgpbench.output.panel import STYLE, finish, legend
from svgpbench.output.table import Table, number

SHARES = (0.9, 0.99)
FACTORS = (1.1, 1.5, 2.0, 4.0)
"""Factors in the table. The shipped plan evaluates a run each time its seconds grow by 10 %: 1.1 is a tie."""


def factors_of(entries: Mapping[str, Sequence[ContestantRuns]]) -> dict[str, list[float]]:
    """Return, for each contestant, its seconds over the fastest contestant's, one per task.

    The factor is infinite if its run did not finish. Problems on which it was not trained do not count.
    """
    factors: dict[str, list[float]] = defaultdict(list)
    for problem_entries in entries.values():
        by_seed: dict[int, dict[str, TrainingRecord]] = defaultdict(dict)
        for entry in problem_entries:
            for record in entry.trained:
                by_seed[record.run.seed][entry.contestant.title] = record
        for runs in by_seed.values():
            for target in targets_of(list(runs.values())):
                ends = {title: record.reached(target) for title, record in runs.items()}
                # never empty: every target is at or above the lowest NLPD of these runs
                fastest = min(end.seconds for end in ends.values() if end is not None)
                for title, end in ends.items():
                    factors[title].append(math.inf if end is None else end.seconds / fastest)
    return dict(factors)


def targets_of(runs: Sequence[TrainingRecord]) -> list[float]:
    """Return the NLPD of each task of one problem and seed; empty if nothing was gained."""
    first = [record.looks[0] for record in runs if record.looks]
    start = max((look.nlpd for look in first if look.nlpd is not None), default=math.nan)
    trained = [look for record in runs for look in record.looks if look.iterations]
    best = min((look.nlpd for look in trained if look.nlpd is not None), default=math.nan)
    return [best + (1.0 - share) * (start - best) for share in SHARES] if best < start else []


def profile_table(entries: Mapping[str, Sequence[ContestantRuns]]) -> Table:
    """Return a table of the profile at `FACTORS`, one row per contestant, the fastest first."""
    factors = factors_of(entries)
    shares = {title: shares_within(values, FACTORS) for title, values in factors.items()}
    rows = [
        [
            title,
            *(f"{100 * share:.0f} %" for share in shares[title]),
            f"{np.isfinite(factors[title]).sum()} of {len(factors[title])}",
        ]
        for title in sorted(shares, key=shares.__getitem__, reverse=True)
    ]
    header = [
        CONTESTANT,
        *(number(f"within {factor:g} ×") for factor in FACTORS),
        number("finished"),
    ]
    levels = " and ".join(f"{100 * share:g} %" for share in SHARES)
    return Table(header, rows, f"tasks: {levels} of the possible gain, of each problem and seed")


def shares_within(factors: Sequence[float], limits: Sequence[float]) -> list[float]:
    """Return, for each limit, the share of `factors` that are at most the limit."""
    return [float(np.mean(np.asarray(factors) <= limit)) for limit in limits]


def draw_profile(entries: Mapping[str, Sequence[ContestantRuns]], out: Path) -> None:
    """Draw the profile, one step curve per contestant. Raises `UserError` if `out` cannot be written."""
    factors, styles = factors_of(entries), styles_of(entries)
    finished = {title: sorted(filter(math.isfinite, values)) for title, values in factors.items()}
    largest = max((values[-1] for values in finished.values() if values), default=1.0)
    with matplotlib.rc_context(STYLE):
        figure = Figure((4.6, 3.0), layout="constrained")
        ax = figure.subplots()
        for title, values in factors.items():
            x, style = [1.0, *finished[title], 1.05 * largest], styles[title]
            y = shares_within(values, x)
            ax.step(x, y, where="post", color=style.colour, linestyle=style.dash)
        ax.set_ylim(0.0, 1.02)
        ax.set_xlabel("seconds, as a multiple of the fastest contestant's")
        ax.set_ylabel("share of tasks finished")
        finish(ax)
        legend(figure, {title: styles[title] for title in factors})
        write_figure(figure, out)
