"""docs/add-a-backend.md, followed: a backend on a framework that it declares is listed, checked and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guide import Guide

from svgpbench.backends import framework_missing
from svgpbench.results.records import read_record, record_files

pytestmark = pytest.mark.skipif(
    framework_missing("torch") is not None, reason="torch is not installed"
)


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide(tmp_path, "add-a-backend.md")


def test_the_run_of_the_page_is_of_that_backend_with_its_threads(guide: Guide) -> None:
    (command,) = guide.commands
    done = guide.run(*command)
    assert done.returncode == 0, done.stderr
    records = [read_record(path) for path in record_files(guide.folder / "runs")]
    assert {record.config.backend.name for record in records} == {"steady"}
    (pools,) = {record.environment.thread_pools for record in records}
    assert {pool.threads for pool in pools} == {1}
    assert {"torch", "steady"} <= set(records[0].environment.versions)


def test_it_is_listed_without_being_imported(guide: Guide) -> None:
    (guide.folder / "steady" / "backend.py").write_text("raise SystemExit('imported')\n")
    rows = json.loads(guide.run("list", "backends", "--json").stdout)["backends"]
    (row,) = [row for row in rows if row["name"] == "steady"]
    assert row["installed"] is True
    assert row["version"]


def test_a_framework_that_is_missing_is_named_with_what_installs_it(guide: Guide) -> None:
    guide.changed("steady/framework.py", ('module="torch"', 'module="no_such_module"'))
    refused = guide.run("check", "--backend", "steady")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: backend 'steady' needs its framework: pip install 'steady[torch]'\n"
    )


def test_the_doctor_imports_its_framework(guide: Guide) -> None:
    found = json.loads(guide.run("doctor", "--deep", "--json").stdout)
    (one,) = [one for one in found if one["what"] == "steady"]
    assert one["state"] == "ok"
    assert " on cpu" in one["found"] or " on cuda" in one["found"]


PINNED = """
from svgpbench.runs.worker_setup import pin, worker_environment
pin("steady", 1, [])
import torch
print(torch.get_num_threads(), torch.get_num_interop_threads())
print("CUBLAS_WORKSPACE_CONFIG" in worker_environment("cuda", 1))
print("CUBLAS_WORKSPACE_CONFIG" in worker_environment("cpu", 1))
"""


def test_its_worker_has_its_variables_and_threads(guide: Guide) -> None:
    done = guide.run(program=PINNED)
    assert done.stdout.split() == ["1", "1", "True", "False"], done.stderr
