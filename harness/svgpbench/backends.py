"""Backends: which can run here, and their `Ops`."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence

from svgpbench.errors import UserError
from svgpbench.ops import Capabilities, Framework, Ops
from svgpbench.plugins import BACKENDS, find, forget_edited, frameworks, load, load_errors, plugins


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


def check_backend(text: str) -> None:
    """Raise `UserError` if a backend such as `torch` or `torch:compile` cannot run steps.

    It is unknown, its framework is missing, it cannot be loaded, it computes shapes only, or it offers no
    such mode as far as that is known without importing its framework.
    """
    name, _, mode = text.partition(":")
    find(BACKENDS, name)
    if missing := framework_missing(name):
        raise UserError(missing)
    if not computes(name):
        raise UserError(f"backend {name!r} computes shapes only; use it with `svgpbench cost`")
    if (offers := declared_capabilities(name)) is not None:
        refuse_not_offered(name, offers, mode, offers.dtypes[0], offers.devices[0])


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

    Raises `UserError` for a named backend that cannot run, and for one text in place of a list.
    """
    if isinstance(names, str):
        raise UserError(f"backends are one text {names!r}; give a list of names")
    if names is None:
        unusable = load_errors(BACKENDS)
        return [
            name
            for name in plugins(BACKENDS)
            if name not in unusable and framework_missing(name) is None and computes(name)
        ]
    for name in names:
        check_backend(name)
    return list(names)


def forget_changed() -> None:
    """Forget plugins of other packages whose source has changed, and what was compiled from it.

    A notebook stays while its user edits a plugin.
    """
    if forget_edited():
        # a cached instance may hold steps that were compiled from the old code
        load_backend.cache_clear()
