"""Candidates of a peer, `NAME@PATH`: a wheel or a source folder, timed beside the release."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from svgpbench.benchmarks.timing.peers.environments import Tell, make_environment
from svgpbench.benchmarks.timing.peers.peer import Peer
from svgpbench.errors import UserError

NOT_SOURCE = {".git", "__pycache__", "build", "dist", ".venv", ".tox", ".mypy_cache"}


def make_candidate(name: str, peer: Peer, location: str, tell: Tell, base: str) -> Path:
    """Return the Python of an environment with a candidate in place of the release, made by `base`.

    The versions below its requirements are the newest: a candidate may need others than the release.
    Raises `UserError` if there is no such wheel or folder, or if it cannot be installed.
    """
    path = candidate_path(name, location)
    others = [r for r in peer.requirements if _distribution(r) != _normal(peer.distribution)]
    return make_environment(name, [str(path), *others], tell, contents=_digest(path), base=base)


def candidate_path(name: str, location: str) -> Path:
    """Return the path of a candidate; raises `UserError` if there is no such wheel or source folder."""
    # not Path.expanduser, which fails for ~NAME of no user
    path = Path(os.path.expanduser(location)).absolute()
    # an empty location would be this folder
    if not location or not (path.is_dir() or (path.is_file() and path.suffix == ".whl")):
        raise UserError(f"--peer {name}@{location}: no such wheel or source folder")
    return path


def _digest(path: Path) -> str:
    """Return a digest of a wheel's bytes, or of the names, sizes and times of a folder's files.

    A folder's bytes are not read, because it may hold gigabytes.
    """
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    entries = []
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path)
        if (
            file.is_file()
            and NOT_SOURCE.isdisjoint(inside.parts)
            and ".egg-info" not in str(inside)
        ):
            status = file.stat()
            entries.append(f"{inside} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(entries).encode()).hexdigest()


def _distribution(requirement: str) -> str:
    return _normal(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])


def _normal(name: str) -> str:
    # PEP 503: names that differ in case or in -, _ and . are one distribution
    return re.sub(r"[-_.]+", "-", name).lower()
