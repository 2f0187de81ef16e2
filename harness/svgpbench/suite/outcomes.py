"""Outcomes of the protocol as two tables, `runs` and `trials`, from which everything on the board follows.

The shipped tables are those of this version's runs. Gains are relative to the best NLPD in them, so that a
new entrant changes no other entrant's numbers; its own share may exceed 1.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.atomic import write_whole
from svgpbench.errors import UserError
from svgpbench.results.records import Record
from svgpbench.suite.cells import STAGES, Budgets, SuiteRun, read_iterations
from svgpbench.suite.protocol import FindRecord, RecordFinder, score, stages
from svgpbench.suite.schema import SHIPPED_FILES, Entrant, Suite, SuiteFiles, SuiteProblem
from svgpbench.suite.step_times import Milliseconds, read_step_times

Floats = npt.NDArray[np.float64]
SHIPPED: Final = Path(__file__).with_name("outcomes")
LEVELS: Final = {"seconds_90": 0.9, "seconds_99": 0.99}
"""Columns of times, and the shares of the possible gain that are reached at them."""
TENTH: Final = 0.1
"""Share of the budget at which an early score is read off."""
DIGITS: Final = 6
"""Significant digits in the tables: a smaller difference, such as between two machines, decides no rank."""
SCORES: Final = ("crps", "coverage", "ece", "error_rate", "rmse")
"""Metrics of the last evaluation that `runs` keeps, where the task has them."""
TRIALS: Final = ("problem", "entrant", "stage", "e_rate", "m_rate", "status", "nlpd")
RUNS: Final = (
    *("problem", "entrant", "fold", "e_rate", "m_rate", "status"),
    *("constant_nlpd", "constant_elbo", "best_nlpd", "rows", "ms"),
    *("nlpd", "elbo", "nlpd_tenth", "elbo_tenth", "drop", *LEVELS, *SCORES),
)


class Outcomes(NamedTuple):
    """Results of the protocol.

    `runs` has one row per problem, entrant and fold: `e_rate`, `m_rate`, `status`, `nlpd` and `elbo` at the
    end, `nlpd_tenth` and `elbo_tenth` at a tenth of the budget, `drop`, the largest fall of the bound
    between evaluations in nats per row, `seconds_90` and `seconds_99`, the scores of `SCORES`,
    `constant_nlpd` and `constant_elbo` of the best prediction that ignores the inputs, `best_nlpd` of the
    problem and fold, `rows` that train, and `ms` of an iteration.

    `trials` has one row per problem, entrant and trial: `stage` (1 or 2), `e_rate`, `m_rate`, `status` and
    `nlpd`.
    """

    runs: pd.DataFrame
    trials: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write both tables as compressed CSV."""
        for name, table in self._asdict().items():
            text = table.to_csv(index=False, float_format=f"%.{DIGITS}g")
            # xz, unlike gzip, stores no time: equal tables are equal files
            write_whole(folder / f"{name}.csv.xz", lzma.compress(text.encode()))

    def finished_by_all(self, suite: Suite) -> Outcomes:
        """Return the outcomes of the problems that every entrant of the suite has finished.

        A rank among some of the entrants is no rank on the board.
        """
        ran = self.runs.groupby("problem")["entrant"].agg(set).to_dict()
        everybody = {
            problem.title: {x.label for x in suite.entrants if suite.takes_part(x, problem)}
            for problem in suite.problems
        }
        whole = [title for title, labels in everybody.items() if ran.get(title) == labels]
        return Outcomes(*(table[table["problem"].isin(whole)] for table in self))

    @classmethod
    def read(cls, folder: Path = SHIPPED) -> Outcomes:
        """Read both tables. Raises `UserError` if they are not there."""
        if not folder.is_dir():
            raise UserError("this version ships no board; --results DIR shows that of records")
        return cls(*(pd.read_csv(folder / f"{name}.csv.xz") for name in cls._fields))


def read_outcomes(
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    results: Path,
    files: SuiteFiles = SHIPPED_FILES,
) -> Outcomes:
    """Return the outcomes of the records in a folder, with the step times of the reference machine."""
    find_record, budgets = RecordFinder(results, any_status=True), read_iterations(files.iterations)
    done = finished(suite, budgets, problems, entrants, find_record)
    return outcomes(suite, done, read_step_times(files.step_times))


class FinishedProtocol(NamedTuple):
    """All records of an entrant on a problem that has finished the protocol."""

    problem: SuiteProblem
    entrant: Entrant
    trials: list[tuple[SuiteRun, Record]]
    runs: list[tuple[SuiteRun, Record]]


def finished(
    suite: Suite,
    budgets: Budgets,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    find_record: FindRecord,
) -> Iterator[FinishedProtocol]:
    """Yield each entrant and problem whose runs are all there, or whose trials all failed."""
    for problem in problems:
        for entrant in entrants:
            has_budget = (problem.title, entrant.label) in budgets  # else nothing has run
            if not (has_budget and suite.takes_part(entrant, problem)):
                continue
            *searches, (stage, tasks) = stages(suite, budgets, problem, entrant, find_record)
            runs = [(task, record) for task in tasks if (record := find_record(task)) is not None]
            if stage == "run" and len(runs) == len(tasks):
                tried = (task for _, trials in searches for task in trials)
                trials = [
                    (task, record) for task in tried if (record := find_record(task)) is not None
                ]
                yield FinishedProtocol(problem, entrant, trials, runs)


