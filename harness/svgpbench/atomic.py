"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench_datasets.whole_files import whole_file


def refuse_absent_folder(path: Path, option: str = "") -> None:
    """Raise `UserError` if the folder of a file that the user names does not exist."""
    if not path.absolute().parent.is_dir():
        raise UserError(f"{option}{path}: there is no folder {path.parent}")


def refuse_unwritable(folder: Path, named: str) -> None:
    """Raise `UserError` if nothing can be written into a folder, or where it would be made.

    Nothing is left there. `named` is what the user gave, such as `--results runs`.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(dir=nearest):
            pass
    except OSError as error:
        raise UserError(
            f"{named} cannot be written ({error.strerror}); name another folder"
        ) from None


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
