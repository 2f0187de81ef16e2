"""Performance profile: the share of tasks that a contestant finishes within a factor of the fastest.

A task is a problem, a seed and a share of the possible gain in test NLPD. A run finishes it when its NLPD is
at most f_L + (1 − share)(f_0 − f_L), where f_0 is the NLPD at the start and f_L the lowest that any run of
the problem and seed reached.

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
from svgpbench.benchmarks.time_to_target.tables import WHO
from svgpbench.output.figure import write_figure
from svgpbench.output.panel import STYLE, finish, legend
from svgpbench.output.table import MISSING, Table, number

SHARES = (0.9, 0.99)
FACTORS = (1.1, 1.5, 2.0, 4.0)
"""Factors in the table. Runs are evaluated every 10 %, so that 1.1 is a tie."""


def factors_of(entries: Mapping[str, Sequence[ContestantRuns]]) -> dict[str, list[float]]:
    """Return, for each contestant, its seconds over the fastest contestant's, one per task.

    The factor is infinite if its run did not finish. Problems that it cannot train on have no task of its.
    """
    factors: dict[str, list[float]] = defaultdict(list)
    for of_problem in entries.values():
        by_seed: dict[int, dict[str, TrainingRecord]] = defaultdict(dict)
        for entry in of_problem:
            for record in entry.trained:
                by_seed[record.run.seed][entry.contestant.title] = record
        for runs in by_seed.values():
            for target in targets_of(list(runs.values())):
                ends = {title: record.reached(target) for title, record in runs.items()}
                fastest = min(end.seconds for end in ends.values() if end is not None)
                for title, end in ends.items():
                    factors[title].append(math.inf if end is None else end.seconds / fastest)
    return dict(factors)


def targets_of(runs: Sequence[TrainingRecord]) -> list[float]:
    """Return the NLPD of each task of one problem and seed; empty if nothing was gained."""
    reached = [[x.nlpd for x in record.looks if x.nlpd is not None] for record in runs]
    start = max((nlpds[0] for nlpds in reached if nlpds), default=math.nan)
    best = min((min(nlpds) for nlpds in reached if nlpds), default=math.nan)
    return [best + (1.0 - share) * (start - best) for share in SHARES] if best < start else []


def profile_table(entries: Mapping[str, Sequence[ContestantRuns]]) -> Table:
    """Return a table of the profile at `FACTORS`, the contestant with most of the fastest runs first."""
    factors = factors_of(entries)
    shares = {title: [_within(of, factor) for factor in FACTORS] for title, of in factors.items()}
    rows = [
        [title, *(f"{100 * x:.0f} %" for x in shares[title]), _finished(factors[title])]
        for title in sorted(shares, key=shares.__getitem__, reverse=True)
    ]
    header = [WHO, *(number(f"within {factor:g} ×") for factor in FACTORS), number("finished")]
    levels = " and ".join(f"{100 * share:g} %" for share in SHARES)
    return Table(header, rows, f"tasks: {levels} of the possible gain, of each problem and seed")


def _within(factors: Sequence[float], factor: float) -> float:
    return float(np.mean(np.asarray(factors) <= factor))


def _finished(factors: Sequence[float]) -> str:
    return f"{np.isfinite(factors).sum()} of {len(factors)}" if factors else MISSING


def draw_profile(entries: Mapping[str, Sequence[ContestantRuns]], out: Path) -> None:
    """Draw the profile, one step curve per contestant. Raises `UserError` if `out` cannot be written."""
    factors, styles = factors_of(entries), styles_of(entries)
    most = max((x for of in factors.values() for x in of if math.isfinite(x)), default=1.0)
    with matplotlib.rc_context(STYLE):
        figure = Figure((4.6, 3.0), layout="constrained")
        ax = figure.subplots()
        for title, of in factors.items():
            x = [1.0, *sorted(y for y in of if math.isfinite(y)), 1.05 * most]
            style = styles[title]
            shares = [_within(of, at) for at in x]
            ax.step(x, shares, where="post", color=style.colour, linestyle=style.dash)
        ax.set_ylim(0.0, 1.02)
        ax.set_xlabel("seconds, as a multiple of the fastest contestant's")
        ax.set_ylabel("share of tasks finished")
        finish(ax)
        legend(figure, {title: styles[title] for title in factors})
        write_figure(figure, out)
