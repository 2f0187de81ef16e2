"""Times of one iteration of every entrant on every problem, and the budgets that follow from them.

A time is measured by training itself: the cell of a run, with few iterations. The difference of training
time between two of its evaluations is divided by the iterations between them, so that neither compilation
nor evaluation is a part of it. Entrants take turns in rounds; each has a process of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from svgpbench.atomic import write_whole
from svgpbench.config import CellConfig, EvaluationPlan, RatePair
from svgpbench.experiments.cell import identify
from svgpbench.results.records import Record
from svgpbench.results.store import record_of
from svgpbench.suite.cells import cell_of, damage_is_told, iterations_table, read_measured
from svgpbench.suite.schema import SHIPPED_FILES, Entrant, Suite, SuiteFiles, SuiteProblem

Milliseconds: TypeAlias = Mapping[tuple[str, str], float]
"""Time of an iteration by titles of problem and entrant."""
TIMED_ITERATIONS = 150
"""Iterations of a timed run; the first evaluations, whose times have compilation in them, do not count."""
EVALUATIONS = 4
"""Evaluations of a timed run, the last two of which are after a tenth of the iterations and after all."""
SAFE_RATES = RatePair(1e-3, 1e-3)
"""Rates of a timed run, small enough not to fail; no time depends on them."""
ROUNDS = 3
ROUNDS_OF_A_PAIR = 5


def timed_cell(
    suite: Suite, problem: SuiteProblem, entrant: Entrant, round_number: int
) -> CellConfig:
    """Return the cell that times an iteration of an entrant on a problem, in a round."""
    rates = None if entrant.reference else SAFE_RATES
    budgets = {(problem.title, entrant.label): TIMED_ITERATIONS}
    cell = cell_of(suite, problem, entrant, "run", rates, 0, budgets)
    plan = EvaluationPlan(count=EVALUATIONS, train_rows=100, test_rows=100)
    training = cell.training.model_copy(update={"evaluation": plan, "cool_down": None})
    return cell.model_copy(
        update={
            "experiment": f"{suite.experiment}-step-times",
            "training": training,
            # a seed for each round, or the record of the first would stand for all
            "seed": round_number,
        }
    )


def milliseconds(record: Record) -> float | None:
    """Return the time of an iteration in a record of `timed_cell`; None if the run failed."""
    seconds, iterations = (record.trace.get(key) or [] for key in ("seconds", "iteration"))
    if record.status != "ok" or len(seconds) < 2:
        return None
    (start, end), (first, last) = seconds[-2:], iterations[-2:]
    if None in (start, end, first, last):
        return None
    return 1e3 * (float(end or 0) - float(start or 0)) / (float(last or 0) - float(first or 0))


def measured(
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    run: Callable[[list[CellConfig], Path], bool],
) -> pd.DataFrame:
    """Time all entrants on the problems where they take part; return what `step_times` returns.

    `run` runs cells in one process, writes their records into a folder, and returns False if it was
    interrupted. The first round also compiles, and stays in the cache of compiled programs.

    Raises:
        KeyboardInterrupt: `run` was interrupted; times of a part are of no use.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        # in rounds: a slow phase of the machine does not fall on one entrant alone
        for round_number in range(ROUNDS):
            for entrant in entrants:
                turns = [(x, entrant) for x in problems if suite.takes_part(entrant, x)]
                times = _timed(suite, turns, round_number, Path(folder), run)
                rows += [(*titles, ms) for titles, ms in times.items()]
    return step_times(rows)


def ratios(
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrant: Entrant,
    reference: Entrant,
    run: Callable[[list[CellConfig], Path], bool],
    on_round: Callable[[int], None] = lambda number: None,
) -> pd.DataFrame:
    """Time an entrant beside another, and return by problem how many times as long its iteration takes.

    The two take turns on each problem, in one process, and a ratio is of neighbours: what else the machine
    does falls on both. Columns are `ratio`, the median of `ROUNDS_OF_A_PAIR` rounds, and their quartiles
    `low` and `high`; a problem where either fails has no row. `run` and errors are those of `measured`.
    """
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(ROUNDS_OF_A_PAIR):
            on_round(round_number + 1)
            # each is the first of the two in every other round
            pair = (entrant, reference)[:: 1 if round_number % 2 else -1]
            turns = [(problem, x) for problem in problems for x in pair]
            times = _timed(suite, turns, round_number, Path(folder), run)
            for title in (problem.title for problem in problems):
                own, other = (times.get((title, x.label)) for x in (entrant, reference))
                if own is not None and other is not None:
                    found.setdefault(title, []).append(own / other)
    rows = {title: np.quantile(x, [0.5, 0.25, 0.75]) for title, x in found.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["ratio", "low", "high"])


