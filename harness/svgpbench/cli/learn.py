"""`svgpbench learn`: training time to a given test NLPD, for svgpbench and peer libraries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from svgpbench.backends import check_backend
from svgpbench.benchmarks.records import append
from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns, compare_contestants
from svgpbench.benchmarks.time_to_target.curves import draw_learning
from svgpbench.benchmarks.time_to_target.plan import (
    SHIPPED,
    Contestant,
    LearningPlan,
    Run,
    read_learning_plan,
    shipped_plans,
)
from svgpbench.benchmarks.time_to_target.profile import draw_profile, profile_table
from svgpbench.benchmarks.time_to_target.records import (
    TrainingRecord,
    least_disturbed,
    read_training,
)
from svgpbench.benchmarks.time_to_target.tables import (
    end_table,
    notes,
    saved_table,
    search_table,
    target_table,
)
from svgpbench.benchmarks.time_to_target.training import PlanTrainer, Resources
from svgpbench.benchmarks.timing.cases import timed_method
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES
from svgpbench.benchmarks.timing.peers import known_peers, locate_peers, peer_python
from svgpbench.cli.options import (
    RESULTS,
    Backends,
    FromRecords,
    MaxOtherCores,
    PlanProblems,
    ResultsFolder,
    Threads,
    default_threads,
)
from svgpbench.cli.printing import show, tell
from svgpbench.environment import OURS
from svgpbench.errors import UserError, select
from svgpbench.output.figure import check_figure_path
from svgpbench.output.table_formats import markdown
from svgpbench.plugins import PEERS, plugins
from svgpbench.runs.core_locks import SHARED_CORES, timing_cores

TRIES = 3  # attempts per call at a run that other processes disturb


class RunLimits(NamedTuple):
    """Threads of a run, and the CPU use of other processes that it tolerates."""

    threads: int
    other_cores: float  # CPU use of other processes, in cores; above it the run is repeated


def learn_command(
    *,
    library: Annotated[
        list[str] | None,
        typer.Option(
            "--library", help=f"Library: {OURS}, {', '.join(plugins(PEERS))}; repeat for several."
        ),
    ] = None,
    problem: PlanProblems = None,
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
            help=f"Plan file of your own (TOML), or one of {', '.join(shipped_plans())}.",
            show_default=False,
        ),
    ] = SHIPPED,
    results: ResultsFolder = RESULTS / "learning",
    from_records: FromRecords = False,
    threads: Threads = None,
    max_other_cores: MaxOtherCores = MAX_OTHER_CORES,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="File for a figure of the curves."),
    ] = None,
    as_markdown: Annotated[
        bool,
        typer.Option(
            "--markdown", help="Print the iterations that the dual M-step saves, as Markdown."
        ),
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="File for a figure of the performance profile over all problems.",
        ),
    ] = None,
) -> None:
    """Search rates for each library, train with them, and report the seconds to a given test NLPD."""
    for file in (figure, profile):
        if file is not None:
            check_figure_path(file)
    declared = read_learning_plan(plan)
    if backend:
        declared = declared.model_copy(update={"backends": tuple(backend)})
    if seconds is not None:
        declared = declared.limited_to(seconds)
    problems = select("problem of the plan", problem, declared.problems)
    libraries = select("library", library, [OURS, *known_peers()])
    if not (from_records or library):
        libraries = [x for x in libraries if x == OURS or peer_python(x)]
    contestants = _contestants(declared, libraries)
    recorded = read_training(results)
    if from_records:
        entries = {
            name: compare_contestants(declared, name, contestants, recorded.get)
            for name in problems
        }
    else:
        limits = RunLimits(threads or default_threads(), max_other_cores)
        entries = _run(declared, problems, contestants, recorded, results, limits)
    entries = {
        name: searched
        for name, runs in entries.items()
        if (searched := [x for x in runs if x.search])
    }
    if not entries:
        raise UserError(
            f"no record of these runs in {results}; leave --from-records out to make them"
        )
    if as_markdown:
        typer.echo(markdown(saved_table(declared, entries)))
        return
    _print(declared, entries)
    if figure is not None:
        draw_learning(declared, entries, figure)
    if profile is not None:
        draw_profile(entries, profile)


def _print(plan: LearningPlan, entries: dict[str, list[ContestantRuns]]) -> None:
    """Print the tables of each problem, then those of all problems."""
    for name, runs in entries.items():
        settings = plan.problems[name]
        tables = [table(name, settings, runs) for table in (search_table, end_table, target_table)]
        show(*tables, notes=notes(name, runs))
    if tables := [x for x in (saved_table(plan, entries), profile_table(entries)) if x.rows]:
        show("", *tables)


def _contestants(plan: LearningPlan, libraries: Iterable[str]) -> list[Contestant]:
    """Return all contestants. Raises `UserError` for a method that its library does not have."""
    peers, contestants = known_peers(), []
    for name in libraries:
        if name == OURS:
            methods = list(plan.methods)
            for method in methods:
                timed_method(method)
        else:
            selected = list(plan.peer_methods.get(name, ())) or None
            methods = select(f"method of {name}", selected, peers[name].methods)
        contestants += [Contestant(name, method) for method in methods]
    return contestants


def _run(
    plan: LearningPlan,
    problems: list[str],
    contestants: list[Contestant],
    recorded: dict[Run, TrainingRecord],
    results: Path,
    limits: RunLimits,
) -> dict[str, list[ContestantRuns]]:
    """Make the runs without an undisturbed record, and return the entries of each problem.

    A disturbed run is repeated up to `TRIES` times. Ctrl-C loses only the current run. Raises `UserError` if
    earlier runs had another number of threads.
    """
    libraries = dict.fromkeys(x.library for x in contestants)
    digests = {plan.digest(problem) for problem in problems}
    counts = {x.threads for run, x in recorded.items() if run.plan in digests and x.threads}
    # seconds with 1 and with 2 threads would stand beside each other in one table
    if others := counts - {limits.threads}:
        raise UserError(
            f"{results} has runs of this plan made with --threads {min(others)}, not {limits.threads}; "
            f"give --threads {min(others)}, or another --results"
        )
    for name in plan.backends if OURS in libraries else ():
        check_backend(name)
    peers = locate_peers([name for name in libraries if name != OURS], tell=tell)
    with (
        timing_cores(limits.threads) as reserved,
        PlanTrainer(plan, Resources(peers, limits.threads, reserved.cores)) as trainer,
    ):
        if reserved.note:
            tell(f"{SHARED_CORES}: {reserved.note}")

        def execute(run: Run) -> TrainingRecord:
            for _ in range(TRIES):
                if run in recorded and recorded[run].other_cores <= limits.other_cores:
                    break
                facts = {"shared_cores": reserved.note, "code": plan.code(run.contestant)}
                record = trainer.run(run).model_copy(update=facts)
                append(results, record)
                tell(f"{run.title}: {_end_in_words(record)}")
                # a busy machine may disturb every try: the least disturbed one counts then
                recorded[run] = least_disturbed(recorded.get(run), record)
            return recorded[run]

        return {name: compare_contestants(plan, name, contestants, execute) for name in problems}


def _end_in_words(record: TrainingRecord) -> str:
    """Return the end of a run in words, for a line of progress."""
    if record.status != "ok" or record.last is None:
        return f"{record.label}: {record.message}"
    nlpd = "" if record.last.nlpd is None else f", NLPD {record.last.nlpd:.4f}"
    lost = f"; others took {record.other_cores:.2f} cores" if record.other_cores else ""
    return f"{record.last.iterations} iterations, ELBO {record.last.elbo:.6g}{nlpd}{lost}"
