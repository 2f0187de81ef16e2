"""Backends, methods, data sets, figures and tables found through entry points; a listing imports none."""

from __future__ import annotations

import functools
import importlib.util
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from svgpbench.errors import UserError, unknown
from svgpbench.ops import Ops

BACKENDS, METHODS, DATASETS = "svgpbench.backends", "svgpbench.methods", "svgpbench.datasets"
FIGURES, TABLES = "svgpbench.figures", "svgpbench.tables"
FRAMEWORK_EXTRAS = ("jax", "torch", "tensorflow")
"""Backends whose framework comes with an extra of the same name."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group by name, without loading any of them."""
    return _plugins(group, tuple(sys.path))


@functools.cache
def _plugins(group: str, _: tuple[str, ...]) -> dict[str, EntryPoint]:
    # read once a path: a look at every installed distribution takes 20 ms, a run asks for each cell
    return {point.name: point for point in entry_points(group=group)}


def find(group: str, kind: str, name: str) -> EntryPoint:
    """One entry point; raises `UserError` with the nearest known name."""
    found = plugins(group)
    if name not in found:
        raise unknown(kind, name, found)
    return found[name]


@functools.cache
def registries() -> tuple[Any, ...]:
    """Every registry of data sets, looked up once."""
    return tuple(point.load() for point in plugins(DATASETS).values())


def registry_of(name: str) -> Any:
    """The registry that declares a data set, or the table of `NAME@OUTPUT`.

    Raises `UserError` where none does.
    """
    table = name.partition("@")[0]
    for registry in registries():
        if table in registry.names():
            return registry
    raise unknown("data set", table, [one for each in registries() for one in each.names()])


def framework_missing(backend: str) -> str | None:
    """What to install for a backend whose framework is absent; None where it is present."""
    if backend in FRAMEWORK_EXTRAS and importlib.util.find_spec(backend) is None:
        return f"backend {backend!r} needs its framework: pip install 'svgpbench[{backend}]'"
    return None


def computes(backend: str) -> bool:
    """Whether a backend has numbers, and not shapes alone; imports no framework of an extra.

    One that cannot be loaded counts as computing, so that whoever runs it says what is wrong with it.
    """
    if backend in FRAMEWORK_EXTRAS:
        return True
    try:
        return bool(find(BACKENDS, "backend", backend).load().capabilities.computes)
    except ImportError:
        return True


def check_backend(name: str) -> None:
    """Refuse a backend that cannot run steps.

    Raises `UserError` for an unknown one, a missing framework, or one that has shapes and no numbers.
    """
    find(BACKENDS, "backend", name)
    if missing := framework_missing(name):
        raise UserError(missing)
    if not computes(name):
        raise UserError(f"backend {name!r} has shapes and no numbers; it serves `svgpbench cost`")


def new_backend(name: str, mode: str = "", dtype: str = "float64", device: str = "cpu") -> Ops:
    """A new `Ops` of a backend; `mode` "" is its default.

    Raises `UserError` for an unknown backend, a missing framework, or a mode, dtype or device that
    the backend does not offer.
    """
    point = find(BACKENDS, "backend", name)
    if missing := framework_missing(name):
        raise UserError(missing)
    cls = point.load()
    offers = cls.capabilities
    mode = mode or offers.modes[0]
    for what, value, known in (
        ("mode", mode, offers.modes),
        ("dtype", dtype, offers.dtypes),
        ("device", device, offers.devices),
    ):
        if value not in known:
            raise UserError(
                f"backend {name!r} offers no {what} {value!r} (it has: {', '.join(known)})"
            )
    return cls(mode, dtype, device)  # type: ignore[no-any-return]


@functools.lru_cache
def load_backend(name: str, mode: str = "", dtype: str = "float64", device: str = "cpu") -> Ops:
    """The one `Ops` that every caller shares, so that its compiled steps are shared too."""
    return new_backend(name, mode, dtype, device)
