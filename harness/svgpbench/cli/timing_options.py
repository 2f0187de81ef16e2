"""Options that the timing commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from svgpbench.runs.cores import usable_cores

Repeats: TypeAlias = Annotated[
    int, typer.Option("--repeats", min=1, help="Number of clean rounds per cell.")
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="Number of threads per process; 2 by default if there are 2 cores."
    ),
]
MaxOtherCores: TypeAlias = Annotated[
    float,
    typer.Option(
        "--max-other-cores", min=0, help="Cores of CPU that other processes may use during a round."
    ),
]
RecordFile: TypeAlias = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="File for a JSON record.")
]


def default_threads() -> int:
    """Return 2, or 1 if only one core is usable."""
    return min(2, len(usable_cores()))
