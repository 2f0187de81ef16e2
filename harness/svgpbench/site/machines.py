"""Machines of the records, with the versions, sources and threads of each experiment on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from svgpbench.environment import Environment
from svgpbench.output.number_formats import in_bytes
from svgpbench.results.records import Record


class Setup(NamedTuple):
    """Software and settings that several records share."""

    python: str
    versions: tuple[tuple[str, str], ...]
    threads: int
    pools: tuple[str, ...]  # BLAS and OpenMP libraries
    commit: str
    dirty: bool
    plugins: tuple[str, ...]


class Made(NamedTuple):
    """Number and dates of the records of one experiment with one setup."""

    experiment: str
    setup: Setup
    records: int
    first: str
    last: str


class Machine(NamedTuple):
    """Machine as its records describe it."""

    cpu: str
    cores: int
    memory: str
    system: str
    gpu: str
    made: tuple[Made, ...]


def machines_of(records: Iterable[Record]) -> tuple[list[Machine], int]:
    """Return the machines, and the number of records without an environment."""
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
