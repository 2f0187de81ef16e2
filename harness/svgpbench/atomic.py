"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from svgpbench.errors import UserError


def refuse_absent_folder(path: Path, option: str = "") -> None:
    """Raise `UserError` if the folder of a file that the user names does not exist."""
    if not path.absolute().parent.is_dir():
        raise UserError(f"{option}{path}: there is no folder {path.parent}")


def why_unwritable(folder: Path) -> str:
    """Return why nothing can be written into a folder, or where it would be made; empty if it can.

    Nothing is left there.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        # tried, not asked: `os.access` can be wrong, such as on a network file system
        with tempfile.TemporaryDirectory(dir=nearest):
            pass
    except OSError as error:
        return error.strerror or str(error)
    return ""


def refuse_unwritable(folder: Path, named: str) -> None:
    """Raise `UserError` if a folder is unwritable; `named` is what the user gave, such as `--out x`."""
    if why := why_unwritable(folder):
        raise UserError(f"{named} cannot be written ({why}); name another folder")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new one, even after a crash.

    Create the folder if needed. Raises `UserError` if the file cannot be written; no draft is left then.
    """
    # not by `svgpbench_datasets`: a posterior is written where NumPy alone is installed;
    # beside the file, as a rename is atomic in one file system only;
    # the process id keeps two writers of one file apart
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            # before the rename: otherwise a crash can leave the new name with no content
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()
