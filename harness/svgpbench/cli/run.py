"""`svgpbench run`: run the cells of an experiment, show progress, and print a summary."""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.clusters import Where, crew_at, print_job_script
from svgpbench.cli.options import (
    RESULTS,
    AsJson,
    Backends,
    Device,
    Dtype,
    ExperimentName,
    PresetName,
    ResultsFolder,
)
from svgpbench.cli.printing import print_json
from svgpbench.cli.progress import cell_title, reporter
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, Selection, load_experiment
from svgpbench.experiments.identity import Identity
from svgpbench.experiments.resolve import DEFAULT_PRESET
from svgpbench.results.records import Record
from svgpbench.runs.planned import checked_cells
from svgpbench.training.checkpoints import EVERY_S

FAILED, INTERRUPTED = 1, 130
MOST_FAILURES_SHOWN = 20


def run_command(
    experiment: ExperimentName,
    *,
    preset: PresetName = None,
    backend: Backends = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="A label or name; repeat for several.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="Repeat for several.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option("--seed", min=0, help="Repeat for several.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Run only the I-th of N equal parts."),
    ] = None,
    dtype: Annotated[Dtype | None, typer.Option("--dtype")] = None,
    device: Annotated[Device | None, typer.Option("--device")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Workers at a time; as many as fit by default.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads of a worker.")
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
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Compute on the workers of this scheduler."),
    ] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="Compute in jobs of Slurm.")] = False,
    pbs: Annotated[bool, typer.Option("--pbs", help="Compute in jobs of PBS.")] = False,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            metavar="KEY=VALUE",
            help="Resource that a job requests; repeat for several.",
        ),
    ] = None,
    job_script: Annotated[
        bool, typer.Option("--job-script", help="Print the job that would be submitted.")
    ] = False,
    results: ResultsFolder = RESULTS,
    force: Annotated[bool, typer.Option("--force", help="Run finished cells again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment; finished cells are kept."""
    from svgpbench.runs.events import Noticed
    from svgpbench.runs.pool import run_cells
    from svgpbench.runs.shards import Shard

    where = Where(dask, slurm, pbs, cluster or ())
    where.check(jobs)
    if job_script:
        return print_job_script(where)
    part = None if shard is None else Shard.parse(shard)
    selection = Selection(
        backends=backend or (),
        methods=method or (),
        data=dataset or (),
        seeds=seed or (),
        dtype=dtype,
        device=device,
        threads=threads,
    )
    declared = load_experiment(experiment)
    cells = checked_cells(experiment, declared, preset, selection)
    if timeout is not None and not timeout > 0:
        raise UserError(f"--timeout {timeout:g}: give a number of seconds above 0")
    if memory is not None and not memory > 0:
        raise UserError(f"--memory {memory:g}: give a number of GiB above 0")
    if not checkpoint >= 0:
        raise UserError(f"--checkpoint {checkpoint:g}: give a number of seconds, at least 0")
    if part:
        cells = part.select(cells)
    _check_writable(results)
    held = None if memory is None else memory * 2**30
    with (
        reporter() as on_event,
        crew_at(where, timeout, held, lambda line: on_event(Noticed(line))) as executor,
    ):
        summary = run_cells(
            cells,
            results=results,
            jobs=jobs,
            timeout=timeout,
            memory=held,
            checkpoint_every=checkpoint,
            force=force,
            on_event=on_event,
            executor=executor,
        )
    records = records_of(summary.cells, results)
    following = _next_command(experiment, declared, preset, selection, results)
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
    ended = {record.status for record in records}
    return not ended <= {"ok", "skipped"} or ended == {"skipped"}


def records_of(cells: Sequence[Identity], results: Path) -> list[Record]:
    """Return the existing records of these cells, from this run or an earlier one."""
    from svgpbench.results import store

    return store.records_of(results, cells).records


def _check_writable(results: Path) -> None:
    """Raise `UserError` if the folder cannot be written; nothing is left in it."""
    folder = next(path for path in (results, *results.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"--results {results} cannot be written ({error.strerror}); name another folder"
        ) from None


def _next_command(
    name: str, experiment: Experiment, preset: str | None, selection: Selection, results: Path
) -> str:
    words = ["svgpbench", "table", name]
    # A selection may have cells outside the preset. The table of the preset would omit them.
    if selection == Selection() and (preset or DEFAULT_PRESET in experiment.presets):
        words += ["--preset", preset or DEFAULT_PRESET]
    if results != RESULTS:
        words += ["--results", str(results)]
    return shlex.join(words)


def _print_summary(records: list[Record], resumed: int, elsewhere: int) -> None:
    counts = ", ".join(f"{n} {status}" for status, n in _counts(records).items())
    others = [f"{resumed} from earlier runs"] if resumed else []
    others += [f"{elsewhere} from another run on this folder"] if elsewhere else []
    named = f" ({', '.join(others)})" if others else ""
    typer.echo(f"{len(records)} cells: {counts or 'none finished'}{named}")
    failures = [record for record in records if record.status != "ok"]
    for record in failures[:MOST_FAILURES_SHOWN]:
        typer.echo(f"  {cell_title(record.config)}: {record.status}: {record.message}")
    if len(failures) > MOST_FAILURES_SHOWN:
        typer.echo(f"  and {len(failures) - MOST_FAILURES_SHOWN} more; --json lists all")


def _print_json(records: list[Record], resumed: int, interrupted: bool, following: str) -> None:
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
    content = {
        "cells": len(records),
        "counts": _counts(records),
        "from_earlier_runs": resumed,
        "interrupted": interrupted,
        "failures": failures,
        "next": following,
    }
    print_json(content)


def _counts(records: list[Record]) -> dict[str, int]:
    return dict(Counter(record.status for record in records).most_common())
