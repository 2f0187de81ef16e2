"""Options, progress lines and JSON records that the timing commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from svgpbench.errors import UserError
from svgpbench.json_values import json_text
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

Report = TypeVar("Report")


def default_threads() -> int:
    """Return 2, or 1 if only one core is usable."""
    return min(2, len(usable_cores()))


def check_record_path(out: Path | None) -> None:
    """Raise `UserError` if the folder of the record does not exist."""
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: its folder does not exist; make it first")


def write_record(report: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """Write the report as JSON to `out` if it is given, and print it if `as_json`."""
    text = json_text(report)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(text)


def read_record(
    path: Path, option: str, command: str, from_json: Callable[[dict[str, Any]], Report]
) -> Report:
    """Return the report that `svgpbench COMMAND --out` wrote.

    Raises `UserError` if the file cannot be read or is not such a record.
    """
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{option} {path} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{option} {path}: is no record of `svgpbench {command} --out`") from None
