"""Data files downloaded once, verified, and kept: the only part of the package that has a network."""

from svgpbench_datasets.fetch.cache import cache_folder, is_cached, sha256_of
from svgpbench_datasets.fetch.fetching import adopt_file, fetch_files
from svgpbench_datasets.fetch.limits import Limits, OnProgress, Progress, silent
from svgpbench_datasets.fetch.places import Answer, Unavailable, mirrors_from_environment, places
from svgpbench_datasets.fetch.proof import Accept, Proof, WrongContent, proof_of
from svgpbench_datasets.fetch.unpacking import Bounded, content

__all__ = [
    "Accept",
    "Answer",
    "Bounded",
    "Limits",
    "OnProgress",
    "Progress",
    "Proof",
    "Unavailable",
    "WrongContent",
    "adopt_file",
    "cache_folder",
    "content",
    "fetch_files",
    "is_cached",
    "mirrors_from_environment",
    "places",
    "proof_of",
    "sha256_of",
    "silent",
]
