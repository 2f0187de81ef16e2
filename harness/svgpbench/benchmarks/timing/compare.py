"""Time backends and peers side by side: fresh pinned processes, rounds in turn, equivalence first.

Each problem gets one process per backend and one per peer. All cells of a step are prepared and their
figures compared before any is timed. Rounds then alternate, A B C A B C …, so that drift affects all cells
alike, and ratios are taken round by round. A round during which other processes used the cores is discarded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import sleep
from typing import Any

from svgpbench.backends import check_backend
from svgpbench.benchmarks.timing.cases import STEPS, USUAL_STEPS, timed_method, usual_methods
from svgpbench.benchmarks.timing.peers import Located
from svgpbench.benchmarks.timing.problems import make_problem, save_problem
from svgpbench.benchmarks.timing.process import ProcessFailed, StepRefused, TimedProcess
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell, check_agreement
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.environment import describe
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.runs.core_locks import timing_cores

# CPU counters tick every 10 ms: in a round of 0.4 s one tick is 0.025 cores
ROUND_S = 0.4
FEWEST_CALLS, MOST_CALLS = 3, 1000
MAX_OTHER_CORES = 0.1
"""A round is discarded if other processes used the CPU of more than this many cores."""

SETTLE_S = 0.2
"""Wait before a round of another process: XLA's threads spin for 0.1 s after their last step."""

MORE_ROUNDS = 2
"""Disturbed rounds are replaced, up to this multiple of `repeats` rounds in all."""


def run_speed(
    problems: Sequence[str],
    backends: Sequence[str],
    steps: Sequence[str] = USUAL_STEPS,
    peers: Mapping[str, Located] | None = None,
    repeats: int = 9,
    threads: int = 1,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    methods: Sequence[str] = (),
    max_other_cores: float = MAX_OTHER_CORES,
    device: str = "cpu",
    on_step: Callable[[SpeedReport], None] = lambda report: None,
) -> SpeedReport:
    """Time every step of every method on every problem.

    Args:
        problems: names that `make_problem` knows.
        backends: `NAME[:MODE]`, each in processes of its own.
        steps: names of `STEPS`; by default `USUAL_STEPS`.
        peers: peers by their names in tables, from `locate_peers`.
        repeats: number of rounds in which every cell must be clean.
        threads: threads of each process, pinned to as many cores.
        on_progress: called with one line of text at each step of progress.
        methods: names of methods, with a variant after a space; by default those of `usual_methods`.
        max_other_cores: cores that other processes may use in a round before it is discarded.
        device: device of every backend; a peer uses the best that it finds there.
        on_step: called with the unfinished report after each step of each problem.

    Returns:
        The report. It is marked `interrupted` until all is timed, and after Ctrl-C.

    Raises:
        UserError: for an unknown name, a missing framework, more threads than cores, or nothing to time.
    """
    peers, methods = peers or {}, methods or tuple(usual_methods())
    if not (backends or peers):
        raise UserError(
            "no backend to time: no framework is installed (`svgpbench list backends` says how to "
            "install one); name numpy, which needs none"
        )
    check_names(problems, backends, steps, methods)
    report = SpeedReport(
        cells=[],
        settings={
            "problems": list(problems),
            "backends": list(backends),
            "methods": list(methods),
            "steps": list(steps),
            "peers": list(peers),
            "repeats": repeats,
            "threads": threads,
            "device": device,
            "round_s": ROUND_S,
            "max_other_cores": max_other_cores,
        },
        environment={"parent": describe(threads, device).model_dump(mode="json")},
        interrupted=True,
    )
    with suppress(KeyboardInterrupt):
        for problem in problems:
            with ExitStack() as stack:
                # one reservation per problem: another timing on this machine may run between two problems
                cores, note = stack.enter_context(timing_cores(threads))
                report.note_cores(note)
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                path = folder / f"{problem}.npz"
                save_problem(make_problem(problem), path)
                processes = [
                    stack.enter_context(TimedProcess.of_backend(backend, device, threads, cores))
                    for backend in backends
                ] + [
                    stack.enter_context(
                        TimedProcess.of_script(
                            name, located.python, located.peer.script, device, threads, cores
                        )
                    )
                    for name, located in peers.items()
                ]
                dead = _wait_for(processes, report)
                for step in steps:
                    cells = [
                        (process, cell)
                        for process in processes
                        for cell in _cells(problem, step, process.name, methods, peers)
                    ]
                    for process, cell in cells:
                        cell.error = dead.get(process.name, "")
                    report.cells += [cell for _, cell in cells]
                    time_step(cells, path, repeats, max_other_cores, on_progress)
                    on_step(report)
        report.interrupted = False
    return report


