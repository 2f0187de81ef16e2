"""`make overheads`: what a run costs beside its cells: in a warm worker, resuming, and making tables.

python tests/chaos/overheads.py --cells 10000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from chaos_run import NAME, command, write_experiment

from svgpbench.api import finals, traces
from svgpbench.environment import describe
from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.cell import identify
from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.records import Record, WorkerFacts
from svgpbench.results.store import records_in
from svgpbench.runs.events import Event, Finished
from svgpbench.runs.pool import run_cells

WARM = 100
"""Cells of which the time each is taken."""

TRACED = 20
"""Points of a planted record's trace."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000, help="planned and resumed")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="svgpbench-overheads-") as name:
        folder = Path(name)
        periods, trained = periods_of_cells(folder)
        print(
            f"a trivial cell in a warm worker: {1e3 * statistics.median(periods):.1f} ms (median)"
        )
        print(f"  of which its own training: {1e3 * statistics.median(trained):.1f} ms")
        for form in ("one Parquet file", "a JSON file each"):
            planned, seconds = resumed(folder, options.cells, form)
            print(f"{planned} cells planned and resumed, {form}: {seconds:.1f} s")
            rows, seconds = tabled(folder, form)
            print(f"{rows} records into pandas, {form}: {seconds:.1f} s")
    return 0


def periods_of_cells(folder: Path) -> tuple[list[float], list[float]]:
    """Seconds from one finished cell to the next in one worker, and of training in each."""
    write_experiment(folder, WARM, iterations=1)
    cells = resolve(load_experiment(str(folder / f"{NAME}.toml")))
    ends: list[float] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Finished):
            ends.append(time.monotonic())

    summary = run_cells(cells, results=folder / "warm", jobs=1, on_event=on_event)
    assert summary.counts == {"ok": WARM}, summary.counts
    trained = [float(record.timing["train_s"] or 0.0) for record in summary.records]
    return [b - a for a, b in pairwise(ends)], trained[1:]


def resumed(folder: Path, count: int, form: str) -> tuple[int, float]:
    """How many cells, and the seconds of a `svgpbench run` that finds all their records there."""
    planned = write_experiment(folder, count, iterations=1)
    results = f"planted {form}"
    plant(folder, results, as_json=form.endswith("each"))
    since = time.monotonic()
    printed = command(folder, "run", f"{NAME}.toml", "--results", results, "--jobs", "1")
    seconds = time.monotonic() - since
    assert f"({planned} from earlier runs)" in printed, printed
    return planned, seconds


def tabled(folder: Path, form: str) -> tuple[int, float]:
    """How many records, and the seconds until their finals and traces are data frames."""
    since = time.monotonic()
    records = records_in(folder / f"planted {form}", NAME).records
    rows, points = len(finals(records)), len(traces(records))
    seconds = time.monotonic() - since
    assert points == rows * TRACED, points
    return rows, seconds


def plant(folder: Path, results: str, as_json: bool) -> None:
    """A record of every cell."""
    environment = describe(1)
    records = []
    for cell in resolve(load_experiment(str(folder / f"{NAME}.toml"))):
        identity = identify(cell)
        records.append(
            Record(
                cell_id=identity.cell_id,
                method_version=identity.method_version,
                config=identity.config,
                status="ok",
                data={"fingerprint": identity.fingerprint},
                environment=environment,
                trace={name: [0.1] * TRACED for name in ("iteration", "elbo", "nlpd", "rmse")},
                metrics={"elbo": -1.0, "nlpd": 0.5, "rmse": 0.25},
                timing={"train_s": 0.1},
                started=datetime.now(UTC),
                wall_s=0.2,
                peak_memory_bytes=10**8,
                worker=WorkerFacts(fresh=False, cells_before=1),
            )
        )
    (folder / results).mkdir()
    if not as_json:
        write_parquet_records(folder / results, records)
        return
    from svgpbench import atomic
    from svgpbench.results import records as files

    atomic.os.fsync = lambda descriptor: None  # type: ignore[assignment]
    for record in records:
        files.write_record(folder / results, record)


if __name__ == "__main__":
    sys.exit(main())
