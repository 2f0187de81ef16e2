"""A file is written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from svgpbench.errors import UserError


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
