"""`svgpbench run` on a cluster: what its options mean, and mistakes in them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Cli
from own_experiment import write_own

pytest.importorskip("distributed", reason="the extra `dask` is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))
from dask_cluster import dask_cluster


def test_an_own_table_runs_on_a_cluster_as_it_does_here(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    with dask_cluster(tmp_path, 2) as address:
        there = cli("run", "mine.toml", "--dask", address, "--results", "there")
    assert there.code == 0, there.err
    assert "2 cells: 2 ok" in there.out
    assert cli("run", "mine.toml", "--jobs", "1", "--results", "here").code == 0
    tables = [
        json.loads(cli("table", "mine.toml", "--json", "--results", name).out)["rows"]
        for name in ("here", "there")
    ]
    for rows in tables:
        for row in rows:
            row.pop("seconds_mean", None), row.pop("seconds_error", None)
    assert tables[0] == tables[1]
    again = cli("run", "mine.toml", "--jobs", "1", "--results", "there")
    assert "(2 from earlier runs)" in again.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dask", "tcp://127.0.0.1:1"], "--dask tcp://127.0.0.1:1: no Dask scheduler answers"),
        (["--dask", "nowhere"], "--dask nowhere: give HOST:PORT, such as 10.0.0.7:8786"),
        (["--dask", "tls://x"], "--dask tls://x: give HOST:PORT"),
        (["--dask", "nowhere://x:1"], "--dask nowhere://x:1: no Dask scheduler answers"),
        (["--dask", "a", "--jobs", "2"], "--jobs is of this machine"),
    ],
)
def test_mistakes_are_one_line(
    cli: Cli, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.cli.clusters.CONNECT_S", 2.0)
    write_own(tmp_path)
    outcome = cli("run", "mine.toml", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
