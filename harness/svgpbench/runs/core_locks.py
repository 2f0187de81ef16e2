"""Several runs on one machine: each takes first the cores that no other run of this user has."""

from __future__ import annotations

import platform
from pathlib import Path

from platformdirs import user_cache_path

from svgpbench.errors import UserError
from svgpbench.results.cell_locks import Claims


def core_file() -> Path:
    """Where the cores of this machine are claimed; one home may serve several machines."""
    return user_cache_path("svgpbench", appauthor=False) / f"cores-{platform.node()}"


class CoreClaims:
    """The cores that a run has, until it closes them or dies.

    Where no file can be kept, every core counts as free: two runs may then share some, and are slower.
    """

    def __init__(self, path: Path) -> None:
        self._claims: Claims | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._claims = Claims(path)
        except (OSError, UserError):
            pass

    def choose(self, cores: tuple[int, ...], count: int) -> tuple[int, ...]:
        """`count` of the cores: those that are free, now claimed, before those that another run has."""
        own: list[int] = []
        for core in cores:
            if len(own) < count and (self._claims is None or self._claims.take(str(core))):
                own.append(core)
        return tuple([*own, *(core for core in cores if core not in own)][:count])

    def close(self) -> None:
        """Leave them to others."""
        if self._claims is not None:
            self._claims.close()
