"""What is committed under `results/`, and its records as the working files of a run."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from svgpbench.results.records import Record, write_record
from svgpbench.results.store import records_in

RESULTS = Path(__file__).parents[1] / "results"


@functools.cache
def committed(experiment: str) -> tuple[Record, ...]:
    """The records of an experiment, by backend and cell id."""
    return tuple(records_in(RESULTS, experiment).records)


def worked(folder: Path, records: Iterable[Record]) -> Path:
    """The folder with those records, where a run would put them."""
    for record in records:
        write_record(folder, record)
    return folder
