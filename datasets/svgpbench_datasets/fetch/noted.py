"""The sha256 of a file that was told by its form, noted beside it: a later change shows."""

from __future__ import annotations

import re
from pathlib import Path

_LINE = re.compile(r"([0-9a-f]{64})  .+\n")  # as sha256sum writes and checks it


def note(target: Path, sha256: str) -> None:
    """Write down what a file holds when it was accepted."""
    _beside(target).write_text(f"{sha256}  {target.name}\n", "utf-8")


def noted(target: Path) -> str | None:
    """What a file held when it was accepted; None where it never was."""
    try:
        found = _LINE.fullmatch(_beside(target).read_text("utf-8"))
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return found[1] if found else None


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")
