"""What a peer library is: an entry of the group `svgpbench.peers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Peer:
    """A library whose steps ours are timed next to, in an environment of its own."""

    distribution: str
    """Its name for pip; its version names a candidate."""

    module: str
    requirements: tuple[str, ...]
    """What is installed, pinned, the library among it."""

    script: Path
    """What `serve.py` loads; it imports nothing of svgpbench."""

    methods: Mapping[str, str]
    """Its name for a method, and the group that the method's M-step agrees with."""

    variable: str
    """The environment variable that may name a Python which has it."""


class Located(NamedTuple):
    """A peer and the Python that has it."""

    peer: Peer
    python: Path
