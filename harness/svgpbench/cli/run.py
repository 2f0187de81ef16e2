"""`svgpbench run`: run the cells of an experiment, show progress, and print a summary."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from svgpbench.atomic import refuse_unwritable
from svgpbench.cli.clusters import check_dask, cluster_executor
from svgpbench.cli.options import (
    RESULTS,
    AsJson,
    Backends,
    DaskAddress,
    Device,
    Dtype,
    ExperimentName,
    Jobs,
    PresetName,
    ResultsFolder,
)
from svgpbench.cli.printing import FAILED, INTERRUPTED, print_json, say
from svgpbench.cli.progress import cell_title, reporter
from svgpbench.errors import UserError
from svgpbench.experiments import Selection
from svgpbench.experiments.resolve import DEFAULT_PRESET
from svgpbench.experiments.validation import checked_plan
from svgpbench.results.records import Record
from svgpbench.training.checkpoints import EVERY_S

MOST_FAILURES_SHOWN = 20


def run_command(
    experiment: ExperimentName,
    *,
    preset: PresetName = None,
    backend: Backends = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Label or name of a method; repeat for several."),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="Name of a data set; repeat for several.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option("--seed", min=0, help="Random seed; repeat for several.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Run only the I-th of N equal parts."),
    ] = None,
    dtype: Annotated[
        Dtype | None, typer.Option("--dtype", help="Floating-point type of the backends.")
    ] = None,
    device: Annotated[
        Device | None, typer.Option("--device", help="Device that backends compute on.")
    ] = None,
    jobs: Jobs = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Number of threads per worker.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="Seconds that a cell may take.")
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            metavar="GIB",
            help="Memory limit of a worker in GiB; an equal share by default.",
        ),
    ] = None,
    checkpoint: Annotated[
        float, typer.Option("--checkpoint", metavar="S", help="Seconds between checkpoints.")
    ] = EVERY_S,
    dask: DaskAddress = None,
    results: ResultsFolder = RESULTS,
    force: Annotated[bool, typer.Option("--force", help="Run finished cells again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment; finished cells are kept."""
    from svgpbench.experiments.plan import CellShard
    from svgpbench.results.store import records_of
    from svgpbench.runs.events import Noticed
    from svgpbench.runs.pool import run_cells

    check_dask(dask, jobs)
    part = None if shard is None else CellShard.parse(shard)
    selection = Selection(
        backends=backend or (),
        methods=method or (),
        data=dataset or (),
        seeds=seed or (),
        dtype=dtype,
        device=device,
        threads=threads,
    )
    plan = checked_plan(experiment, preset, selection)
    # `not … > 0` refuses NaN too, which `… <= 0` would let through
    if timeout is not None and not timeout > 0:
        raise UserError(f"--timeout {timeout:g}: give a number of seconds above 0")
    if memory is not None and not memory > 0:
        raise UserError(f"--memory {memory:g}: give a number of GiB above 0")
    if not checkpoint >= 0:
        raise UserError(f"--checkpoint {checkpoint:g}: give a number of seconds, at least 0")
    if part:
        plan = part.select(plan)
    refuse_unwritable(results, f"--results {results}")
    memory_bytes = None if memory is None else memory * 2**30
    with (
        reporter() as on_event,
        cluster_executor(
            dask, timeout, memory_bytes, lambda line: on_event(Noticed(line))
        ) as executor,
    ):
        summary = run_cells(
            plan.configs,
            results=results,
            jobs=jobs,
            timeout=timeout,
            memory=memory_bytes,
            checkpoint_every=checkpoint,
            force=force,
            on_event=on_event,
            executor=executor,
        )
    # from the folder: cells of earlier runs, and of another run beside this one, count too
    records = records_of(results, summary.cells).records
    words = ["svgpbench", "table", experiment]
    # Another selection may have cells outside the preset. The table of the preset would omit them.
    chosen = Selection(backends=selection.backends)
    if selection == chosen and (preset or DEFAULT_PRESET in plan.experiment.presets):
        words += ["--preset", preset or DEFAULT_PRESET]
        words += [word for name in selection.backends for word in ("--backend", name)]
    if results != RESULTS:
        words += ["--results", str(results)]
    following = shlex.join(words)
    if as_json:
        _print_json(records, summary.resumed, summary.interrupted, following)
    else:
        _print_summary(records, summary.resumed, summary.elsewhere)
        again = "interrupted; the same command goes on from here"
        typer.echo(again if summary.interrupted else f"next: {following}")
    if summary.interrupted:
        raise typer.Exit(INTERRUPTED)
    if failed(records):
        raise typer.Exit(FAILED)


def failed(records: Sequence[Record]) -> bool:
    """Return True if a cell failed, or if all were skipped.

    A cell is skipped if its backend does not support it.
    """
    statuses = {record.status for record in records}
    return not statuses <= {"ok", "skipped"} or statuses == {"skipped"}


def _print_summary(records: list[Record], resumed: int, elsewhere: int) -> None:
    from svgpbench.experiments.leaks import audits_of, leak_notes, target_notes
    from svgpbench.results.unsettled import unsettled_note

    counts = ", ".join(f"{n} {status}" for status, n in _counts(records).items())
    sources = [f"{resumed} from earlier runs"] if resumed else []
    sources += [f"{elsewhere} from another run on this folder"] if elsewhere else []
    note = f" ({', '.join(sources)})" if sources else ""
    typer.echo(f"{len(records)} cells: {counts or 'none finished'}{note}")
    failures = [record for record in records if record.status != "ok"]
    for record in failures[:MOST_FAILURES_SHOWN]:
        say(f"  {cell_title(record.config)}: {record.status}: {record.message}")
    if len(failures) > MOST_FAILURES_SHOWN:
        typer.echo(f"  and {len(failures) - MOST_FAILURES_SHOWN} more; --json lists all")
    if note := unsettled_note(records):
        say(note)
    audits = list(audits_of(record.config for record in records))
    say(*leak_notes(audits), *target_notes(audits))


def _print_json(records: list[Record], resumed: int, interrupted: bool, following: str) -> None:
    from svgpbench.experiments.leaks import audits_of, leak_notes, target_notes
    from svgpbench.results.unsettled import unsettled

    failures = [
        {
            "cell_id": record.cell_id,
            "cell": cell_title(record.config),
            "status": record.status,
            "message": record.message,
        }
        for record in records
        if record.status != "ok"
    ]
    audits = list(audits_of(record.config for record in records))
    content = {
        "cells": len(records),
        "counts": _counts(records),
        "from_earlier_runs": resumed,
        "interrupted": interrupted,
        "failures": failures,
        "unsettled": [
            {"cell_id": record.cell_id, "cell": cell_title(record.config), "message": moved}
            for record in records
            if (moved := unsettled(record))
        ],
        "leaks": leak_notes(audits),
        "target_notes": target_notes(audits),
        "next": following,
    }
    print_json(content)


def _counts(records: list[Record]) -> dict[str, int]:
    return dict(Counter(record.status for record in records).most_common())
