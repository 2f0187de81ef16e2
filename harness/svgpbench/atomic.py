"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

from pathlib import Path

from svgpbench.errors import UserError
from svgpbench_datasets.whole_files import whole_file


def refuse_absent_folder(path: Path, option: str = "") -> None:
    """Raise `UserError` if the folder of a file that the user names does not exist."""
    if not path.absolute().parent.is_dir():
        raise UserError(f"{option}{path}: there is no folder {path.parent}")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new one, even after a crash.

    Create the folder if needed. Raises `UserError` if the file cannot be written; no draft is left then.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
