"""Files that take their name when they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file, which then replaces one that is there; nothing is left of one that fails."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        if unfinished.exists():
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
