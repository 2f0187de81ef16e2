"""A file is written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from svgpbench.errors import UserError


def refuse_absent_folder(path: Path, option: str = "") -> None:
    """Raise `UserError` for a file that a user names in a folder which is not there: a slip, as a rule."""
    if not path.absolute().parent.is_dir():
        raise UserError(f"{option}{path}: there is no folder {path.parent}")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, finds the old one or the new one.

    Raises `UserError` where it cannot be written; nothing is left then.
    """
    draft = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()
