"""What comes through entry points, ours by the same door; a listing of backends imports none."""

from __future__ import annotations

import functools
import importlib.util
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from svgpbench.errors import UserError, unknown
from svgpbench.ops import Framework, Ops

BACKENDS, METHODS, DATASETS = "svgpbench.backends", "svgpbench.methods", "svgpbench.datasets"
FRAMEWORKS = "svgpbench.frameworks"
FIGURES, TABLES = "svgpbench.figures", "svgpbench.tables"
PEERS = "svgpbench.peers"
PAPERS = "svgpbench.papers"
COMPUTED = "svgpbench.computed"
LIKELIHOODS, KERNELS, INDUCING = "svgpbench.likelihoods", "svgpbench.kernels", "svgpbench.inducing"
GROUPS = {
    BACKENDS: "backend",
    METHODS: "method",
    DATASETS: "registry of data sets",
    LIKELIHOODS: "likelihood",
    KERNELS: "kernel",
    INDUCING: "initialisation of inducing inputs",
    FRAMEWORKS: "framework",
    FIGURES: "kind of figure",
    TABLES: "kind of table",
    PEERS: "peer",
    PAPERS: "package of papers",
    COMPUTED: "computation of claims",
}
"""Every group of entry points, and what a message calls one of it."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group by name, without loading any of them."""
    return _plugins(group, tuple(sys.path))


@functools.cache
def _plugins(group: str, _: tuple[str, ...]) -> dict[str, EntryPoint]:
    # read once a path: a look at every installed distribution takes 20 ms, a run asks for each cell
    # ours come first, so that what takes turns does so alike whoever else is installed, and keep their names
    found = sorted(entry_points(group=group), key=lambda point: not _is_ours(point))
    named: dict[str, EntryPoint] = {}
    for point in found:
        named.setdefault(point.name, point)
    return named


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == "svgpbench"


def find(group: str, name: str) -> EntryPoint:
    """One entry point; raises `UserError` with the nearest known name."""
    found = plugins(group)
    if name not in found:
        raise unknown(GROUPS[group], name, found)
    return found[name]


def load(group: str, name: str) -> Any:
    """What an entry point names; raises `UserError` for an unknown one and one that cannot be loaded."""
    return _loaded(group, find(group, name))


def _loaded(group: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # somebody else's code: whatever it raises is theirs to mend
        owner = f" of package {point.dist.name} {point.dist.version}" if point.dist else ""
        lines = str(error).strip().splitlines() or ["no message"]
        why = f"{type(error).__name__}: {lines[0]}"
        raise UserError(f"{GROUPS[group]} {point.name!r}{owner} cannot be loaded: {why}") from error


def whole(group: str) -> dict[str, Any]:
    """Everything of a group that can be loaded, by name."""
    return _sorted_out(group)[0]


def broken(group: str) -> dict[str, str]:
    """One line for each of a group that cannot be loaded, by name; a backend's framework is not tried."""
    return _sorted_out(group)[1]


def _sorted_out(group: str) -> tuple[dict[str, Any], dict[str, str]]:
    found: dict[str, Any] = {}
    lines: dict[str, str] = {}
    for name, point in plugins(group).items():
        if group == BACKENDS and name in frameworks():
            continue
        try:
            found[name] = _loaded(group, point)
        except UserError as error:
            lines[name] = str(error)
    return found, lines


@functools.cache
def registries() -> tuple[Any, ...]:
    """Every registry of data sets that can be loaded, looked up once."""
    return tuple(whole(DATASETS).values())


def registry_of(name: str) -> Any:
    """The registry that declares a data set, or the table of `NAME@OUTPUT`.

    Raises `UserError` where none does.
    """
    table = name.partition("@")[0]
    for registry in registries():
        if table in registry.names():
            return registry
    raise unknown("data set", table, [one for each in registries() for one in each.names()])


def frameworks() -> dict[str, Framework]:
    """What backends stand on, by their names; imports none of it."""
    return whole(FRAMEWORKS)


def framework_of(backend: str) -> Framework | None:
    """What a backend stands on; None where that is nothing to import."""
    return frameworks().get(backend)


def framework_missing(backend: str) -> str | None:
    """What to install for a backend whose framework is absent; None where it is present."""
    framework = framework_of(backend)
    if framework is not None and importlib.util.find_spec(framework.module) is None:
        return f"backend {backend!r} needs its framework: pip install '{framework.install}'"
    return None


def computes(backend: str) -> bool:
    """Whether a backend has numbers, and not shapes alone; imports no framework.

    Raises `UserError` for one that cannot be loaded.
    """
    if framework_of(backend) is not None:
        return True
    return bool(load(BACKENDS, backend).capabilities.computes)


def check_backend(name: str) -> None:
    """Refuse a backend that cannot run steps.

    Raises `UserError` for an unknown one, a missing framework, one that cannot be loaded, or one that
    has shapes and no numbers.
    """
    find(BACKENDS, name)
    if missing := framework_missing(name):
        raise UserError(missing)
    if not computes(name):
        raise UserError(f"backend {name!r} has shapes and no numbers; it serves `svgpbench cost`")


def new_backend(name: str, mode: str = "", dtype: str = "float64", device: str = "cpu") -> Ops:
    """A new `Ops` of a backend; `mode` "" is its default.

    Raises `UserError` for an unknown backend, a missing framework, or a mode, dtype or device that
    the backend does not offer.
    """
    find(BACKENDS, name)
    if missing := framework_missing(name):
        raise UserError(missing)
    cls = load(BACKENDS, name)
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
