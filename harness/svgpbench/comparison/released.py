"""The records that are shipped with this version, for advice without a folder of records.

They have no environment and of each trace only the bound, so that they take a few megabytes.
"""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import Final

from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.store import experiments, records_in

RELEASED: Final = Path(str(files("svgpbench"))) / "released"
"""Folder of the shipped records."""
TRACED: Final = ("iteration", "elbo")
"""Columns of a trace that advice needs: they show whether a run has converged."""


def write_released(results: Path, folder: Path = RELEASED) -> None:
    """Write the parts of a folder of records that advice needs; an existing folder is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in experiments(results):
        shortened = [
            record.model_copy(
                update={
                    "trace": {key: record.trace[key] for key in TRACED if key in record.trace},
                    "environment": None,
                }
            )
            for record in records_in(results, name).records
        ]
        write_parquet_records(folder, shortened)
    (folder / "learning").mkdir()
    for path in sorted((results / "learning").glob("*.jsonl")):
        shutil.copy(path, folder / "learning")
