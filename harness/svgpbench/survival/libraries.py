"""The libraries of a survival map: their methods, their walkers, and the Python that each runs with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from svgpbench.errors import UserError, unknown
from svgpbench.plugins import check_backend
from svgpbench.speed.peers import Peer, check_python

FOLDER = Path(__file__).parent / "walkers"
OURS = "svgpbench"


class Library(NamedTuple):
    """A library, its natural gradients with their titles, and likelihoods that it has none for."""

    walker: Path
    methods: dict[str, str]
    variable: str = ""  # that names its Python; "" for our own
    lacks: tuple[str, ...] = ()


LIBRARIES: dict[str, Library] = {
    OURS: Library(FOLDER / "ours.py", {"t-svgp": "t-SVGP", "q-svgp": "q-SVGP"}),
    "gpflow": Library(
        FOLDER / "gpflow_walker.py", {"natgrad": "GPflow"}, "SVGPBENCH_GPFLOW_PYTHON"
    ),
    "gpytorch": Library(
        FOLDER / "gpytorch_walker.py",
        {"ngd": "GPyTorch", "ngd-tril": "GPyTorch tril"},
        "SVGPBENCH_GPYTORCH_PYTHON",
    ),
    "gpjax": Library(
        FOLDER / "gpjax_walker.py",
        {"natgrad": "GPJax", "dual": "GPJax dual"},
        "SVGPBENCH_GPJAX_PYTHON",
        lacks=("softmax",),
    ),
}


def title(library: str, method: str) -> str:
    """What tables and pictures call a method."""
    return LIBRARIES[library].methods[method]


def chosen(kind: str, wanted: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    """The names asked for, all of them where none is; raises `UserError` for an unknown one."""
    names = list(known)
    for name in wanted or ():
        if name not in names:
            raise unknown(kind, name, names)
    return list(dict.fromkeys(wanted)) if wanted else names


def locate_libraries(
    wanted: Iterable[str] | None, pythons: Mapping[str, str], backend: str
) -> dict[str, Path]:
    """The Python of each library, checked; None means ours and those that `pythons` or variables name.

    Raises `UserError` for an unknown library, a Python that is missing or lacks its library, and a
    backend of ours that cannot run.
    """
    for name in pythons:
        chosen("library", [name], LIBRARIES)
    given = {name: pythons.get(name) or _variable(name) for name in LIBRARIES}
    names = chosen("library", wanted, LIBRARIES)
    found = {}
    for name in names:
        if name == OURS:
            check_backend(backend)
            found[name] = Path(sys.executable)
        elif path := given[name]:
            origin = "--python" if name in pythons else LIBRARIES[name].variable
            found[name] = check_python(_peer(name), path, origin)
        elif wanted:
            raise UserError(
                f"library {name!r} runs in an environment of its own; give that environment's python "
                f"by --python {name}=PATH or in {LIBRARIES[name].variable}"
            )
    return found


def _variable(name: str) -> str:
    return os.environ.get(LIBRARIES[name].variable, "")


def _peer(name: str) -> Peer:
    library = LIBRARIES[name]
    return Peer(name, library.walker, library.methods, library.variable)
