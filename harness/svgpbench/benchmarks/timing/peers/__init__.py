"""Peer libraries that steps are compared with, each run by the Python of its own environment.

All peers are entry points, also those that come with svgpbench. A peer's script speaks the protocol of
`svgpbench.benchmarks.timing.worker` through `serve.py`. Those of svgpbench are in `svgpbench.libraries`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from svgpbench.benchmarks.timing.peers.candidates import candidate_path, make_candidate
from svgpbench.benchmarks.timing.peers.environments import (
    Tell,
    find_base_python,
    find_environment,
    make_environment,
)
from svgpbench.benchmarks.timing.peers.peer import Located, Peer
from svgpbench.errors import UserError
from svgpbench.plugins import PEERS, load, load_all

__all__ = ["SERVE", "Located", "Peer", "known_peers", "locate_peers"]

SERVE = Path(__file__).with_name("serve.py")
"""Script that a peer's Python runs, with the peer's script as its first argument."""


def known_peers() -> dict[str, Peer]:
    """Return every peer that can be loaded, by name."""
    return load_all(PEERS)


def locate_peers(
    names: Iterable[str] | None, python: str | None = None, tell: Tell = lambda text: None
) -> dict[str, Located]:
    """Return the peers to be timed, by their names in tables, each with a Python that has it.

    Args:
        names: `NAME`, or `NAME@PATH` for a candidate beside the release; None means the peers that a
            variable or `python` provides.
        python: Python that has the releases; by default that of a peer's variable, or of an environment
            that is made on demand.
        tell: called with one line of text at each step of making an environment.

    Raises:
        UserError: for an unknown peer, a Python that is missing or lacks the peer, an environment that
            cannot be made, and two candidates of one version.
    """
    located: dict[str, Located] = {}
    requests = _provided(python) if names is None else list(names)
    # first: a mistake is refused before an environment is made, which takes minutes
    for request in requests:
        name, at, candidate = request.partition("@")
        load(PEERS, name)
        if at:
            candidate_path(name, candidate)
    for request in requests:
        name, _, candidate = request.partition("@")
        peer: Peer = load(PEERS, name)
        if name not in located:
            located[name] = Located(peer, _release_python(name, peer, python, tell))
        if candidate:
            base = _base_python(name, peer)
            candidate_python = make_candidate(name, peer, candidate, tell, base)
            label = f"{name}@{_version(peer, candidate_python, f'--peer {request}')}"
            if label in located:
                raise UserError(
                    f"--peer {request}: another candidate is {label} too; give it a version"
                )
            located[label] = Located(peer, candidate_python)
    return located


def peer_python(name: str) -> str | None:
    """Return the Python of a peer's variable or of an existing environment, or None. Makes nothing."""
    peer: Peer = load(PEERS, name)
    if named_python := os.environ.get(peer.variable):
        return named_python
    base = find_base_python(peer.pythons)
    if base is None:
        return None
    environment = find_environment(name, peer.requirements, constraints=peer.constraints, base=base)
    return str(environment) if environment else None


def _provided(python: str | None) -> list[str]:
    """Return the names of the peers that `python` has, or by default of those with a variable."""
    peers = known_peers()
    if python is None:
        return [name for name, peer in peers.items() if os.environ.get(peer.variable)]
    names = [name for name, peer in peers.items() if _has(peer.module, python, "--peer-python")]
    if not names:
        raise UserError(f"--peer-python {python}: has none of the peers ({', '.join(peers)})")
    return names


def _release_python(name: str, peer: Peer, python: str | None, tell: Tell) -> Path:
    """Return the Python of a peer's release. Makes an environment if no Python is named."""
    named_python = python or os.environ.get(peer.variable)
    if not named_python:
        base = _base_python(name, peer)
        return make_environment(
            name, peer.requirements, tell, constraints=peer.constraints, base=base
        )
    return check_python(peer, named_python, "--peer-python" if python else peer.variable)


def _base_python(name: str, peer: Peer) -> str:
    """Return the Python that makes a peer's environment. Raises `UserError` if there is none."""
    base = find_base_python(peer.pythons)
    if base is None:
        raise UserError(
            f"peer {name!r} runs on Python {', '.join(sorted(peer.pythons))}, and none of these is on PATH; "
            "install one, or name a python that has the peer by --peer-python"
        )
    return base


def check_python(peer: Peer, python: str, origin: str) -> Path:
    """Return the path of a Python, after checking that it has the peer.

    Raises `UserError` otherwise, with `origin`, the option or variable that named it.
    """
    if not _has(peer.module, python, origin):
        raise UserError(
            f"{origin} {python}: has no {peer.module}; install it there: "
            f"{python} -m pip install {peer.distribution}"
        )
    path = shutil.which(python)
    assert path is not None
    return Path(path)


def _has(module: str, python: str, origin: str) -> bool:
    # found, not imported: the import of a framework takes seconds
    question = f"import importlib.util as u; print(u.find_spec({module!r}) is not None)"
    answer = _ask(question, python, origin)
    if answer not in ("True", "False"):
        raise UserError(f"{origin} {python}: is not a python that runs")
    return answer == "True"


def _version(peer: Peer, python: Path, origin: str) -> str:
    check_python(peer, str(python), origin)
    return _ask(
        f"import importlib.metadata as m; print(m.version({peer.distribution!r}))",
        str(python),
        origin,
    )


def _ask(question: str, python: str, origin: str) -> str:
    path = shutil.which(python)
    if path is None:
        raise UserError(f"{origin} {python}: no such program; give the path of a python")
    try:
        return subprocess.run(
            # -I: no PYTHONPATH and no file of the current folder may answer for its packages
            [path, "-I", "-c", question],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        raise UserError(f"{origin} {python}: is not a python that runs") from None
