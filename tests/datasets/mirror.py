"""The folder with copies of upstream files that SVGPBENCH_MIRROR names, or a skipped test."""

from __future__ import annotations

import csv
import gzip
import lzma
import os
from importlib.resources import files
from pathlib import Path

import pytest

from svgpbench_datasets import Registry
from svgpbench_datasets.sources import Sources

PACKAGE = Path(str(files("svgpbench_datasets")))

WHY = "SVGPBENCH_MIRROR names no folder with copies of the upstream files"


def mirror_folder() -> Path:
    named = os.environ.get("SVGPBENCH_MIRROR", "")
    if not named or not Path(named).is_dir():
        pytest.skip(WHY)
    return Path(named)


def mirrored_registry(cache: Path) -> Registry:
    """The package's registry with a cache of its own, fed by the mirror alone."""
    sources = Sources(PACKAGE / "data", cache=cache, mirrors=(str(mirror_folder()),))
    return Registry(PACKAGE, sources)


def mirrored(path: str) -> bytes:
    """The uncompressed content of a file of the mirror."""
    folder = mirror_folder()
    for ending, opened in ((".xz", lzma.open), (".gz", gzip.open), ("", open)):
        file = folder / f"{path}{ending}"
        if file.is_file():
            with opened(file, "rb") as content:
                return bytes(content.read())
    return pytest.skip(f"the mirror has no {path}")


def manifest() -> list[dict[str, str]]:
    with (mirror_folder() / "MANIFEST.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
