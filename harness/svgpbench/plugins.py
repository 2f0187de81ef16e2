"""Plugins from entry points, the package's own included. Listing the backends imports no framework."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, EntryPoint, entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from svgpbench.errors import UserError, unknown
from svgpbench.ops import Capabilities, Framework, Ops
from svgpbench.source_code import SourceCode, is_own_source

OURS = frozenset({"svgpbench", "svgpbench_backends", "svgpbench_datasets", "svgpbench_papers"})
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


def loaded() -> tuple[str, ...]:
    """Return the plugins of other packages that this process has loaded, with package and version."""
    return tuple(sorted(what for what, _ in _loaded_here.values()))


def place_in_a_plugin(error: BaseException) -> str:
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
        why = _misfit(group, point.name, found)
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
    return f"{point.dist.name if point.dist else ''}:{_code(group, point, found).digest}"


def _code(group: str, point: EntryPoint, found: Any) -> SourceCode:
    """Return the sources of a plugin; `found` is its class, or None if it is not to be loaded."""
    key = (group, point.name)
    if key not in _codes:
        # a backend may not be loaded by every process that compares digests
        bases = () if group == BACKENDS else getattr(found, "__mro__", (found,))
        modules = {point.module, *(getattr(base, "__module__", point.module) for base in bases)}
        tops = {name: name.partition(".")[0] for name in modules}
        if _is_ours(point):
            _codes[key] = SourceCode(name for name in modules if tops[name] in OURS)
        else:
            own = _tops_of_plugins()
            _codes[key] = SourceCode(
                (name for name in modules if tops[name] not in OURS | sys.stdlib_module_names),
                lambda top, spec: top not in OURS and (top in own or is_own_source(spec)),
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
    return frozenset(tops - OURS)


def forget_changed() -> None:
    """Forget the plugins of other packages whose source has changed since they were loaded.

    A notebook stays while its user edits a plugin. The next use imports it, and what it imports, anew.
    """
    importlib.invalidate_caches()
    for key, code in list(_codes.items()):
        if not code.follows or code.read_again().digest == code.digest:
            continue
        del _codes[key]
        _loaded_here.pop(key, None)
        for name in [x for x in sys.modules if x.partition(".")[0] in code.tops]:
            del sys.modules[name]
        # a cached instance may hold steps that were compiled from the old code
        load_backend.cache_clear()


@functools.cache
def _own(point: EntryPoint) -> Any:
    # cached: importing again takes 40 µs, and reading records asks 50,000 times
    return point.load()


SAYS: dict[str, tuple[str, ...]] = {
    BACKENDS: ("capabilities",),
    METHODS: ("version", "info"),
    LIKELIHOODS: ("task", "support"),
    DATASETS: ("names", "describe", "load"),
}
"""Attributes that a member of a group must have to be listed and checked."""

NAMED = (BACKENDS, METHODS, LIKELIHOODS, KERNELS)
"""Groups whose members have a `name` attribute."""

WITH_DEFAULTS = (METHODS, LIKELIHOODS, KERNELS, INDUCING)
"""Groups of dataclasses in which every field has a default."""


def _misfit(group: str, name: str, found: Any) -> str:
    """Return the reason why a loaded object is not a valid member of its group; empty if it is valid."""
    if group in NAMED and (own := getattr(found, "name", None)) != name:
        return f"it calls itself {own!r}; `name` must be that of its entry point"
    if lacking := [each for each in SAYS.get(group, ()) if not hasattr(found, each)]:
        return f"it has no `{lacking[0]}`"
    if group in WITH_DEFAULTS:
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


def whole(group: str) -> dict[str, Any]:
    """Load every loadable member of a group, by name; backends that need a framework are left out."""
    return _sorted_out(group)[0]


def broken(group: str) -> dict[str, str]:
    """Return the error line of each member of a group that cannot be loaded, by name.

    Backends that need a framework are not tried.
    """
    return _sorted_out(group)[1]


def left_out(group: str) -> Iterator[tuple[str, str]]:
    """Yield (name, line) of each unused member of a group: it cannot be loaded, or its name is taken."""
    yield from broken(group).items()
    for name, (first, *others) in _claims(group, tuple(sys.path)).items():
        for point in others:
            taken = f"the name is taken by package {first.dist.name}" if first.dist else "taken"
            yield name, f"{GROUPS[group]} {name!r}{_owner(point)} takes no part: {taken}"


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


def paper_folders() -> dict[str, Traversable]:
    """Return the folder of every paper by name, those of svgpbench first.

    A paper is a folder with a `paper.toml` in a package that an entry point of papers names.
    """
    folders: dict[str, Traversable] = {}
    for package in whole(PAPERS).values():
        for folder in sorted(files(package).iterdir(), key=lambda item: item.name):
            if (folder / "paper.toml").is_file():
                # a package cannot replace a paper of ours by one of the same name
                folders.setdefault(folder.name, folder)
    return folders


@functools.cache
def registries() -> tuple[Any, ...]:
    """Return every registry of data sets that can be loaded; the result is cached."""
    return tuple(whole(DATASETS).values())


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
    return whole(FRAMEWORKS)


def framework_of(backend: str) -> Framework | None:
    """Return the `Framework` of a backend; None if it needs no framework."""
    return frameworks().get(backend)


def framework_missing(backend: str) -> str | None:
    """Return the message with the package to install if a backend's framework is missing; None otherwise."""
    framework = framework_of(backend)
    if framework is not None and importlib.util.find_spec(framework.module) is None:
        return f"backend {backend!r} needs its framework: pip install '{framework.install}'"
    return None


