"""Methods with two bases from a user's own experiment file."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Cli
from own_experiment import write_own

METHODS = """[[methods]]
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
ONE = METHODS.split("\n\n", maxsplit=1)[0] + "\n"


def test_coupled_and_decoupled_methods_share_an_experiment(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path, (ONE, METHODS), ("run_folds = [0, 1]", "run_folds = [0]"))
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 0, outcome.err
    assert "4 cells: 4 ok" in outcome.out
    rows = json.loads(cli("table", "mine.toml", "--json").out)["rows"]
    assert len(rows) == 4
    assert all(row["ok"] == 1 for row in rows)


def test_a_second_basis_that_is_missing_or_too_many_is_said_before_anything_runs(
    cli: Cli, tmp_path: Path
) -> None:
    write_own(tmp_path, (ONE, METHODS.replace("inducing = { gamma = 8 }\n", "")))
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 2
    assert "method 'orth' has two bases: set inducing.gamma" in outcome.err
    write_own(tmp_path, ("count = 5", "count = 5\ngamma = 8"))
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 2
    assert "method 't-svgp' has one basis: remove inducing.gamma" in outcome.err
    assert not list(tmp_path.glob("results/**/*.json"))
