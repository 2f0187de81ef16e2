"""`make sharded`: E-steps by shards, 10⁵ to 10⁷ rows on 1, 2 and 4 workers, beside a law of the smaller ones.

    python tests/runs/sharded/rows_and_workers.py --out record.json

The law is what does not grow with rows plus what a row costs, fitted to all but the most rows on one worker;
k workers deal out the shards, as far as the machine has a core for each, and the one with the most ends last.
It has not seen the other cells.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.table import Table

from svgpbench.environment import describe
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.worker_setup import worker_environment

sys.path.insert(0, str(Path(__file__).parents[1]))
from dask_cluster import dask_cluster

ROW_GROUP = 100_000
DIMENSIONS = 8
BACKEND = "torch"


class Measured(NamedTuple):
    """One E-step over a table, after one that warmed the workers."""

    rows: int
    workers: int
    seconds: float
    peak_memory_bytes: int  # the most that a worker held


def main(
    rows: Annotated[list[int], typer.Option("--rows")] = [100_000, 1_000_000, 10_000_000],  # noqa: B006
    workers: Annotated[list[int], typer.Option("--workers")] = [1, 2, 4],  # noqa: B006
    inducing: Annotated[int, typer.Option("--inducing")] = 128,
    out: Annotated[Path | None, typer.Option("--out")] = None,
) -> None:
    """Measure, fit, print, and write a record."""
    os.environ |= worker_environment("cpu", 1)  # each worker has one thread
    found: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="svgpbench-sharded-") as name:
        tables = {count: written(Path(name, f"{count}.parquet"), count) for count in sorted(rows)}
        for executor in workers:
            with ExitStack() as cluster:
                place = Path(tempfile.mkdtemp(dir=name))
                address = cluster.enter_context(dask_cluster(place, executor))
                for count, table in tables.items():
                    found.append(measured(table, count, executor, address, inducing))
    law = fitted([one for one in found if one.workers == 1 and one.rows < max(rows)])
    show(found, law)
    if out is not None:
        record = {
            "settings": {"inducing": inducing, "dimensions": DIMENSIONS, "backend": BACKEND},
            "law": {"fixed_s": law[0], "a_row_s": law[1]},
            "cells": [one._asdict() | {"predicted_s": predicted(law, one)} for one in found],
            "environment": describe(threads=1).model_dump(mode="json"),
        }
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def written(path: Path, rows: int) -> Path:
    """A table of a smooth function of its first columns and noise, in row groups."""
    rng, writer = np.random.default_rng(0), None
    for _ in range(0, rows, ROW_GROUP):
        X = rng.standard_normal((min(ROW_GROUP, rows), DIMENSIONS))
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(len(X))
        columns = {f"x{i}": X[:, i] for i in range(DIMENSIONS)} | {"y": y}
        group = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, group.schema)
        writer.write_table(group)
    assert writer is not None
    writer.close()
    return path


def measured(table: Path, rows: int, workers: int, address: str, inducing: int) -> Measured:
    """The second of two E-steps, as the command says it."""
    command = [sys.executable, "-m", "svgpbench.cli", "sharded", str(table), "--target=y", "--json"]
    settings = [f"--inducing={inducing}", f"--backend={BACKEND}", "--iterations=2"]
    dask = [f"--dask={address}", f"--shard-rows={ROW_GROUP}"]
    done = subprocess.run([*command, *settings, *dask], capture_output=True, check=True)
    step = json.loads(done.stdout)["steps"][1]
    return Measured(rows, workers, step["seconds"], step["peak_memory_bytes"])


def fitted(cells: Sequence[Measured]) -> tuple[float, float]:
    """Seconds that do not grow, and seconds a row: least squares of relative errors."""
    weights = np.array([1.0 / one.seconds for one in cells])
    design = np.array([[1.0, one.rows] for one in cells]) * weights[:, None]
    fixed, each = np.linalg.lstsq(design, np.ones(len(cells)), rcond=None)[0]
    return float(fixed), float(each)


def predicted(law: tuple[float, float], cell: Measured) -> float:
    """Seconds by the law."""
    fixed, each = law
    shards = math.ceil(cell.rows / ROW_GROUP)
    of_one = math.ceil(shards / min(cell.workers, len(usable_cores())))
    return fixed + each * min(of_one * ROW_GROUP, cell.rows)


def show(cells: Sequence[Measured], law: tuple[float, float]) -> None:
    """A row a cell."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("rows", "workers", "seconds", "by the law", "off by", "a worker held, MB"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in cells:
        by_law = predicted(law, one)
        off = f"{100 * (one.seconds / by_law - 1):+.0f} %"
        held = f"{one.peak_memory_bytes / 1e6:.0f}"
        table.add_row(
            f"{one.rows:,}", str(one.workers), f"{one.seconds:.2f}", f"{by_law:.2f}", off, held
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
