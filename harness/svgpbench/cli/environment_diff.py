"""Differences between this machine and environment and those of a record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from svgpbench.config import BackendConfig, Strict
from svgpbench.environment import Environment, ThreadPool
from svgpbench.errors import UserError
from svgpbench.results.records import Record, is_record_name, read_record
from svgpbench.results.store import record_by_id
from svgpbench.runs.worker_setup import worker_environment

LIMIT_S = 120.0
ABSENT = "not here"

# in the order of a worker: BLAS and OpenMP are described once they are loaded and pinned
ASK_WORKER = """
import contextlib, importlib, sys
from svgpbench.environment import describe
from svgpbench.backends import load_backend
from svgpbench.runs.protocol import TARGET
from svgpbench.runs.worker_setup import pin
backend, mode, dtype, device, threads = sys.argv[1:]
pin(backend, int(threads), [])
importlib.import_module(TARGET)
with contextlib.suppress(Exception):  # a missing framework is one of the differences
    load_backend(backend, mode, dtype, device)
print(describe(int(threads), device).model_dump_json())
"""


class Difference(Strict):
    """One property that differs between a record's environment and this one."""

    what: str
    then: str
    now: str


def record_named(text: str, results: Path) -> Record:
    """Return the record of a JSON file, or the record in `results` with a cell id.

    Raises `UserError` if the file is not a record, no record has this id, or `text` is neither.
    """
    if text.endswith(".json"):
        return read_record(Path(text))
    if not is_record_name(f"{text}.json"):
        raise UserError(
            f"{text!r} is no record: give the path of its .json, or the cell's id (16 hexadecimal digits)"
        )
    record = record_by_id(results, text)
    if record is None:
        raise UserError(f"no record of cell {text} in {results}; name its folder with --results")
    return record


def environment_of(record: Record) -> Environment:
    """Return the environment of a record. Raises `UserError` if there is none: its worker died."""
    if record.environment is None:
        raise UserError(f"the record of {record.cell_id} says no environment: its worker died")
    return record.environment


def environment_here(backend: BackendConfig, threads: int) -> Environment:
    """Return the environment that a worker would have on this machine.

    A separate process describes it. Raises `UserError` if this process fails.
    """
    arguments = (backend.name, backend.mode, backend.dtype, backend.device, str(threads))
    try:
        done = subprocess.run(
            [sys.executable, "-c", ASK_WORKER, *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=os.environ | worker_environment(backend.device, threads),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"a worker cannot be asked: {error}") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"a worker cannot be asked: {reason}")
    return Environment.model_validate_json(done.stdout.strip().splitlines()[-1])


def differences(then: Environment, now: Environment) -> Iterator[Difference]:
    """Yield the differences between two environments; `affinity` and `lock` are not compared."""
    for what, old, new in (
        ("python", then.python, now.python),
        ("system", then.system, now.system),
        ("cpu", then.cpu, now.cpu),
        ("cores", str(then.cores), str(now.cores)),
        ("memory", _gib(then.memory_bytes), _gib(now.memory_bytes)),
        ("gpu", then.gpu or "none", now.gpu or "none"),
        ("threads", str(then.threads), str(now.threads)),
        ("commit", commit_of(then), commit_of(now)),
    ):
        if old != new:
            yield Difference(what=what, then=old, now=new)
    for name in sorted(then.versions.keys() | now.versions.keys()):
        old, new = (x.versions.get(name, ABSENT) for x in (then, now))
        if old != new:
            yield Difference(what=name, then=old, now=new)
    yield from _one_sided("plugin", then.plugins, now.plugins)
    yield from _one_sided(
        "thread pool", map(_pool, then.thread_pools), map(_pool, now.thread_pools)
    )


def _one_sided(what: str, then: Iterable[str], now: Iterable[str]) -> Iterator[Difference]:
    """Yield one difference per text that one side has and the other lacks; repeats count."""
    old, new = Counter(then), Counter(now)
    for text in (old - new).elements():
        yield Difference(what=what, then=text, now=ABSENT)
    for text in (new - old).elements():
        yield Difference(what=what, then=ABSENT, now=text)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def commit_of(environment: Environment) -> str:
    """Return the first 12 digits of the commit, with `+` if the sources differed from it."""
    if environment.commit is None:
        return "no checkout"
    return environment.commit[:12] + ("+" if environment.dirty else "")


def _pool(pool: ThreadPool) -> str:
    version = f" {pool.version}" if pool.version else ""
    return f"{pool.api}: {pool.name}{version}, {pool.threads} thread{'s' * (pool.threads != 1)}"
