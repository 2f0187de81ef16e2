"""`svgpbench doctor --compare`: what differs from where a record was made, and what does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from synthetic_records import quick_cells, synthetic_record

from svgpbench.cli.environment_diff import environment_here
from svgpbench.config import BackendConfig
from svgpbench.environment import Environment
from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.records import Record, write_record

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def here() -> Environment:
    return environment_here(BackendConfig(name="numpy"), 1)


@pytest.fixture(autouse=True)
def asked_once(here: Environment, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker's environment is asked for once for all tests: it takes a process."""
    monkeypatch.setattr("svgpbench.cli.environment_diff.environment_here", lambda *_: here)
    yield


def made(here: Environment | None, **changes: Any) -> Record:
    cell = quick_cells()[0].model_copy(update={"backend": BackendConfig(name="numpy")})
    environment = here.model_copy(update=changes) if here else None
    return synthetic_record(cell).model_copy(update={"environment": environment})


def test_where_it_was_made_nothing_differs(cli: Cli, here: Environment, tmp_path: Path) -> None:
    record = made(here)
    path = write_record(tmp_path, record)
    done = cli("doctor", "--compare", path)
    assert done.code == 0, done.err
    assert done.out == f"nothing differs from where {record.cell_id}, numpy, 2024-01-01 ran\n"
    assert json.loads(cli("doctor", "--compare", path, "--json").out) == []


CHANGES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "python": ({"python": "3.9.1"}, ("python", "3.9.1")),
    "cpu": ({"cpu": "an abacus"}, ("cpu", "an abacus")),
    "cores": ({"cores": 4096}, ("cores", "4096")),
    "memory": ({"memory_bytes": 3 << 29}, ("memory", "1.5 GiB")),
    "gpu": ({"gpu": "a card"}, ("gpu", "a card", "none")),
    "threads": ({"threads": 7}, ("threads", "7", "1")),
    "commit": ({"commit": "f" * 40, "dirty": True}, ("commit", "ffffffffffff+")),
    "plugin": ({"plugins": ("method 'x' of package y 1",)}, ("plugin", "y 1", "not here")),
    "thread pool": ({"thread_pools": ()}, ("thread pool", "not here", "blas: ")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_otherwise_is_a_line(
    cli: Cli, here: Environment, tmp_path: Path, what: str
) -> None:
    changes, words = CHANGES[what]
    done = cli("doctor", "--compare", write_record(tmp_path, made(here, **changes)))
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith(what)]
    assert lines and all(word in lines[0] for word in words)
    assert len(done.out.splitlines()) == 1 + len(lines)


def test_packages_are_compared_both_ways(cli: Cli, here: Environment, tmp_path: Path) -> None:
    versions = here.versions | {"numpy": "1.0", "gone": "2.0"}
    del versions["scipy"]
    path = write_record(tmp_path, made(here, versions=versions))
    found = json.loads(cli("doctor", "--compare", path, "--json").out)
    assert [(x["what"], x["then"], x["now"]) for x in found] == [
        ("gone", "2.0", "not here"),
        ("numpy", "1.0", here.versions["numpy"]),
        ("scipy", "not here", here.versions["scipy"]),
    ]


@pytest.mark.parametrize("kept", [True, False])
def test_a_cell_s_id_is_found_among_results(
    cli: Cli, here: Environment, tmp_path: Path, kept: bool
) -> None:
    record = made(here, python="3.9.1")
    results = tmp_path / "results"
    if kept:
        write_parquet_records(results, [record])
    else:
        write_record(results, record)
    done = cli("doctor", "--compare", record.cell_id, "--results", results)
    assert done.code == 0, done.err
    assert "3.9.1" in done.out


def test_a_record_whose_worker_died_says_so(cli: Cli, tmp_path: Path) -> None:
    refused = cli("doctor", "--compare", write_record(tmp_path, made(None)))
    assert refused.code == 2
    assert "its worker died" in refused.err


def test_a_worker_has_the_pools_and_threads_of_a_record(here: Environment) -> None:
    assert {pool.threads for pool in here.thread_pools} == {1}
    assert here.threads == 1
    assert {"numpy", "scipy", "svgpbench"} <= here.versions.keys()


def test_a_lock_is_every_package_as_pip_pins_it(
    cli: Cli, here: Environment, tmp_path: Path
) -> None:
    path = write_record(tmp_path, made(here))
    done = cli("doctor", "--lock", path)
    assert done.code == 0, done.err
    about, *pins = done.out.splitlines()
    assert about.startswith(f"# record {made(here).cell_id}: Python {here.python}, svgpbench ")
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.partition("==")[0].lower() for line in installed.stdout.splitlines()}
    locked = {line.partition("==")[0].lower() for line in pins}
    assert {"numpy", "pytest"} <= locked and all("==" in line for line in pins)
    assert {re.sub("[-_.]+", "-", x) for x in locked} >= {
        re.sub("[-_.]+", "-", x) for x in names if " @ " not in x
    } - {"svgpbench"}
    assert not any(line.startswith("svgpbench") for line in pins)


def test_a_record_from_before_locks_says_so(cli: Cli, here: Environment, tmp_path: Path) -> None:
    done = cli("doctor", "--lock", write_record(tmp_path, made(here, lock=())))
    assert done.code == 2
    assert "before records had a lock" in done.err
