"""An experiment in shards on two machines, put together, tabled and compared, as a user does it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from command_line import Cli
from command_table import TWO
from own_experiment import write_own

from svgpbench.results.records import record_files
from svgpbench.results.store import records_in


@pytest.fixture
def here(cli: Cli, place: Path, tmp_path: Path) -> Path:
    """An experiment of a user, whole in one folder and in two shards of others, where `cli` runs."""
    for name in ("whole", "shards"):
        shutil.copytree(place / name, tmp_path / name)
    write_own(tmp_path, TWO)
    return tmp_path


def test_shards_put_together_make_the_table_of_one_run(cli: Cli, here: Path) -> None:
    parts = [len(record_files(here / "shards" / place)) for place in "12"]
    assert parts == [2, 2]
    done = cli("collect", "shards", "--into", "r")
    assert (done.code, done.out, done.err) == (0, "r: 4 records added, 0 were there\n", "")
    assert cli("collect", "shards/1", "shards/2", "--into", "r").out.startswith("r: 0 records")
    tables = [cli("table", "mine.toml", "--results", x, "--json") for x in ("r", "whole")]
    assert tables[0] == tables[1]
    assert cli("run", "mine.toml", "--results", "r").out.startswith("4 cells: 4 ok (4 from")
    # and folder against folder: the bits of each cell
    found = json.loads(cli("compare", "whole", "r", "--json").out)
    assert {row["outcome"] for row in found["rows"]} == {"equal"}
    assert "4 of 4 pairs have the same bits, times left out" in found["notes"]


def test_records_become_a_table(cli: Cli, here: Path) -> None:
    done = cli("collect", "shards", "whole", "--out", "cells.parquet")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("cells.parquet: 4 cells (4 ok), ")
    table = pd.read_parquet("cells.parquet").set_index("cell_id")
    for record in records_in(here / "whole", "mine").records:
        assert table.loc[record.cell_id, "nlpd"] == record.metrics["nlpd"]
    done = cli("collect", "whole", "--out", "traces.csv", "--traces")
    assert done.out.startswith("traces.csv: 4 cells (4 ok), 8 trace points, ")
    assert len(pd.read_csv("traces.csv")) == 8


def test_what_a_reader_must_know_is_a_line_on_stderr(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    first, second, *_ = record_files(here / "whole")
    first.write_bytes(first.read_bytes()[:50])
    (here / "rows.csv").unlink()
    done = cli("collect", "whole", "--out", "cells.csv")
    damaged, unknown = done.err.splitlines()
    assert damaged.startswith(f"warning: left out: {first.relative_to(here)} is not a record")
    assert unknown.startswith("warning: 3 of 3 cells are unknown: ") and "rows.csv" in unknown
    second.write_text(second.read_text().replace('"schema_version": 2', '"schema_version": 7'))
    done = cli("collect", "whole", "--into", "r")
    assert (done.code, done.out) == (2, "")
    assert "use the version that wrote it" in done.err
    assert not (here / "r").exists()


def test_methods_of_an_own_experiment_are_compared(cli: Cli, here: Path) -> None:
    arguments = ("--experiment", "mine.toml", "--results", "whole")
    done = cli("compare", "t-svgp", "Q", *arguments, "--metric", "nlpd")
    assert (done.code, done.err) == (0, "")
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == "mine: t-SVGP against q"
    assert "NLPD (test), lower is better" in lines
    (row,) = (line for line in lines if line.startswith("rows "))
    found = json.loads(cli("compare", "t-SVGP", "q", *arguments, "--json").out)
    nlpd = next(entry for entry in found["rows"] if entry["metric"] == "nlpd")
    assert [entry["metric"] for entry in found["rows"]] == ["elbo", "nlpd", "rmse"]
    assert nlpd["region"] == 0.01 and nlpd["pairs"] == 2
    low, high = nlpd["interval"]
    assert low < nlpd["difference"] < high
    for number in (nlpd["difference"], low, high):
        assert f"{number:+.3g}" in row
    assert f" {nlpd['outcome']} " in row and nlpd["note"] in row
    assert f"t-SVGP is {nlpd['outcome']} in 1 of 1" in done.out
    assert "with its 95 % interval" in done.out
