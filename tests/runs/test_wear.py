"""A worker that holds many memory mappings is replaced before the kernel ends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from fake_cells import make_config
from process_watch import holder

from svgpbench.runs import memory_mappings
from svgpbench.runs.events import Summary

Run = Callable[..., Summary]

pytestmark = pytest.mark.skipif(
    memory_mappings.mappings_allowed() is None, reason="Linux counts mappings"
)

HOLDS = """
import mmap, sys
held = [mmap.mmap(-1, 4096, prot=1 + at % 2) for at in range(int(sys.argv[1]))]  # neighbours do not merge
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("count", [2_000, 40_000])
def test_mappings_are_counted_and_more_than_a_share_is_worn(count: int) -> None:
    """Of a process that holds so many more than Python's own."""
    with holder(HOLDS, count) as (pid, said):
        assert said == "ready"
        held, allowed = memory_mappings.mappings(pid), memory_mappings.mappings_allowed()
        assert held is not None
        assert allowed is not None
        assert count <= held < count + 1_000
        assert memory_mappings.near_mapping_limit(pid, 10) is (held > allowed / 2)
        assert not memory_mappings.near_mapping_limit(pid, 11)  # it is not looked at


def test_a_process_that_has_ended_is_not_worn() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert not memory_mappings.near_mapping_limit(process.pid, 10)


def test_a_worn_worker_is_replaced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_mappings, "LIMIT_SHARE", 0.0)
    monkeypatch.setattr(memory_mappings, "COUNT_INTERVAL", 2)
    records = run(*(make_config("finish", seed) for seed in range(5))).records
    assert [record.worker.cells_before for record in records] == [0, 1, 0, 1, 0]
