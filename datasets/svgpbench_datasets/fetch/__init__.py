"""Data files downloaded once, verified, and kept: the only part of the package that has a network."""

from svgpbench_datasets.fetch.answers import Answer, Unavailable
from svgpbench_datasets.fetch.fetching import (
    adopt_file,
    fetch_file,
    fetch_files,
    is_cached,
    sha256_of,
    shared_archives,
)
from svgpbench_datasets.fetch.limits import Limits, Progress
from svgpbench_datasets.fetch.places import cache_folder, mirrors_from_environment, places
from svgpbench_datasets.fetch.verifying import Accept

__all__ = [
    "Accept",
    "Answer",
    "Limits",
    "Progress",
    "Unavailable",
    "adopt_file",
    "cache_folder",
    "fetch_file",
    "fetch_files",
    "is_cached",
    "mirrors_from_environment",
    "places",
    "sha256_of",
    "shared_archives",
]
