"""Libraries of a stability map: their methods, their scripts, and the Python of each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from svgpbench.benchmarks.timing.peers import check_python, locate_peers, peer_python
from svgpbench.benchmarks.timing.peers.libraries import GPFLOW, GPJAX, GPYTORCH
from svgpbench.errors import unknown
from svgpbench.plugins import PEERS, check_backend, load

OURS = "svgpbench"


class Library(NamedTuple):
    """Library with its script for `serve.py` and its natural-gradient methods, by name with their titles.

    It has no such method for the likelihoods in `lacks`.
    """

    script: Path
    methods: dict[str, str]
    lacks: tuple[str, ...] = ()


LIBRARIES: dict[str, Library] = {
    OURS: Library(Path(__file__).with_name("ours.py"), {"t-svgp": "t-SVGP", "q-svgp": "q-SVGP"}),
    "gpflow": Library(GPFLOW.script, {"natgrad": "GPflow"}),
    "gpytorch": Library(GPYTORCH.script, {"ngd": "GPyTorch", "ngd-tril": "GPyTorch tril"}),
    "gpjax": Library(GPJAX.script, {"natgrad": "GPJax", "dual": "GPJax dual"}, lacks=("softmax",)),
}


def title(library: str, method: str) -> str:
    """Return the title of a method in tables and figures."""
    return LIBRARIES[library].methods[method]


def chosen(kind: str, wanted: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    """Return the wanted names, or all known ones by default. Raises `UserError` for an unknown name."""
    names = list(known)
    for name in wanted or ():
        if name not in names:
            raise unknown(kind, name, names)
    return list(dict.fromkeys(wanted)) if wanted else names


def locate_libraries(
    wanted: Iterable[str] | None, pythons: Mapping[str, str], backend: str
) -> dict[str, Path]:
    """Return the checked Python of each library; `wanted=None` means ours and the installed peers.

    A peer that is wanted by name but not installed gets an environment. Raises `UserError` for an unknown
    library, a Python that is missing or lacks its library, and a backend of ours that cannot run.
    """
    for name in pythons:
        chosen("library", [name], LIBRARIES)
    found = {}
    for name in chosen("library", wanted, LIBRARIES):
        if name == OURS:
            check_backend(backend)
            found[name] = Path(sys.executable)
        elif name in pythons:
            found[name] = check_python(load(PEERS, name), pythons[name], "--python")
        elif wanted or peer_python(name):
            found[name] = locate_peers([name])[name].python
    return found
