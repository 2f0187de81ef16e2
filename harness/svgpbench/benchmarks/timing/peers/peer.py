"""Definition of a peer library, an entry point of the group `svgpbench.peers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Peer:
    """Library whose steps are timed beside ours, in its own environment."""

    distribution: str
    """Name of the library for pip. The version of this distribution names a candidate."""

    module: str
    requirements: tuple[str, ...]
    """Pinned requirements to install, the library among them."""

    script: Path
    """Script that `serve.py` loads. Its environment has none of svgpbench's packages."""

    methods: Mapping[str, str]
    """Names of the library's methods, each with the family that its M-step agrees with."""

    variable: str
    """Environment variable that may name a Python with the library."""

    constraints: Path | None = None
    """File of the versions of all packages below the requirements, as pip's `--constraint` reads it."""

    pythons: tuple[str, ...] = ()
    """Python versions that have all these packages, such as "3.12", best first; any if empty."""


class Located(NamedTuple):
    """Peer and the Python that has it."""

    peer: Peer
    python: Path