def _wait_for(processes: Sequence[TimedProcess], report: SpeedReport) -> dict[str, str]:
    """Add the processes' environments to the report. Return the reasons of those that did not start."""
    dead: dict[str, str] = {}
    for process in processes:
        try:
            process.wait_until_ready()
            report.environment[process.name] = process.environment
        # a library that cannot start is a row with its reason; the others are timed all the same
        except ProcessFailed as failure:
            dead[process.name] = str(failure)
    return dead


def check_names(
    problems: Sequence[str], backends: Sequence[str], steps: Sequence[str], methods: Sequence[str]
) -> None:
    """Raise `UserError` for an unknown name or a refused likelihood, before anything starts."""
    refuse_unknown("speed step", steps, STEPS)
    for problem in problems:
        likelihood = make_problem(problem).model().likelihood
        for method in methods:
            timed_method(method).refuse(method, likelihood)
    for backend in backends:
        check_backend(backend)


def _cells(
    problem: str,
    step: str,
    source: str,
    methods: Sequence[str],
    peers: Mapping[str, Located],
) -> list[TimedCell]:
    if source in peers:
        families = peers[source].peer.methods
        return [TimedCell(problem, step, source, m, family, True) for m, family in families.items()]
    timed = {title: timed_method(title) for title in methods}
    return [
        TimedCell(problem, step, source, title, method.family, False, alone=method.alone)
        for title, method in timed.items()
    ]


def time_step(
    cells: Sequence[tuple[TimedProcess, TimedCell]],
    path: Path,
    repeats: int,
    max_other_cores: float,
    on_progress: Callable[[str], None],
) -> None:
    """Prepare the cells, compare their figures, then time them in turn."""
    what = f"{cells[0][1].problem} {cells[0][1].step}"
    on_progress(f"{what}: preparing")
    calls: dict[int, int] = {}
    for index, (process, cell) in enumerate(cells):
        if cell.error:
            continue
        try:
            answer = process.ask(_request("prepare", cell, problem=str(path)))
        except ProcessFailed as failure:
            cell.error = str(failure)
            continue
        except StepRefused as refusal:
            cell.refused = str(refusal)
            continue
        cell.first_call_s, cell.figure = answer["first_call_s"], answer["figure"]
        cell.mode, cell.modes = answer.get("mode", ""), answer.get("modes", {})
        cell.as_peers = answer.get("as_peers")
        count = round(ROUND_S / max(answer["call_s"], 1e-9))
        # rounds of equal length for all: a fast step gets more calls, and so as steady a median as a slow one
        calls[index] = min(max(count, FEWEST_CALLS), MOST_CALLS)
    # before any timing: a step with other numbers is another step
    check_agreement([cell for _, cell in cells])
    complete, before = 0, None
    for turn in range(MORE_ROUNDS * repeats):
        on_progress(f"{what}: round {turn + 1}, {complete} of {repeats} undisturbed so far")
        # anew in every round: a process that failed in the last one is left out
        timed = [(i, *pair) for i, pair in enumerate(cells) if not pair[1].untimed]
        for index, process, cell in timed:
            if process is not before:
                sleep(SETTLE_S)
            before = process
            try:
                answer, load = process.ask_metered(_request("round", cell, calls=calls[index]))
            except ProcessFailed as failure:
                cell.error = str(failure)
                continue
            steps_per_call = STEPS[cell.step]
            seconds = tuple(s / steps_per_call for s in answer["seconds"])
            clean = load.other_cores <= max_other_cores
            cell.rounds.append(Round.measured(seconds, load.other_cores, clean))
        # ratios are taken within a round, so a round counts only if it was clean for every cell
        complete += all(cell.rounds[-1].clean for _, _, cell in timed if not cell.error)
        if complete == repeats:
            break
        # as long as this machine is busy, more rounds will be disturbed as well
        if turn + 1 >= repeats and not any(x.clean for _, cell in cells for x in cell.rounds):
            break


def _request(do: str, cell: TimedCell, **more: Any) -> dict[str, Any]:
    return {"do": do, "method": cell.method, "step": cell.step, **more}
