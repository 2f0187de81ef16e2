"""A user's own table, from experiment file to records to table."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Cli
from own_experiment import write_own


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
