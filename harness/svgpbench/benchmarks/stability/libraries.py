"""Libraries of a stability map: their methods, their scripts, and the Python of each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from svgpbench.backends import check_backend
from svgpbench.benchmarks.timing.peers import check_python, locate_peers, peer_python
from svgpbench.benchmarks.timing.peers.libraries import GPFLOW, GPJAX, GPYTORCH
from svgpbench.environment import OURS
from svgpbench.errors import UserError, refuse_unknown, select
from svgpbench.plugins import PEERS, load


class Library(NamedTuple):
    """Library with its script for `serve.py` and its natural-gradient methods, by name with their titles.

    `likelihoods` are those that its script builds with these methods; None means every likelihood.
    """

    script: Path
    methods: dict[str, str]
    likelihoods: tuple[str, ...] | None = None

    def has(self, likelihood: str) -> bool:
        """Return True if its script builds a likelihood."""
        return self.likelihoods is None or likelihood in self.likelihoods


OF_ONE_LATENT = ("gaussian", "bernoulli-probit")
LIBRARIES: dict[str, Library] = {
    OURS: Library(Path(__file__).with_name("ours.py"), {"t-svgp": "t-SVGP", "q-svgp": "q-SVGP"}),
    "gpflow": Library(GPFLOW.script, {"natgrad": "GPflow"}, (*OF_ONE_LATENT, "softmax")),
    "gpytorch": Library(
        GPYTORCH.script,
        {"ngd": "GPyTorch", "tril-ngd": "GPyTorch tril"},
        (*OF_ONE_LATENT, "softmax"),
    ),
    "gpjax": Library(GPJAX.script, {"whitened": "GPJax", "dual": "GPJax dual"}, OF_ONE_LATENT),
}


def title(library: str, method: str) -> str:
    """Return the title of a method in tables and figures."""
    return LIBRARIES[library].methods[method]


def locate_libraries(
    names: Iterable[str] | None, pythons: Mapping[str, str], backend: str
) -> dict[str, Path]:
    """Return the checked Python of each library. Without `names`: svgpbench and the installed peers.

    A named peer that is not installed gets an environment. Raises `UserError` for an unknown
    library, a Python that is missing or lacks its library, and a backend of ours that cannot run.
    """
    refuse_unknown("library", pythons, LIBRARIES)
    if OURS in pythons:
        raise UserError(
            f"--python {OURS}={pythons[OURS]}: svgpbench runs in its own Python; leave it out"
        )
    paths = {}
    for name in select("library", names, LIBRARIES):
        if name == OURS:
            check_backend(backend)
            paths[name] = Path(sys.executable)
        elif name in pythons:
            paths[name] = check_python(load(PEERS, name), pythons[name], "--python")
        elif names or peer_python(name):
            paths[name] = locate_peers([name])[name].python
    return paths
