"""Atomic writing: a file gets its name only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, renamed to `path` at the end, or removed if the block raises."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        if unfinished.exists():
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
