"""Options that the timing commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from svgpbench.runs.cores import usable_cores

FAILED, INTERRUPTED = 1, 130

Repeats: TypeAlias = Annotated[
    int, typer.Option("--repeats", min=1, help="Clean rounds wanted of each cell.")
]
Threads: TypeAlias = Annotated[
    int | None, typer.Option("--threads", min=1, help="Of each process; 2 where there are 2.")
]
MaxOtherCores: TypeAlias = Annotated[
    float, typer.Option("--max-other-cores", min=0, help="CPU of others that a round may lose.")
]
RecordFile: TypeAlias = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write a JSON record.")
]


def default_threads() -> int:
    """Return 2, or 1 if only one core is usable."""
    return min(2, len(usable_cores()))
