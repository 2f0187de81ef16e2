"""Machines of the records, with the versions, sources and threads of each experiment on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from svgpbench.output.number_formats import in_bytes
from svgpbench.results.records import Record


class Setup(NamedTuple):
    """Software and settings that records share."""

    python: str
    versions: tuple[tuple[str, str], ...]
    threads: int
    pools: tuple[str, ...]  # BLAS and OpenMP libraries
    commit: str
    dirty: bool
    plugins: tuple[str, ...]


class RecordGroup(NamedTuple):
    """Number and dates of the records of one experiment with one setup."""

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
    groups: tuple[RecordGroup, ...]


def machines_of(records: Iterable[Record]) -> tuple[list[Machine], int]:
    """Return the machines, and the number of records without an environment."""
    records_of: dict[tuple[str, int, str, str, str], dict[tuple[str, Setup], list[Record]]] = {}
    silent = 0
    for record in records:
        environment = record.environment
        if environment is None:
            silent += 1
            continue
        memory, gpu = in_bytes(environment.memory_bytes), environment.gpu or ""
        machine = (environment.cpu, environment.cores, memory, environment.system, gpu)
        pools = {f"{pool.name} {pool.version or ''}".strip() for pool in environment.thread_pools}
        setup = Setup(
            environment.python,
            tuple(environment.versions.items()),
            environment.threads,
            tuple(sorted(pools)),
            (environment.commit or "")[:12],
            bool(environment.dirty),
            environment.plugins,
        )
        group = (record.config.experiment, setup)
        records_of.setdefault(machine, {}).setdefault(group, []).append(record)
    machines = [
        Machine(
            *machine,
            tuple(
                RecordGroup(*group, len(same), min(map(_day, same)), max(map(_day, same)))
                for group, same in groups.items()
            ),
        )
        for machine, groups in records_of.items()
    ]
    return machines, silent


def _day(record: Record) -> str:
    return f"{record.started:%Y-%m-%d}"