def computes(backend: str) -> bool:
    """Return True if a backend computes numbers, not only shapes. Imports no framework.

    Raises `UserError` if the backend cannot be loaded.
    """
    if framework_of(backend) is not None:
        return True
    return bool(load(BACKENDS, backend).capabilities.computes)


def declared_capabilities(backend: str) -> Capabilities | None:
    """Return what a backend offers, without importing its framework; None if that takes the import."""
    framework = framework_of(backend)
    if framework is not None:
        return framework.capabilities
    capabilities: Capabilities = load(BACKENDS, backend).capabilities
    return capabilities


def check_backend(name: str) -> None:
    """Raise `UserError` if a backend cannot run steps.

    It is unknown, its framework is missing, it cannot be loaded, or it computes shapes only.
    """
    find(BACKENDS, name)
    if missing := framework_missing(name):
        raise UserError(missing)
    if not computes(name):
        raise UserError(f"backend {name!r} has shapes and no numbers; it serves `svgpbench cost`")


def new_backend(name: str, mode: str = "", dtype: str = "float64", device: str = "cpu") -> Ops:
    """Create an `Ops` of a backend; `mode` "" is the backend's default.

    Raises `UserError` for an unknown backend, a missing framework, or a mode, dtype or device that
    the backend does not offer.
    """
    find(BACKENDS, name)
    if missing := framework_missing(name):
        raise UserError(missing)
    cls = load(BACKENDS, name)
    refuse_not_offered(name, cls.capabilities, mode, dtype, device)
    return cls(mode or cls.capabilities.modes[0], dtype, device)  # type: ignore[no-any-return]


def refuse_not_offered(name: str, offers: Capabilities, mode: str, dtype: str, device: str) -> None:
    """Raise `UserError` if a backend does not offer a mode ("" is its default), dtype or device."""
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


@functools.lru_cache
def load_backend(name: str, mode: str = "", dtype: str = "float64", device: str = "cpu") -> Ops:
    """Return the cached `Ops` of these arguments; all callers share it and its compiled steps."""
    return new_backend(name, mode, dtype, device)


def known_backends(names: Sequence[str] | None = None) -> list[str]:
    """Return the named backends, or for None all that are installed and compute numbers.

    Raises `UserError` for a named backend that cannot run.
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
