"""Methods with two bases from a user's own experiment file."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Cli
from own_experiment import write_own

from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.cell import identify

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


def test_a_common_gamma_is_for_the_methods_with_two_bases_and_makes_no_other_cells(
    tmp_path: Path,
) -> None:
    own = resolve(load_experiment(str(write_own(tmp_path, (ONE, METHODS)))))
    everywhere = METHODS.replace("inducing = { gamma = 8 }\n", "").replace("gamma = 8, ", "")
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


def test_a_second_basis_that_is_missing_or_too_many_is_said_before_anything_runs(
    cli: Cli, tmp_path: Path
) -> None:
    write_own(tmp_path, (ONE, METHODS.replace("inducing = { gamma = 8 }\n", "")))
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 2
    assert "method 'orth' has two bases: set inducing.gamma" in outcome.err
    own = ('label = "t-SVGP"', 'label = "t-SVGP"\ninducing = { gamma = 8 }')
    write_own(tmp_path, own)
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 2
    assert "method 't-svgp' has one basis: remove inducing.gamma" in outcome.err
    write_own(tmp_path, ("count = 5", "count = 5\ngamma = 8"))
    outcome = cli("run", "mine.toml", "--jobs", "1")
    assert outcome.code == 2
    assert "error: mine.toml: [inducing] gamma is for methods with two bases" in outcome.err
    assert not list(tmp_path.glob("results/**/*.json"))
