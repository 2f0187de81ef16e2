"""Files to want in tests of the download layer, and what may be left of them."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from svgpbench_datasets.fetch import Limits
from svgpbench_datasets.files import Address, DataFile

CONTENT = random.Random(0).randbytes(300_000)  # nothing compresses it
FAST = Limits(connect_s=5, silence_s=5, patience_s=5, pause_s=0.01)
IMPATIENT = replace(FAST, silence_s=0.25, patience_s=0.2, slowest=50_000)


def wanted(
    *urls: str, content: bytes = CONTENT, member: str | None = None, **more: Any
) -> DataFile:
    """A file with this content, at these addresses."""
    return DataFile(
        path=more.pop("path", "set/data.txt"),
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=more.pop("bytes", len(content)),
        addresses=tuple(Address(url=url, member=member) for url in urls),
        **more,
    )


def left_in(folder: Path) -> set[str]:
    """Every file below a folder but locks, which stay."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in files if path.parts[0] != ".locks"}
