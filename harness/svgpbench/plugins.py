"""Plugins from entry points, the package's own included: finding, loading, and the code that they are of.

Listing the backends imports no framework. `svgpbench.backends` creates them.
"""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint, entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from svgpbench.errors import UserError, unknown
from svgpbench.ops import Capabilities, Framework
from svgpbench.source_code import SourceCode, is_own_source

OWN_PACKAGES = frozenset(
    {"svgpbench", "svgpbench_backends", "svgpbench_datasets", "svgpbench_papers"}
)
"""Top-level packages of svgpbench."""

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
"""Every group of entry points, and the word for a member in messages."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without loading them."""
    return {name: points[0] for name, points in _claims(group, tuple(sys.path)).items()}


@functools.cache
def _claims(group: str, _: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    # cached per path: reading all installed distributions takes 20 ms, and a run asks for every cell;
    # our plugins come first: they keep their names and their order whatever else is installed
    found = sorted(entry_points(group=group), key=lambda point: not _is_ours(point))
    named: dict[str, list[EntryPoint]] = {}
    for point in found:
        named.setdefault(point.name, []).append(point)
    return named


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and _name_of(point.dist) == "svgpbench"


@functools.cache
def _name_of(distribution: Distribution) -> str:
    # cached: each access parses all metadata, 3 ms for a README, and reading records asks 50,000 times
    return distribution.name


def _owner(point: EntryPoint) -> str:
    return f" of package {point.dist.name} {point.dist.version}" if point.dist else ""


_loaded_here: dict[tuple[str, str], tuple[str, str]] = {}  # other packages' plugins: title, module
_codes: dict[tuple[str, str], SourceCode] = {}  # of plugins, as they were loaded or first asked for


def loaded_plugins() -> tuple[str, ...]:
    """Return the plugins of other packages that this process has loaded, with package and version."""
    return tuple(sorted(what for what, _ in _loaded_here.values()))


def line_in_plugin(error: BaseException) -> str:
    """Return `FILE:LINE` of the innermost call in another package's plugin; empty if there is none."""
    homes: list[str] = []
    for _, module in _loaded_here.values():
        top = sys.modules.get(module.partition(".")[0])  # a package has folders, a module one file
        homes += [*getattr(top, "__path__", ())] or [str(getattr(top, "__file__", None))]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(home) for home in homes):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def is_ours(group: str, name: str) -> bool:
    """Return True if a plugin belongs to svgpbench itself."""
    return _is_ours(find(group, name))


def find(group: str, name: str) -> EntryPoint:
    """Return one entry point; raises `UserError`, with the nearest known name, if it is unknown."""
    found = plugins(group)
    if name not in found:
        raise unknown(GROUPS[group], name, found)
    return found[name]


def load(group: str, name: str) -> Any:
    """Load the object of an entry point; raises `UserError` if it is unknown or cannot be loaded."""
    return _loaded(group, find(group, name))


def _loaded(group: str, point: EntryPoint) -> Any:
    if _is_ours(point):
        return _own(point)
    what = f"{GROUPS[group]} {point.name!r}{_owner(point)}"
    try:
        found = point.load()
        why = _missing_attributes(group, point.name, found)
    except UserError as error:
        raise UserError(f"{what} cannot be loaded: {error}") from error
    except (
        Exception,
        SystemExit,
    ) as error:  # any error of third-party code is reported, not fixed here
        lines = str(error).strip().splitlines() or ["no message"]
        why = f"{type(error).__name__}: {lines[0]}"
        raise UserError(f"{what} cannot be loaded: {why}") from error
    if why:
        raise UserError(f"{what} cannot be used: {why}")
    _loaded_here[group, point.name] = what, point.module
    # now, while the file is what was loaded: it may be edited before anyone asks
    _code(group, point, found)
    return found


def code_of(group: str, name: str) -> str:
    """Return `PACKAGE:DIGEST` of the source code of a plugin. Loads no backend.

    The digest of another package's plugin is of its module and of all that it imports, except
    installed packages without plugins. That of a plugin of svgpbench is of the modules of its class and
    the classes that it inherits. It is the code that this process has loaded.
    """
    point = find(group, name)
    found = None if group == BACKENDS else _loaded(group, point)
    package = _name_of(point.dist) if point.dist else ""
    return f"{package}:{_code(group, point, found).digest}"


def _code(group: str, point: EntryPoint, found: Any) -> SourceCode:
    """Return the sources of a plugin; `found` is its class, or None if it is not to be loaded."""
    key = (group, point.name)
    if key not in _codes:
        # a backend may not be loaded by every process that compares digests
        bases = () if group == BACKENDS else getattr(found, "__mro__", (found,))
        modules = {point.module, *(getattr(base, "__module__", point.module) for base in bases)}
        tops = {name: name.partition(".")[0] for name in modules}
        if _is_ours(point):
            _codes[key] = SourceCode(name for name in modules if tops[name] in OWN_PACKAGES)
        else:
            own = _tops_of_plugins()
            _codes[key] = SourceCode(
                (
                    name
                    for name in modules
                    if tops[name] not in OWN_PACKAGES | sys.stdlib_module_names
                ),
                lambda top, spec: top not in OWN_PACKAGES and (top in own or is_own_source(spec)),
            )
    return _codes[key]


