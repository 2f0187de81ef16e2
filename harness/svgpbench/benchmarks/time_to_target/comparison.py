"""Runs of a comparison in order: each contestant's search for rates, then every seed with those rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from svgpbench.benchmarks.time_to_target.plan import Contestant, LearningPlan, Run
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.config import RatePair
from svgpbench.environment import OURS

Execute: TypeAlias = Callable[[Run], TrainingRecord | None]
"""Function that makes a run or finds its record. None if there is no record and none is to be made."""


class ChosenRates(NamedTuple):
    """Mode and rates with which a contestant trains."""

    mode: str
    rates: RatePair


class ContestantRuns(NamedTuple):
    """Contestant on a problem: its search, its choice, and its runs of every seed."""

    contestant: Contestant
    search: tuple[TrainingRecord, ...]
    choice: ChosenRates | None  # None if it was refused or no search run finished
    trained: tuple[TrainingRecord, ...] = ()  # one per seed

    @property
    def refusal(self) -> str:
        """Reason why its library cannot train on the problem, or "" if it can."""
        return next((x.message for x in self.search if x.status == "skipped"), "")


def compare_contestants(
    plan: LearningPlan, problem: str, contestants: Sequence[Contestant], execute: Execute
) -> list[ContestantRuns]:
    """Return all entries of a problem. Seeds are the outer loop, so that contestants run side by side."""
    entries = [search(plan, problem, contestant, execute) for contestant in contestants]
    for seed in plan.seeds:
        for index, entry in enumerate(entries):
            if entry.choice is None:
                continue
            record = execute(_run(plan, problem, entry.contestant, *entry.choice, seed=seed))
            if record is not None:
                entries[index] = entry._replace(trained=(*entry.trained, record))
    return entries


def search(
    plan: LearningPlan, problem: str, contestant: Contestant, execute: Execute
) -> ContestantRuns:
    """Search the rates of a contestant: all modes at the first rates, then the fastest mode at the others."""
    # an iteration takes as long at any rates: one pair shows which mode is the fastest
    first, *others = plan.problems[problem].grid
    modes = plan.backends if contestant.library == OURS else ("",)

    def execute_all(choices: Iterable[tuple[str, RatePair]]) -> list[TrainingRecord]:
        runs = (_run(plan, problem, contestant, *choice, search=True) for choice in choices)
        return [record for run in runs if (record := execute(run)) is not None]

    tried = execute_all((mode, first) for mode in modes)
    if not tried or any(record.status == "skipped" for record in tried):
        return ContestantRuns(contestant, tuple(tried), None)
    mode = fastest(tried)
    records = (*tried, *execute_all((mode, rates) for rates in others))
    rates = best_rates([x for x in records if x.mode == mode])
    choice = ChosenRates(mode, rates) if rates else None
    return ContestantRuns(contestant, records, choice)


def fastest(records: Sequence[TrainingRecord]) -> str:
    """Return the mode with the shortest iterations, or that of the first record if none trained."""
    timed = [(ms, x.mode) for x in records if (ms := x.ms_an_iteration) is not None]
    # a run that failed before its library was ready has only the mode that was asked for
    return min(timed)[1] if timed else records[0].mode or records[0].run.mode


def best_rates(records: Iterable[TrainingRecord]) -> RatePair | None:
    """Return the rates with the highest ELBO at the end of a search, or None if no run finished."""
    # by the bound on training rows: rates chosen by test NLPD would be fitted to what is judged
    ended = [(x.last.elbo, x.run.rates) for x in records if x.status == "ok" and x.last]
    return max(ended)[1] if ended else None


def _run(
    plan: LearningPlan,
    problem: str,
    contestant: Contestant,
    mode: str,
    rates: RatePair,
    *,
    search: bool = False,
    seed: int | None = None,
) -> Run:
    settings = plan.problems[problem]
    return Run(
        plan.digest(problem),
        problem,
        contestant,
        search,
        mode,
        rates,
        plan.seeds[0] if seed is None else seed,
        settings.search_s if search else settings.seconds,
    )
