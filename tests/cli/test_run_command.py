"""A user's own table, from experiment file to records to table, here and on a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Cli
from own_experiment import write_own

from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.cell import identify


def test_an_own_table_runs_and_a_second_run_keeps_what_is_there(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    first = cli("run", "mine.toml", "--jobs", "1")
    assert first.code == 0
    assert "2 cells: 2 ok" in first.out
    assert "next: svgpbench table mine.toml" in first.out
    assert "[2/2] rows, fold 1, t-SVGP, numpy: ok" in first.err

    second = json.loads(cli("run", "mine.toml", "--jobs", "1", "--json").out)
    assert (second["counts"], second["from_earlier_runs"]) == ({"ok": 2}, 2)

    table = json.loads(cli("table", "mine.toml", "--json").out)
    (row,) = table["rows"]
    assert (row["data"], row["ok"]) == ("rows", 2)
    assert row["nlpd_original_mean"] is not None
    assert cli("plot", "mine.toml").code == 0
    assert (tmp_path / "mine.png").exists()


def test_a_cell_that_ends_badly_makes_the_run_end_with_1(cli: Cli, tmp_path: Path) -> None:
    write_own(
        tmp_path,
        ("m_steps = 2", "m_steps = 2\ne_rate = 0.5\ne_steps = 1"),
        ('name = "t-svgp"', 'name = "q-svgp"\noptions = { optimiser = "natgrad" }'),
        ("e_rate = 0.5", "e_rate = 1e9"),
        ("[kernel]", "jitter = 0.0\n[kernel]"),
    )
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 1
    assert "rows, fold 0, t-SVGP, numpy: " in outcome.out


EVERY_FAMILY = """
label = "t-SVGP"
name = "t-svgp"

[[methods]]
name = "gpr"
training = { optimiser = "l-bfgs" }

[[methods]]
name = "sgpr"
training = { optimiser = "l-bfgs", m_steps = 3 }

[[methods]]
name = "t-vgp"

[[methods]]
name = "q-vgp"
options = { whiten = false }
"""


def test_exact_collapsed_and_full_methods_run_from_a_file(cli: Cli, tmp_path: Path) -> None:
    write_own(
        tmp_path,
        ('label = "t-SVGP"\nname = "t-svgp"\n', EVERY_FAMILY),
        ("run_folds = [0, 1]", "run_folds = [0]"),
        ("count = 5", 'count = 30\ninit = "random"'),  # all rows
        ("lengthscale = 1.0", 'lengthscale = 1.0\nname = "se"'),
    )
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 0, outcome.err
    assert "5 cells: 5 ok" in outcome.out
    rows = {
        row["method"]: row for row in json.loads(cli("table", "mine.toml", "--json").out)["rows"]
    }
    assert set(rows) == {"t-SVGP", "gpr", "sgpr", "t-vgp", "q-vgp"}
    assert rows["gpr"]["rmse_mean"] < 0.5
    assert rows["gpr"]["elbo_mean"] > rows["t-vgp"]["elbo_mean"]  # as it climbs more steeply
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").rglob("*.json")]
    traces = [record["trace"]["elbo"] for record in records]
    assert [len(trace) for trace in traces] == [2] * 5
    first = [trace[0] for trace in traces]  # before any M-step all are exact, but for the jitter
    assert max(first) - min(first) < 1e-4


def test_an_own_table_runs_on_a_cluster_as_it_does_here(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))
    from dask_cluster import dask_cluster

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


TWO_BASES = """[[methods]]
label = "t-SVGP"
name = "t-svgp"

[[methods]]
label = "ORTHNAT"
name = "orth"
options = { coupled = "q-svgp natgrad", gamma_rate = 0.05, subset = 4 }
inducing = { gamma = 8 }

[[methods]]
label = "HYBRID"
name = "hybrid"
inducing = { gamma = 8 }
training = { e_rate = 0.05, batch_size = 10 }

[[methods]]
label = "DECOUPLED"
name = "decoupled"
inducing = { gamma = 8, count = 4 }
training = { e_rate = 0.05, e_steps = 5 }
"""
ONE = TWO_BASES.split("\n\n", maxsplit=1)[0] + "\n"


def test_coupled_and_decoupled_methods_share_an_experiment(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path, (ONE, TWO_BASES), ("run_folds = [0, 1]", "run_folds = [0]"))
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 0, outcome.err
    assert "4 cells: 4 ok" in outcome.out
    rows = json.loads(cli("table", "mine.toml", "--json").out)["rows"]
    assert len(rows) == 4
    assert all(row["ok"] == 1 for row in rows)


def test_a_common_gamma_is_for_the_methods_with_two_bases_and_makes_no_other_cells(
    tmp_path: Path,
) -> None:
    own = resolve(load_experiment(str(write_own(tmp_path, (ONE, TWO_BASES)))))
    everywhere = TWO_BASES.replace("inducing = { gamma = 8 }\n", "").replace("gamma = 8, ", "")
    file = write_own(tmp_path, (ONE, everywhere), ("count = 5", "count = 5\ngamma = 8"))
    common = resolve(load_experiment(str(file)))
    assert common == own
    assert [identify(cell).cell_id for cell in common] == [identify(cell).cell_id for cell in own]
    assert {cell.method.name: cell.inducing.gamma for cell in common} == {
        "t-svgp": None,
        "orth": 8,
        "hybrid": 8,
        "decoupled": 8,
    }