@functools.cache
def _tops_of_plugins() -> frozenset[str]:
    """Return the top-level names of the other packages that have plugins, and of their other modules."""
    tops: set[str] = set()
    for point in (
        p for group in GROUPS for ps in _claims(group, tuple(sys.path)).values() for p in ps
    ):
        tops.add(point.module.partition(".")[0])
        for file in (point.dist.files or ()) if point.dist else ():
            if file.suffix == ".py":
                tops.add(file.parts[0].removesuffix(".py"))
    return frozenset(tops - OWN_PACKAGES)


def forget_edited() -> bool:
    """Forget the plugins of other packages whose source has changed since they were loaded.

    The next use imports them, and what they import, anew. Returns True if there were any.
    """
    importlib.invalidate_caches()
    edited = [
        (key, code)
        for key, code in _codes.items()
        if code.follows and code.read_again().digest != code.digest
    ]
    for key, code in edited:
        del _codes[key]
        _loaded_here.pop(key, None)
        for name in [x for x in sys.modules if x.partition(".")[0] in code.tops]:
            del sys.modules[name]
    if edited:
        registries.cache_clear()
    return bool(edited)


@functools.cache
def _own(point: EntryPoint) -> Any:
    # cached: importing again takes 40 µs, and reading records asks 50,000 times
    return point.load()


REQUIRED_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    BACKENDS: ("capabilities",),
    METHODS: ("version", "info"),
    LIKELIHOODS: ("task", "support"),
    DATASETS: ("names", "describe", "load"),
}
"""Attributes that a member of a group must have to be listed and checked."""

GROUPS_WITH_NAMES = (BACKENDS, METHODS, LIKELIHOODS, KERNELS)
"""Groups whose members have a `name` attribute."""

GROUPS_WITH_DEFAULTS = (METHODS, LIKELIHOODS, KERNELS, INDUCING)
"""Groups of dataclasses in which every field has a default."""


def _missing_attributes(group: str, name: str, found: Any) -> str:
    """Return the reason why a loaded object is not a valid member of its group; empty if it is valid."""
    if group in GROUPS_WITH_NAMES and (own := getattr(found, "name", None)) != name:
        return f"it calls itself {own!r}; `name` must be that of its entry point"
    if lacking := [each for each in REQUIRED_ATTRIBUTES.get(group, ()) if not hasattr(found, each)]:
        return f"it has no `{lacking[0]}`"
    if group in GROUPS_WITH_DEFAULTS:
        found()
    return _misfit_of_its_kind(group, found)


def _misfit_of_its_kind(group: str, found: Any) -> str:
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
    if group == PAPERS and not hasattr(found, "__path__"):
        return "it is no package; name one whose folders are papers"
    if group == FRAMEWORKS:
        if not isinstance(found, Framework):
            return "it is no `svgpbench.ops.Framework`"
        found.environment("cpu", 1)  # called for every worker that starts, so it must not fail
    return ""


def load_all(group: str) -> dict[str, Any]:
    """Load every loadable member of a group, by name; backends that need a framework are left out."""
    return _load_each(group)[0]


def load_errors(group: str) -> dict[str, str]:
    """Return the error line of each member of a group that cannot be loaded, by name.

    Backends that need a framework are not tried.
    """
    return _load_each(group)[1]


def unused_plugins(group: str) -> Iterator[tuple[str, str]]:
    """Yield (name, line) of each unused member of a group: it cannot be loaded, or its name is taken."""
    yield from load_errors(group).items()
    for name, (first, *others) in _claims(group, tuple(sys.path)).items():
        for point in others:
            taken = f"the name is taken by package {first.dist.name}" if first.dist else "taken"
            yield name, f"{GROUPS[group]} {name!r}{_owner(point)} takes no part: {taken}"


def _load_each(group: str) -> tuple[dict[str, Any], dict[str, str]]:
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


def paper_folders() -> dict[str, Traversable]:
    """Return the folder of every paper by name, those of svgpbench first.

    A paper is a folder with a `paper.toml` in a package that an entry point of papers names.
    """
    folders: dict[str, Traversable] = {}
    for package in load_all(PAPERS).values():
        for folder in sorted(files(package).iterdir(), key=lambda item: item.name):
            if (folder / "paper.toml").is_file():
                # a package cannot replace a paper of ours by one of the same name
                folders.setdefault(folder.name, folder)
    return folders


@functools.cache
def registries() -> tuple[Any, ...]:
    """Return every registry of data sets that can be loaded; the result is cached."""
    return tuple(load_all(DATASETS).values())


def registry_codes() -> tuple[str, ...]:
    """Return the digest of the code of each other package's registry of data sets, as it was loaded."""
    registries()
    return tuple(code.digest for (group, _), code in _codes.items() if group == DATASETS)


def registry_of(name: str) -> Any:
    """Return the registry that declares a data set, or the table NAME of `NAME@OUTPUT`.

    Raises `UserError` if no registry does.
    """
    table = name.partition("@")[0]
    for registry in registries():
        if table in registry.names():
            return registry
    raise unknown("data set", table, [one for each in registries() for one in each.names()])


def frameworks() -> dict[str, Framework]:
    """Return the `Framework` of each backend that needs one, by the backend's name. Imports no framework."""
    return load_all(FRAMEWORKS)
