"""Writing of files: a file gets its name only when it is complete; errors are one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svgpbench_datasets.errors import DataError


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


@contextmanager
def writing(path: Path, advice: str = "") -> Iterator[None]:
    """Turn an `OSError` into a one-line `DataError` that names `path` and ends with `advice`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror or error}){advice}") from None
