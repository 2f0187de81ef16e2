"""What comes through entry points, ours by the same door; a listing of backends imports none."""

from __future__ import annotations

import functools
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import Any

from svgpbench.errors import UserError, unknown
from svgpbench.importing import FRAMEWORK_LIMIT_S, LIMIT_S, limit_s, within
from svgpbench.ops import Capabilities, Framework, Ops

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


def _plugins(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    return {name: points[0] for name, points in _claims(group, path).items()}


@functools.cache
def _claims(group: str, _: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    # read once a path: a look at every installed distribution takes 20 ms, a run asks for each cell
    # ours come first, so that what takes turns does so alike whoever else is installed, and keep their names
    found = sorted(entry_points(group=group), key=lambda point: not _is_ours(point))
    named: dict[str, list[EntryPoint]] = {}
    for point in found:
        named.setdefault(point.name, []).append(point)
    return named


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and _name_of(point.dist) == "svgpbench"


@functools.cache
def _name_of(distribution: Distribution) -> str:
    # each look parses all its metadata, 3 ms of a README; whoever reads records asks fifty thousand times
    return distribution.name


def _owner(point: EntryPoint) -> str:
    return f" of package {point.dist.name} {point.dist.version}" if point.dist else ""


_loaded_here: dict[tuple[str, str], tuple[str, str]] = {}  # of other packages: what, and its module


def loaded() -> tuple[str, ...]:
    """Every plugin of another package that this process has loaded: what it is, its package and version."""
    return tuple(sorted(what for what, _ in _loaded_here.values()))


def place_in_a_plugin(error: BaseException) -> str:
    """`FILE:LINE` of the innermost call in a plugin of another package; empty where it raised in none."""
    homes = [home for _, module in _loaded_here.values() for home in _homes(module)]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(home) for home in homes):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def _homes(module: str) -> list[str]:
    """The folders of the package that a module is in, or its file."""
    top = sys.modules.get(module.partition(".")[0])
    return [*getattr(top, "__path__", ())] or [str(getattr(top, "__file__", None))]


def is_ours(group: str, name: str) -> bool:
    """Whether a plugin is of this package."""
    return _is_ours(find(group, name))


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
    if _is_ours(point):
        return point.load()
    what = f"{GROUPS[group]} {point.name!r}{_owner(point)}"
    heavy = group == BACKENDS and point.name in frameworks()
    limit = limit_s(FRAMEWORK_LIMIT_S if heavy else LIMIT_S)
    try:
        found = within(point.module, point.load, limit)
        why = _misfit(group, point.name, found)
    except UserError as error:
        raise UserError(f"{what} cannot be loaded: {error}") from error
    except (
        Exception,
        SystemExit,
    ) as error:  # whatever somebody else's code raises is theirs to mend
        lines = str(error).strip().splitlines() or ["no message"]
        why = f"{type(error).__name__}: {lines[0]}"
        raise UserError(f"{what} cannot be loaded: {why}") from error
    if why:
        raise UserError(f"{what} cannot be used: {why}")
    _loaded_here[group, point.name] = what, point.module
    return found


SAYS: dict[str, tuple[str, ...]] = {
    BACKENDS: ("capabilities",),
    METHODS: ("version", "facts"),
    LIKELIHOODS: ("task", "support"),
    DATASETS: ("names", "describe", "load"),
}
"""What one of a group must have for others to be listed and checked beside it."""

NAMED = (BACKENDS, METHODS, LIKELIHOODS, KERNELS)
"""Groups whose members say their names themselves."""

WITH_DEFAULTS = (METHODS, LIKELIHOODS, KERNELS, INDUCING)
"""Groups of dataclasses whose every field has a default."""


def _misfit(group: str, name: str, found: Any) -> str:
    """Why what somebody's entry point names is not what it is listed as; empty where it is."""
    if group in NAMED and (own := getattr(found, "name", None)) != name:
        return f"it calls itself {own!r}; `name` must be that of its entry point"
    if lacking := [each for each in SAYS.get(group, ()) if not hasattr(found, each)]:
        return f"it has no `{lacking[0]}`"
    if group == METHODS and not isinstance(found.version, int):
        return (
            f"its `version` is {found.version!r}; give a whole number, raised when numbers change"
        )
    if group == BACKENDS:
        offers = found.capabilities
        if not isinstance(offers, Capabilities) or not (
            offers.modes and offers.dtypes and offers.devices
        ):
            return "its `capabilities` name no mode, dtype or device"
    if group == FRAMEWORKS:
        if not isinstance(found, Framework):
            return "it is no `svgpbench.ops.Framework`"
        found.environment("cpu", 1)  # asked for whoever's worker starts
    if group in WITH_DEFAULTS:
        found()
    return ""


def whole(group: str) -> dict[str, Any]:
    """Everything of a group that can be loaded, by name."""
    return _sorted_out(group)[0]


def broken(group: str) -> dict[str, str]:
    """One line for each of a group that cannot be loaded, by name; a backend's framework is not tried."""
    return _sorted_out(group)[1]


def left_out(group: str) -> Iterator[tuple[str, str]]:
    """Name and one line for each of a group that takes no part: it cannot be loaded, or has a name taken."""
    yield from broken(group).items()
    for name, (first, *others) in _claims(group, tuple(sys.path)).items():
        for point in others:
            taken = f"the name is taken by package {first.dist.name}" if first.dist else "taken"
            yield name, f"{GROUPS[group]} {name!r}{_owner(point)} takes no part: {taken}"


def _sorted_out(group: str) -> tuple[dict[str, Any], dict[str, str]]:
    found: dict[str, Any] = {}
    lines: dict[str, str] = {}
    limit_s(LIMIT_S)  # a limit that is no number is the user's mistake, not a plugin's
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


def known_backends(names: Sequence[str] | None = None) -> list[str]:
    """The backends asked for, or all that are installed and compute.

    Raises `UserError` for one asked for that cannot run.
    """
    if names is None:
        unusable = broken(BACKENDS)
        return [
            name
            for name in plugins(BACKENDS)
            if name not in unusable and framework_missing(name) is None and computes(name)
        ]
    for name in names:
        check_backend(name.partition(":")[0])
    return list(names)
