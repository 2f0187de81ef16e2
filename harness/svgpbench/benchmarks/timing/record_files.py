"""Files of speed reports, as `--out` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from svgpbench.atomic import write_whole
from svgpbench.errors import UserError
from svgpbench.json_values import json_text

Report = TypeVar("Report")


class Reported(Protocol):
    """A report that can be stored."""

    def to_json(self) -> dict[str, Any]:
        """Return its content as JSON values."""


def write_report(path: Path | None, report: Reported) -> None:
    """Write a report as JSON, if a path is given. Raises `UserError` if the file cannot be written."""
    if path is not None:
        write_whole(path, f"{json_text(report.to_json())}\n".encode())


def read_report(path: Path, command: str, from_json: Callable[[dict[str, Any]], Report]) -> Report:
    """Return the report that `svgpbench COMMAND --out` wrote.

    Raises `UserError` if the file cannot be read or is not such a report.
    """
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path}: is no record of `svgpbench {command} --out`") from None
