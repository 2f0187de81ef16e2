"""Writing of files: a file gets its name only when it is complete; errors are one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from svgpbench_datasets.errors import DataError


@contextmanager
def whole_file(path: Path, advice: str = "") -> Iterator[Path]:
    """Yield the path of a draft, renamed to `path` at the end, or removed if the block raises.

    A reader finds the old content or the new one, even after a crash or on a full disk.

    Raises:
        DataError: the file cannot be written; the message names `path` and ends with `advice`.
    """
    # in the same folder, as a rename is atomic in one file system only;
    # the process id keeps two writers of one file apart
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        # a block that wrote nothing leaves the old file as it was
        if draft.exists():
            # before the rename: otherwise a crash can leave the new name with no content
            with draft.open("r+b") as file:  # Windows syncs only what is open for writing
                os.fsync(file.fileno())
            draft.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror or error}){advice}") from None
    finally:
        with suppress(OSError):
            draft.unlink()
