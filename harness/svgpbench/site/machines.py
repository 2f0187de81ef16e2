"""Where each record was made: machines, and the versions, sources and threads of every experiment there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from svgpbench.environment import Environment
from svgpbench.results.records import Record
from svgpbench.site.pages import in_bytes


class Setup(NamedTuple):
    """Software and settings that records of one experiment share."""

    python: str
    versions: tuple[tuple[str, str], ...]
    threads: int
    pools: tuple[str, ...]  # BLAS and OpenMP libraries
    commit: str
    dirty: bool
    plugins: tuple[str, ...]


class Made(NamedTuple):
    """Records of one experiment with one setup."""

    experiment: str
    setup: Setup
    records: int
    first: str
    last: str


class Machine(NamedTuple):
    """A machine as its records describe it."""

    cpu: str
    cores: int
    memory: str
    system: str
    gpu: str
    made: tuple[Made, ...]


def machines_of(records: Iterable[Record]) -> tuple[list[Machine], int]:
    """The machines, and how many records do not say where they were made."""
    found: dict[tuple[str, int, str, str, str], dict[tuple[str, Setup], list[Record]]] = {}
    silent = 0
    for record in records:
        place = record.environment
        if place is None:
            silent += 1
            continue
        key = (place.cpu, place.cores, in_bytes(place.memory_bytes), place.system, place.gpu or "")
        both = (record.config.experiment, _setup(place))
        found.setdefault(key, {}).setdefault(both, []).append(record)
    return [Machine(*key, _made(of)) for key, of in found.items()], silent


def _setup(place: Environment) -> Setup:
    pools = {f"{pool.name} {pool.version or ''}".strip() for pool in place.thread_pools}
    return Setup(
        place.python,
        tuple(place.versions.items()),
        place.threads,
        tuple(sorted(pools)),
        (place.commit or "")[:12],
        bool(place.dirty),
        place.plugins,
    )


def _made(of: dict[tuple[str, Setup], list[Record]]) -> tuple[Made, ...]:
    return tuple(
        Made(experiment, setup, len(records), *_days(records))
        for (experiment, setup), records in of.items()
    )


def _days(records: Sequence[Record]) -> tuple[str, str]:
    days = sorted(f"{record.started:%Y-%m-%d}" for record in records)
    return days[0], days[-1]
