"""The protocol: a search by successive halving for every entrant, then runs at the chosen rates.

The protocol is a function of the records: each stage follows from the records of the stage before. So it can
be stopped and resumed anywhere, and gives the same board on every scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TypeAlias

from svgpbench.config import RatePair
from svgpbench.experiments.cell import identify
from svgpbench.experiments.identity import cell_code
from svgpbench.results.records import DamagedRecordError, Record, is_final
from svgpbench.runs.queue import PlannedCell, other_code, record_for
from svgpbench.suite.cells import Budgets, Stage, SuiteRun, task
from svgpbench.suite.schema import Entrant, Suite, SuiteProblem

FindRecord: TypeAlias = Callable[[SuiteRun], Record | None]
"""Function that returns the final record of a task, or None if it has not run."""


def score(record: Record) -> float:
    """Return the last NLPD of a record, infinite for a run that failed."""
    value = record.metrics.get("nlpd") if record.status == "ok" else None
    return inf if value is None else float(value)


def best_rates(records: Mapping[RatePair, Record], count: int = 1) -> list[RatePair]:
    """Return the `count` pairs with the smallest held-out NLPD, fewer if others failed.

    Of equal pairs, that with the smaller rates is better.
    """
    scored = sorted((score(record), rates) for rates, record in records.items())
    return [rates for nlpd, rates in scored[:count] if nlpd < inf]


def stages(
    suite: Suite, budgets: Budgets, problem: SuiteProblem, entrant: Entrant, find_record: FindRecord
) -> Iterator[tuple[Stage, list[SuiteRun]]]:
    """Yield the stages of an entrant on a problem with their tasks, up to the first that is not complete.

    The last stage has the runs. There are none if every trial failed.
    """

    def tasks(stage: Stage, grid: Iterable[RatePair | None], folds: int = 1) -> list[SuiteRun]:
        return [
            task(suite, budgets, problem, entrant, stage, rates, fold)
            for rates in grid
            for fold in range(folds)
        ]

    grid: list[RatePair] = entrant.grid
    searches: tuple[tuple[Stage, int], ...] = (("trial 1", suite.protocol.kept), ("trial 2", 1))
    for stage, kept in () if entrant.reference else searches:
        trials = tasks(stage, grid)
        yield stage, trials
        records = {
            x.rates: record for x in trials if x.rates and (record := find_record(x)) is not None
        }
        # all trials of a round or none: with some missing, other pairs might be kept
        if len(records) < len(trials):
            return
        grid = best_rates(records, kept)
    yield "run", tasks("run", [None] if entrant.reference else grid, suite.protocol.folds_run)


def run_protocol(
    suite: Suite,
    budgets: Budgets,
    problems: Sequence[SuiteProblem],
    entrants: Sequence[Entrant],
    find_record: FindRecord,
    execute: Callable[[list[SuiteRun]], bool],
    *,
    at_once: int,
) -> bool:
    """Run all that is missing of the protocol; return False if it was interrupted.

    Args:
        suite: the suite.
        budgets: iterations of full runs.
        problems: the problems, in order.
        entrants: the entrants that run; each where it takes part.
        find_record: finds the record of a task.
        execute: runs tasks and writes their records; returns False if it was interrupted.
        at_once: number of problems whose tasks are given to `execute` together.
    """
    for start in range(0, len(problems), at_once):
        pairs = [
            (problem, entrant)
            for problem in problems[start : start + at_once]
            for entrant in entrants
            if suite.takes_part(entrant, problem)
        ]
        # it ends: a task that was tried counts as run, whatever its record (`RecordFinder.try_all`)
        while missing := list(missing_tasks(suite, budgets, pairs, find_record)):
            if not execute(missing):
                return False
    return True


def missing_tasks(
    suite: Suite,
    budgets: Budgets,
    pairs: Iterable[tuple[SuiteProblem, Entrant]],
    find_record: FindRecord,
) -> Iterator[SuiteRun]:
    """Yield the tasks of each entrant's stage on its problem that have no final record."""
    for problem, entrant in pairs:
        *_, (_, tasks) = stages(suite, budgets, problem, entrant, find_record)
        yield from (x for x in tasks if find_record(x) is None)


class RecordFinder:
    """The records of a folder by task.

    A record of a run that failed for its machine or for missing software, or that other code of a plugin
    made, counts once the run was tried here, or with `any_status`.
    """

    def __init__(self, results: Path, *, any_status: bool = False) -> None:
        self.results, self.any_status = results, any_status
        self.tried: set[str] = set()
        self._found: dict[str, Record] = {}

    def __call__(self, task: SuiteRun) -> Record | None:
        """Return the record of a task, or None if it is to run."""
        identity = identify(task.cell)
        if identity.cell_id not in self._found:
            with suppress(DamagedRecordError):  # a run sets it aside
                planned = PlannedCell(identity, cell_code(task.cell))
                record = record_for(self.results, planned)
                counts = self.any_status or identity.cell_id in self.tried
                # as `run_cells`, which runs a cell again if the code of a plugin has changed
                if record is not None and (
                    counts or (is_final(record) and not other_code(record, planned).plugins)
                ):
                    self._found[identity.cell_id] = record
        return self._found.get(identity.cell_id)

    def try_all(self, tasks: Iterable[SuiteRun]) -> None:
        """Note that tasks were run, so that their records count whatever they are."""
        self.tried |= {identify(task.cell).cell_id for task in tasks}