def _timed(
    suite: Suite,
    turns: Sequence[tuple[SuiteProblem, Entrant]],
    round_number: int,
    folder: Path,
    run: Callable[[list[CellConfig], Path], bool],
) -> dict[tuple[str, str], float]:
    """Time entrants on problems in this order, in one process; a run that fails has no time."""
    cells = [timed_cell(suite, *turn, round_number) for turn in turns]
    if not run(cells, folder):
        raise KeyboardInterrupt
    times = {}
    for (problem, entrant), cell in zip(turns, cells, strict=True):
        identity = identify(cell)
        record = record_of(folder, identity.config, identity.cell_id)
        if record is not None and (ms := milliseconds(record)) is not None:
            times[problem.title, entrant.label] = ms
    return times


def step_times(times: Iterable[tuple[str, str, float]]) -> pd.DataFrame:
    """Return one row per problem and entrant from (problem, entrant, ms) of each round.

    Columns are `problem`, `entrant`, `ms`, the median of the rounds, and `least` and `most`.
    """
    frame = pd.DataFrame(times, columns=["problem", "entrant", "ms"])
    grouped = frame.groupby(["problem", "entrant"], sort=False)["ms"]
    # the median: one round that another process disturbed does not count
    return grouped.agg(ms="median", least="min", most="max").reset_index()


def iterations_of(suite: Suite, times: pd.DataFrame) -> pd.DataFrame:
    """Return the iterations that fit into each problem's seconds [problem × entrant], two digits each."""
    seconds = {problem.title: suite.size_of(problem).seconds for problem in suite.problems}
    counts = times["problem"].map(seconds) * 1e3 / times["ms"]
    table = times.assign(count=[two_digits(x) for x in counts])
    wide = table.pivot(index="problem", columns="entrant", values="count").astype("Int64")
    return _in_order(suite, wide)


def _in_order(suite: Suite, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table [problem × entrant] in the order of the suite's file."""
    labels = [x.label for x in suite.entrants if x.label in table.columns]
    titles = [x.title for x in suite.problems if x.title in table.index]
    return table.loc[titles, labels]


def write_times(suite: Suite, times: pd.DataFrame, files: SuiteFiles) -> None:
    """Write the times of a machine, and iterations where the suite has none yet.

    Times of problems and entrants that were not measured now stay. So do all iterations that are there: they
    are a part of the suite, and its records have them.
    """
    table = iterations_of(suite, times)
    if files.step_times.exists():
        times = pd.concat([read_measured(files.step_times), times])
        times = times.drop_duplicates(["problem", "entrant"], keep="last")
    write_whole(files.step_times, times.to_csv(index=False, float_format="%.4g").encode())
    if files.iterations.exists():
        table = _in_order(suite, iterations_table(files.iterations).combine_first(table))
    write_whole(files.iterations, table.to_csv().encode())


def two_digits(x: float) -> int:
    """Round to two significant digits: a budget is not known more exactly."""
    # the unit is at least 1, as iterations are whole
    unit = 10.0 ** max(np.floor(np.log10(x)) - 1.0, 0.0)
    return max(1, int(round(x / unit) * unit))


def read_step_times(path: Path = SHIPPED_FILES.step_times) -> dict[tuple[str, str], float]:
    """Read the median time of an iteration in milliseconds, by titles of problem and entrant.

    Empty if there is no file. Raises `UserError` for a damaged file.
    """
    if not path.exists():
        return {}
    table = read_measured(path)
    with damage_is_told(path):
        return {
            (str(problem), str(entrant)): float(ms)
            for problem, entrant, ms in table[["problem", "entrant", "ms"]].itertuples(index=False)
        }
