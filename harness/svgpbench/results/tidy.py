"""Tidy tables of records for other programs: one row per cell, or one row per trace point."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd

from svgpbench.atomic import refuse_absent_folder, write_whole
from svgpbench.csv_text import as_csv
from svgpbench.errors import UserError
from svgpbench.metrics import METRICS
from svgpbench.results.duplicates import LocatedRecord
from svgpbench.results.frames import final_frame, trace_frame
from svgpbench.results.mixtures import several_versions
from svgpbench.results.records import Record
from svgpbench.results.validity import outdated_reason

Type: TypeAlias = Literal["text", "whole", "number", "truth", "moment"]

PANDAS = {
    "text": "string",
    "whole": "Int64",
    "number": "float64",
    "truth": "boolean",
    "moment": "datetime64[us, UTC]",
}
"""The pandas dtype of each type, which Parquet gets too. All but `number` have a separate null."""


class TidyColumn(NamedTuple):
    """A column of a tidy table."""

    name: str
    type: Type
    unit: str
    meaning: str


CELL = (
    TidyColumn("cell_id", "text", "", "a hash of what determines the cell's numbers"),
    TidyColumn("experiment", "text", "", "the experiment it was run for"),
    TidyColumn("data", "text", "", "data set, or NAME@OUTPUT"),
    TidyColumn("task", "text", "", "regression or classification"),
    TidyColumn("method", "text", "", "label of the method, as tables show it"),
    TidyColumn("backend", "text", "", "backend, with its mode, dtype and device where unusual"),
    TidyColumn("dtype", "text", "", "float64 or float32"),
    TidyColumn("split_seed", "whole", "", "seed of the split"),
    TidyColumn("fold", "whole", "", "which fold tests, of k-fold and fixed splits"),
    TidyColumn("seed", "whole", "", "seed of the start and the minibatches"),
    TidyColumn(
        "perturbation", "number", "", "relative size of noise on the inputs; 0: a plain cell"
    ),
    TidyColumn("standing", "text", "", "current; or superseded, or unknown, and why"),
    TidyColumn("status", "text", "", "ok, or how it failed"),
)
"""Columns of both tables that describe the cell."""

OF_A_CELL = (
    TidyColumn("message", "text", "", "what the failure said"),
    TidyColumn("method_name", "text", "", "the method, whatever its label"),
    TidyColumn("method_version", "whole", "", "version of the method"),
    TidyColumn("iterations", "whole", "", "iterations to do"),
    TidyColumn("n_train", "whole", "", "training rows"),
    TidyColumn("n_test", "whole", "", "test rows"),
    TidyColumn("dimensions", "whole", "", "inputs"),
    *(TidyColumn(metric.name, "number", metric.unit, metric.phrase) for metric in METRICS.values()),
    TidyColumn("wall_s", "number", "s", "time of the whole cell, seen from outside"),
    TidyColumn("peak_memory_bytes", "whole", "byte", "most that its process held"),
    TidyColumn("started", "moment", "UTC", "when it began"),
    TidyColumn("python", "text", "", "version"),
    TidyColumn("versions", "text", "", "JSON: packages and their versions"),
    TidyColumn("cpu", "text", "", "processor"),
    TidyColumn("commit", "text", "", "of the source tree"),
    TidyColumn("dirty", "truth", "", "whether the sources differed from the commit"),
    TidyColumn("fingerprint", "text", "", "hash of the data"),
    TidyColumn("split_hash", "text", "", "hash of the split's rows"),
    TidyColumn("config", "text", "", "JSON: the complete configuration"),
    TidyColumn("file", "text", "", "the file that holds the record"),
)

OF_A_POINT = (
    TidyColumn("iteration", "whole", "", "EM iteration, from 1"),
    TidyColumn("seconds", "number", "s", METRICS["seconds"].formula),
)
"""Columns of every trace. Other columns of a trace are numbers with their names in the record."""


def cells_table(stored: Sequence[LocatedRecord]) -> pd.DataFrame:
    """Return one row per cell. Numbers of a record that are not in `METRICS` are the last columns."""
    frame = final_frame([located.record for located in stored]).drop(columns="unrecorded")
    facts = pd.DataFrame([_facts(located) for located in stored], index=frame.index)
    undeclared = [
        {name: value for name, value in record.metrics.items() if name not in METRICS}
        if record.status == "ok"
        else {}
        for record in (located.record for located in stored)
    ]
    more = pd.DataFrame(undeclared, index=frame.index).astype(float)
    return _typed(pd.concat([frame, facts, more], axis=1), (*CELL, *OF_A_CELL))


def traces_table(stored: Sequence[LocatedRecord]) -> pd.DataFrame:
    """Return one row per cell and evaluated iteration, for failed cells up to the failure.

    Raises `UserError` if no cell has a trace.
    """
    frame = trace_frame([located.record for located in stored])
    if frame.empty:
        raise UserError("no cell of these records has a trace")
    facts = pd.DataFrame([_experiment_and_standing(located.record) for located in stored])
    facts.index = pd.Index([located.record.cell_id for located in stored])
    joined = frame.join(facts, on="cell_id")
    declared = (*CELL, *OF_A_POINT)
    repeated = {"iterations", "n_train", "n_test", "dimensions"}  # these are in the table of cells
    return _typed(joined.drop(columns=list(repeated)), declared)


def _typed(frame: pd.DataFrame, declared: Sequence[TidyColumn]) -> pd.DataFrame:
    """Return the declared columns with their types, followed by all other columns as float64."""
    types = {column.name: PANDAS[column.type] for column in declared}
    others = [name for name in frame if name not in types]
    return frame[[*types, *others]].astype(types | dict.fromkeys(others, "float64"))


def _experiment_and_standing(record: Record) -> dict[str, Any]:
    return {"experiment": record.config.experiment, "standing": standing_of(record)}


def standing_of(record: Record) -> str:
    """Return `current`, or `superseded` or `unknown` with the reason.

    It is unknown if the data or the method are not installed here.
    """
    try:
        why = outdated_reason(record)
    except UserError as error:
        return f"unknown: {error}"
    return f"superseded: {why}" if why else "current"


def _facts(stored: LocatedRecord) -> dict[str, Any]:
    """Return the values of a record that `final_frame` lacks."""
    record = stored.record
    environment = record.environment
    return _experiment_and_standing(record) | {
        "method_name": record.config.method.name,
        "method_version": record.method_version,
        "wall_s": record.wall_s,
        "peak_memory_bytes": record.peak_memory_bytes,
        "started": record.started,
        "python": environment and environment.python,
        "versions": environment and json.dumps(environment.versions),
        "cpu": environment and environment.cpu,
        "commit": environment and environment.commit,
        "dirty": environment and environment.dirty,
        "fingerprint": record.data.get("fingerprint"),
        "split_hash": record.data.get("split_hash"),
        "config": record.config.model_dump_json(),
        "file": str(stored.path),
    }


def warnings(stored: Sequence[LocatedRecord], table: pd.DataFrame) -> Iterator[str]:
    """Yield a warning for each reason not to mix rows of the table.

    Reasons are outdated records, and several versions of a method, a data set or a package.
    """
    cells = table.drop_duplicates("cell_id")
    for reason, count in Counter(cells["standing"]).items():
        if reason != "current":
            yield f"{count} of {len(cells)} cells are {reason}"
    versions_of: dict[str, set[str]] = {}
    for record in (located.record for located in stored):
        config = record.config
        versions_of.setdefault(f"method {config.method.name}", set()).add(
            f"version {record.method_version}"
        )
        versions_of.setdefault(f"data set {config.data.name}", set()).add(
            f"fingerprint {record.data.get('fingerprint')}"
        )
    for what, versions in versions_of.items():
        if len(versions) > 1:
            yield f"{what} is here in {len(versions)} forms: {', '.join(sorted(versions))}"
    yield from several_versions([located.record for located in stored])


def check_table_path(path: Path) -> None:
    """Raise `UserError` if a path does not end in .parquet or .csv, or if its folder does not exist."""
    if path.suffix not in (".parquet", ".csv"):
        raise UserError(f"--out {path}: give a name that ends in .parquet or .csv")
    refuse_absent_folder(path, "--out ")


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table whole or not at all: Parquet, or CSV with every digit."""
    if path.suffix == ".csv":
        content = as_csv(table).encode()
    else:
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False, compression="zstd")
        content = buffer.getvalue()
    write_whole(path, content)
