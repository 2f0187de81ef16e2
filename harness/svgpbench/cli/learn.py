"""`svgpbench learn`: training time to a given test NLPD, for svgpbench and peer libraries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from svgpbench.benchmarks.stability.libraries import chosen
from svgpbench.benchmarks.time_to_target import records
from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns, compare
from svgpbench.benchmarks.time_to_target.curves import draw_learning
from svgpbench.benchmarks.time_to_target.plan import (
    OURS,
    SHIPPED,
    Contestant,
    LearningPlan,
    Run,
    read_plan,
    shipped_plans,
)
from svgpbench.benchmarks.time_to_target.records import RunRecord
from svgpbench.benchmarks.time_to_target.tables import end_table, notes, search_table, target_table
from svgpbench.benchmarks.time_to_target.training import Resources, Trainer
from svgpbench.benchmarks.timing.cases import timed_method
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES
from svgpbench.benchmarks.timing.peers import known_peers, locate_peers, peer_python
from svgpbench.cli.options import RESULTS, Backends, ResultsFolder
from svgpbench.cli.printing import show, tell
from svgpbench.cli.timing_options import MaxOtherCores, Threads, default_threads
from svgpbench.errors import UserError
from svgpbench.output.figure import check_figure_path
from svgpbench.plugins import PEERS, check_backend, plugins
from svgpbench.runs.core_locks import timing_cores

TRIES = 3  # attempts per call at a run that other processes disturb


class Limits(NamedTuple):
    """Threads of a run, and the CPU use of other processes that it tolerates."""

    threads: int
    other_cores: float  # CPU use of other processes, in cores; above it the run is repeated


def learn_command(
    *,
    library: Annotated[
        list[str] | None,
        typer.Option("--library", help=f"{OURS}, {', '.join(plugins(PEERS))}; repeat for several."),
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option("--problem", help="A problem of the plan; repeat for several."),
    ] = None,
    backend: Backends = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0.01, help="Largest number of seconds of training per run."),
    ] = None,
    plan: Annotated[
        Path,
        typer.Option(
            "--plan",
            metavar="FILE",
            help=f"A plan of your own (TOML), or one of {', '.join(shipped_plans())}.",
        ),
    ] = SHIPPED,
    results: ResultsFolder = RESULTS / "learning",
    from_records: Annotated[
        bool, typer.Option("--from-records", help="Run nothing; show what is recorded.")
    ] = False,
    threads: Threads = None,
    max_other_cores: MaxOtherCores = MAX_OTHER_CORES,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the curves as well.")
    ] = None,
) -> None:
    """Train ours and the peers with rates that each searched, and time them to a given test NLPD."""
    if figure is not None:
        check_figure_path(figure)
    declared = _as_asked(read_plan(plan), seconds, backend)
    problems = chosen("problem of the plan", problem, declared.problems)
    libraries = chosen("library", library, [OURS, *known_peers()])
    if not (from_records or library):
        libraries = [x for x in libraries if x == OURS or peer_python(x)]
    contestants = _contestants(declared, libraries)
    found = records.read(results)
    if from_records:
        entries = {name: compare(declared, name, contestants, found.get) for name in problems}
    else:
        limits = Limits(threads or default_threads(), max_other_cores)
        entries = _run(declared, problems, contestants, found, results, limits)
    entries = {name: kept for name, x in entries.items() if (kept := [e for e in x if e.search])}
    if not entries:
        raise UserError(
            f"no record of these runs in {results}; leave --from-records out to make them"
        )
    _show(declared, entries)
    if figure is not None:
        draw_learning(declared, entries, figure)


def _as_asked(
    plan: LearningPlan, seconds: float | None, backends: list[str] | None
) -> LearningPlan:
    if backends:
        plan = plan.model_copy(update={"backends": tuple(backends)})
    return plan if seconds is None else plan.within(seconds)


def _contestants(plan: LearningPlan, libraries: Iterable[str]) -> list[Contestant]:
    """Return all contestants. Raises `UserError` for a method that its library does not have."""
    peers, found = known_peers(), []
    for name in libraries:
        if name == OURS:
            methods = list(plan.methods)
            for method in methods:
                timed_method(method)
        else:
            asked = list(plan.peer_methods.get(name, ())) or None
            methods = chosen(f"method of {name}", asked, peers[name].methods)
        found += [Contestant(name, method) for method in methods]
    return found


def _run(
    plan: LearningPlan,
    problems: list[str],
    contestants: list[Contestant],
    found: dict[Run, RunRecord],
    results: Path,
    limits: Limits,
) -> dict[str, list[ContestantRuns]]:
    """Make the runs without an undisturbed record, and return the entries of each problem.

    A disturbed run is repeated up to `TRIES` times. Ctrl-C loses only the current run.
    """
    libraries = dict.fromkeys(x.library for x in contestants)
    for name in plan.backends if OURS in libraries else ():
        check_backend(name.partition(":")[0])
    peers = locate_peers([name for name in libraries if name != OURS], tell=tell)
    with (
        timing_cores(limits.threads) as cores,
        Trainer(plan, Resources(peers, limits.threads, cores)) as trainer,
    ):

        def execute(run: Run) -> RunRecord:
            for _ in range(TRIES):
                if run in found and found[run].other_cores <= limits.other_cores:
                    break
                made = trainer.run(run)
                records.append(results, made)
                tell(f"{run.title}: {_words(made)}")
                found[run] = records.least_disturbed(found.get(run), made)
            return found[run]

        return {name: compare(plan, name, contestants, execute) for name in problems}


def _words(record: RunRecord) -> str:
    """Return the end of a run in words, for a line of progress."""
    if record.end != records.DONE or record.last is None:
        return f"{record.end}: {record.message}"
    nlpd = "" if record.last.nlpd is None else f", NLPD {record.last.nlpd:.4f}"
    lost = f"; others took {record.other_cores:.2f} cores" if record.other_cores else ""
    return f"{record.last.iterations} iterations, ELBO {record.last.elbo:.6g}{nlpd}{lost}"


def _show(plan: LearningPlan, entries: dict[str, list[ContestantRuns]]) -> None:
    tables = (search_table, end_table, target_table)
    for problem, found in entries.items():
        race = plan.problems[problem]
        show(*(table(problem, race, found) for table in tables), notes=notes(problem, found))
