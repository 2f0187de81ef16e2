"""Files to want in tests of the download layer, and what may be left of them."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import absent_files as made
import pytest
from declared import declared

from svgpbench_datasets import DatasetEntry
from svgpbench_datasets.fetch.fetching import Fetcher
from svgpbench_datasets.fetch.limits import DownloadLimits
from svgpbench_datasets.fetch.origins import Unavailable
from svgpbench_datasets.files import Address, DataFile, File, UnseenFile

CONTENT = random.Random(0).randbytes(300_000)  # nothing compresses it
ROADS = made.three_d_road()
PAGE = b"<!DOCTYPE html><title>moved</title>" + b"\n<p>" * 6  # lines as many as rows
FAST = DownloadLimits(connect_s=5, silence_s=5, attempts=2)  # pooch waits a second in between
IMPATIENT = DownloadLimits(connect_s=5, silence_s=0.25, attempts=1)


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


def fetch_file(file: File, *, cache: Path, name: str | None = None, **how: Any) -> Path:
    """The path of one file, fetched."""
    (path,) = Fetcher(cache, **{"limits": FAST, **how}).fetch([file], name)
    return path


def answers(cache: Path, file: File, **how: Any) -> list[str]:
    """Fetching fails in one line and leaves nothing; what each origin answered."""
    with pytest.raises(Unavailable) as caught:
        fetch_file(file, cache=cache, **how)
    assert "\n" not in str(caught.value)
    assert left_in(cache) == set()
    return [answer.why for answer in caught.value.answers]


def entry(*files: DataFile | UnseenFile, **changes: object) -> DatasetEntry:
    """Six rows of 3droad, from these files."""
    own = {
        "name": "roads",
        "files": files,
        "rows": made.ROWS,
        "columns": ["road", "x1", "x2", "y"],
        "features": ["x1", "x2"],
        "target": "y",
    }
    return declared(**{**own, **changes})


def unseen(*urls: str, member: str | None = None, at_most: int = 1000) -> UnseenFile:
    addresses = tuple(Address(url=url, member=member) for url in urls)
    return UnseenFile(path="roads/roads.txt", at_most=at_most, addresses=addresses)


def left_in(folder: Path) -> set[str]:
    """Every file below a folder but locks, which stay."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in files if path.parts[0] != ".locks"}
