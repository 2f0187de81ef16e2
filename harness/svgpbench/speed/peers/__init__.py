"""Peer libraries that steps are compared with, each run by the Python of its own environment.

A peer's script speaks the protocol of `svgpbench.speed.worker` and imports nothing of svgpbench.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from svgpbench.errors import UserError, unknown


class Peer(NamedTuple):
    """A peer library: what it imports, its script, its methods, and who names its Python."""

    module: str
    script: Path
    methods: dict[str, str]  # its name for the method -> the group that its M-step agrees with
    variable: str


PEERS: dict[str, Peer] = {
    "gpflow": Peer(
        "gpflow",
        Path(__file__).parent / "gpflow_peer.py",
        {"natgrad": "q-svgp"},
        "SVGPBENCH_GPFLOW_PYTHON",
    ),
}


def locate_peers(names: Iterable[str] | None, python: str | None = None) -> dict[str, Path]:
    """The Python of each peer, checked; None means those that a variable or `python` provides.

    Raises `UserError` for an unknown peer, and for a Python that is missing or lacks the peer.
    """
    wanted = list(names) if names is not None else [p for p in PEERS if _given(PEERS[p], python)]
    found = {}
    for name in wanted:
        if name not in PEERS:
            raise unknown("peer", name, PEERS)
        peer = PEERS[name]
        given = _given(peer, python)
        if not given:
            raise UserError(
                f"peer {name!r} runs in an environment of its own; give that environment's python "
                f"by --peer-python or in {peer.variable}"
            )
        found[name] = check_python(peer, given, "--peer-python" if python else peer.variable)
    return found


def _given(peer: Peer, python: str | None) -> str | None:
    return python or os.environ.get(peer.variable) or None


def check_python(peer: Peer, given: str, origin: str) -> Path:
    """The interpreter at `given`, once it says that it has the peer; `origin` is who named it."""
    path = shutil.which(given)
    if path is None:
        raise UserError(f"{origin} {given}: no such program; give the path of a python")
    question = f"import importlib.util as u; print(u.find_spec({peer.module!r}) is not None)"
    try:
        answer = subprocess.run(
            [path, "-I", "-c", question],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        raise UserError(f"{origin} {given}: is not a python that runs") from None
    if answer == "False":
        raise UserError(
            f"{origin} {given}: has no {peer.module}; install it there: "
            f"{given} -m pip install {peer.module}"
        )
    if answer != "True":
        raise UserError(f"{origin} {given}: is not a python that runs")
    return Path(path)