def outcomes(
    suite: Suite,
    done: Iterable[FinishedProtocol],
    ms: Milliseconds,
    best: pd.DataFrame | None = None,
) -> Outcomes:
    """Return both tables.

    Args:
        suite: the suite.
        done: entrants on problems that have finished.
        ms: time of an iteration.
        best: `runs` of the version whose best NLPD counts; None: that of `done`.
    """
    done = list(done)
    trials = [
        {
            "problem": problem.title,
            "entrant": entrant.label,
            "stage": STAGES.index(task.stage) + 1,
            "e_rate": task.rates.e if task.rates else np.nan,
            "m_rate": task.rates.m if task.rates else np.nan,
            "status": record.status,
            "nlpd": record.metrics.get("nlpd") if record.status == "ok" else None,
        }
        for problem, entrant, tried, _ in done
        for task, record in tried
    ]
    known: dict[tuple[str, int], float] = {}
    if best is not None:
        known = dict(best.groupby(["problem", "fold"])["best_nlpd"].first())
    else:
        for problem, _, _, runs in done:
            for task, record in runs:
                key = problem.title, task.fold
                known[key] = min(known.get(key, np.inf), score(record))
    rows = [row for one in done for row in _rows(suite, one, ms, known)]
    return Outcomes(_table(rows, RUNS), _table(trials, TRIALS))


def _table(rows: list[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Return a table with all columns, also without rows; a missing number is NaN."""
    texts = {"problem", "entrant", "status"}
    types = {x: np.int64 if x in ("fold", "stage") else np.float64 for x in {*columns} - texts}
    rounded = [
        {k: float(f"{v:.{DIGITS}g}") if isinstance(v, float) else v for k, v in row.items()}
        for row in rows
    ]
    return pd.DataFrame(rounded, columns=list(columns)).astype(types)


def _rows(
    suite: Suite, one: FinishedProtocol, ms: Milliseconds, known: Mapping[tuple[str, int], float]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `runs` of an entrant on a problem; one per fold, also if every trial failed."""
    problem, entrant, _, runs = one
    step = ms.get((problem.title, entrant.label), np.nan)
    common: dict[str, Any] = {"problem": problem.title, "entrant": entrant.label}
    if not runs:
        for fold in range(suite.protocol.folds_run):
            best = known.get((problem.title, fold), np.nan)
            row = common | {"fold": fold, "status": "no trial finished", "ms": step}
            yield row | {"best_nlpd": best}  # others' runs decide whether the problem has a vote
    for task, record in runs:
        best = known.get((problem.title, task.fold), np.nan)
        constant = record.data.get("constant") or {}
        row = common | {
            "fold": task.fold,
            "e_rate": task.rates.e if task.rates else np.nan,
            "m_rate": task.rates.m if task.rates else np.nan,
            "status": record.status,
            "constant_nlpd": constant.get("nlpd"),
            "constant_elbo": constant.get("elbo"),
            "best_nlpd": best,
            "rows": record.data.get("n_train"),
            "ms": step,
        }
        if record.status == "ok":
            row |= _measures(record, step / 1e3, best, constant)
        yield row


def _measures(
    record: Record, seconds_a_step: float, best: float, constant: Mapping[str, float]
) -> dict[str, Any]:
    """Return what the trace and the last evaluation of a run say."""
    iteration, nlpd, elbo = (
        np.array([np.nan if x is None else x for x in record.trace[name]], dtype=np.float64)
        for name in ("iteration", "nlpd", "elbo")
    )
    # the last evaluation within a tenth of the budget; a later one would credit more time
    early = int(np.searchsorted(iteration, TENTH * iteration[-1], side="right")) - 1
    rows = float(record.data["n_train"])
    gain = float(constant["nlpd"]) - best
    targets = {name: float(constant["nlpd"]) - level * gain for name, level in LEVELS.items()}
    return {
        "nlpd": nlpd[-1],
        "elbo": elbo[-1],
        "nlpd_tenth": nlpd[max(early, 0)],
        "elbo_tenth": elbo[max(early, 0)],
        # initial: a run of one evaluation has no difference
        "drop": float(np.max(-np.diff(elbo), initial=0.0)) / rows,
        **{
            name: reached(iteration * seconds_a_step, nlpd, target)
            for name, target in targets.items()
        },
        **{name: record.metrics.get(name) for name in SCORES},
    }


def reached(seconds: Floats, nlpd: Floats, target: float) -> float:
    """Return the time from which on a run's NLPD is at most `target`, or infinity.

    Between two evaluations the NLPD is taken to be linear in log time. A run that reaches the target and
    leaves it again has not reached it until it comes back for good.

    Args:
        seconds: times of the evaluations [k], ascending.
        nlpd: NLPD there [k].
        target: the NLPD to reach.
    """
    # not `>`, which is False for NaN: a NaN is not at the target
    above = np.flatnonzero(~(nlpd <= target))
    if not len(above):
        return float(seconds[0])
    last = int(above[-1])
    if last == len(nlpd) - 1:
        return float(np.inf)
    # nothing to interpolate from: the first evaluation that is at the target counts
    if not np.isfinite(nlpd[last]):
        return float(seconds[last + 1])
    # evaluations are equally spaced in log time
    share = (nlpd[last] - target) / (nlpd[last] - nlpd[last + 1])
    return float(seconds[last] * (seconds[last + 1] / seconds[last]) ** share)
