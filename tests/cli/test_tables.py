"""Tables of synthetic records: what they say, and what they refuse to mix."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from command_line import Cli
from synthetic_records import quick_cells, synthetic_record, write_all

from svgpbench.config import CellConfig
from svgpbench.experiments import Selection, load_experiment, resolve
from svgpbench.results.records import write_record

FIG3 = "adam2021-fig3"


def rows(cli: Cli, results: Path, *arguments: str) -> dict[tuple[str, str, str], dict[str, object]]:
    table = json.loads(cli("table", FIG3, "--results", results, "--json", *arguments).out)
    return {(row["data"], row["method"], row["backend"]): row for row in table["rows"]}


def changed(cell: CellConfig, **training: object) -> CellConfig:
    return cell.model_copy(update={"training": cell.training.model_copy(update=training)})


def test_a_row_is_the_mean_and_standard_error_over_folds(cli: Cli, quick_results: Path) -> None:
    row = rows(cli, quick_results)["airfoil", "t-SVGP", "jax"]
    first, second = (
        synthetic_record(cell).metrics["nlpd"]
        for cell in quick_cells()
        if (cell.data.name, cell.method.title, cell.backend.name) == ("airfoil", "t-SVGP", "jax")
    )
    assert first is not None and second is not None
    assert row["ok"] == 2
    assert row["nlpd_mean"] == pytest.approx((first + second) / 2)
    overlap = 25 / (100 + len("airfoil"))
    error = abs(first - second) / math.sqrt(2) * math.sqrt(1 / 2 + overlap)
    assert row["nlpd_se"] == pytest.approx(error)
    assert row["elbo_se"] is None  # it takes five starts a split
    out = cli("table", FIG3, "--results", quick_results).out
    assert "±: standard error, of a test score over splits, corrected for their overlap" in out


def test_failed_cells_are_counted_by_status_and_in_no_mean(cli: Cli, quick_results: Path) -> None:
    row = rows(cli, quick_results)["sonar", "q-SVGP Adam", "torch"]
    assert (row["cells"], row["ok"], row["failed"]) == (2, 1, {"not_pd": 1})
    assert row["nlpd_se"] is None
    out = cli("table", FIG3, "--results", quick_results).out
    assert "1 not_pd" in out
    assert "failed besides: sonar, q-SVGP Adam: torch 1 not_pd, tensorflow 1 not_pd" in out


def test_the_difference_between_backends_stands_beside_that_of_rounding(
    cli: Cli, tmp_path: Path
) -> None:
    cells = resolve(load_experiment(FIG3), "paper")
    write_all(tmp_path / "r", [cell for cell in cells if cell.data.name == "pima"])
    row = rows(cli, tmp_path / "r")["pima", "t-SVGP", "jax"]
    assert row["backends_differ"] == pytest.approx(2e-13, rel=0.01)
    assert row["rounding_differs"] == pytest.approx(1e-12, rel=0.01)
    assert row["cells"] == 5  # replicas are not replicates
    assert "Δ rounding" in cli("table", FIG3, "--results", "r").out


def test_a_terminal_table_fits_in_120_columns_and_loses_nothing(
    cli: Cli, quick_results: Path
) -> None:
    out = cli("table", FIG3, "--results", quick_results).out
    assert max(map(len, out.splitlines())) <= 120
    assert "…" not in out
    assert [name for name in ("airfoil", "boston:no-rad", "pima") if name not in out] == []
    assert out.index("airfoil") < out.index("concrete:5") < out.index("sonar")  # as declared


def test_every_format_has_every_row(cli: Cli, quick_results: Path) -> None:
    listed = list(csv.DictReader(io.StringIO(cli(*table(quick_results), "--csv").out)))
    assert len(listed) == len(rows(cli, quick_results)) == 6 * 3 * 3
    assert json.loads(listed[0]["failed"]) == {}
    markdown = cli(*table(quick_results), "--markdown", "--backend", "torch").out
    assert markdown.count("\n| ") + markdown.startswith("| ") == 3 * 2 + 6 * 3 + 3  # ranks


def table(results: Path) -> tuple[str | Path, ...]:
    return ("table", FIG3, "--results", results)


def test_backends_can_be_chosen(cli: Cli, quick_results: Path) -> None:
    out = cli(*table(quick_results), "--backend", "torch", "--backend", "jax").out
    assert "torch" in out
    assert "tensorflow" not in out


def test_cells_that_have_not_run_are_told(cli: Cli, tmp_path: Path) -> None:
    write_all(tmp_path / "r", quick_cells()[:9])
    out = cli("table", FIG3, "--results", "r", "--preset", "quick").out
    assert "99 of 108 cells have not run" in out


def test_two_lengths_of_training_are_not_mixed(cli: Cli, tmp_path: Path) -> None:
    cell, other = quick_cells()[0], quick_cells()[1]
    write_all(tmp_path / "r", [cell, changed(other, em_iterations=10)])
    outcome = cli("table", FIG3, "--results", "r")
    assert outcome.code == 2
    assert "airfoil, t-SVGP differ in training.em_iterations" in outcome.err
    assert cli("table", FIG3, "--results", "r", "--preset", "quick").code == 0


def test_rows_of_different_lengths_of_training_are_noted(cli: Cli, tmp_path: Path) -> None:
    t_svgp, q_svgp = quick_cells()[0], quick_cells()[3]
    write_all(tmp_path / "r", [t_svgp, changed(q_svgp, em_iterations=10)])
    out = cli("table", FIG3, "--results", "r").out
    assert "rows differ in training.em_iterations" in " ".join(out.split())


def test_records_of_another_version_of_a_method_are_left_out_and_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svgpbench.methods.dual import DualSVGP

    cells = [cell for cell in quick_cells() if cell.data.name == "pima"]
    with monkeypatch.context() as patch:
        patch.setattr(DualSVGP, "version", DualSVGP.version + 1)
        write_all(tmp_path / "r", cells)
    out = cli("table", FIG3, "--results", "r").out
    assert "6 records left out: made by version 2 of t-svgp, now at 1" in out
    assert "t-SVGP" not in out.replace("q-SVGP", "")


def test_records_of_another_schema_are_refused(cli: Cli, tmp_path: Path) -> None:
    path = write_record(tmp_path / "r", synthetic_record(quick_cells()[0]))
    path.write_text(path.read_text().replace('"schema_version": 2', '"schema_version": 99'))
    outcome = cli("table", FIG3, "--results", "r")
    assert (outcome.code, "record schema 99" in outcome.err) == (2, True)


PRESETS = """
name = "sizes"
backends = ["jax"]

[split]
run_folds = [0]

[[problems]]
data = ["sonar"]
likelihood = { name = "bernoulli-probit" }

[[methods]]
label = "t-SVGP"
name = "t-svgp"

[presets.short]
training = { em_iterations = 5 }

[presets.long]
seeds = [0, 1, 2]
training = { em_iterations = 9 }
"""


def test_without_a_preset_a_table_shows_what_is_there_and_says_of_which(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "sizes.toml").write_text(PRESETS)
    sizes = load_experiment(str(tmp_path / "sizes.toml"))
    write_all(tmp_path / "r", resolve(sizes, "short"))
    alone = cli("table", "sizes.toml", "--results", "r")
    assert alone.code == 0
    assert "all records here: preset short 1 of 1 cells" in alone.out
    write_all(tmp_path / "r", resolve(sizes, "long")[:2])
    both = cli("table", "sizes.toml", "--results", "r", "--json")
    assert both.code == 0
    (row,) = json.loads(both.out)["rows"]
    assert row["cells"] == 2
    line = "these are of preset long; records here: preset short 1 of 1 cells, preset long 2 of 3 cells"
    assert line in json.loads(both.out)["notes"]
    drawn = cli("plot", "sizes.toml", "--results", "r", "--out", "f.png")
    assert drawn.code == 0
    assert line in " ".join(drawn.out.split())


def test_a_backend_outside_the_preset_is_chosen_as_run_chooses_it(cli: Cli, tmp_path: Path) -> None:
    """Of Figure 3 no preset has NumPy."""
    declared = load_experiment(FIG3)
    assert "numpy" not in {cell.backend.name for cell in quick_cells()}
    write_all(tmp_path / "r", resolve(declared, "quick", Selection(backends=["numpy"])))
    chosen = ("--results", "r", "--preset", "quick", "--backend", "numpy")
    table = cli("table", FIG3, *chosen)
    assert (table.code, "have not run" in table.out) == (0, False), table.err
    assert cli("plot", FIG3, *chosen, "--out", "figure.png").code == 0
    compared = cli("compare", "t-SVGP", "q-SVGP Adam", "--experiment", FIG3, *chosen, "--json")
    assert compared.code == 0
    assert {row["backend"] for row in json.loads(compared.out)["rows"]} == {"numpy"}
    assert cli("table", FIG3, *chosen[:4]).code == 2  # the preset's own backends have not run


def test_a_damaged_record_is_left_out_of_a_table_and_named(cli: Cli, tmp_path: Path) -> None:
    whole, cut = quick_cells()[:2]
    write_record(tmp_path / "r", synthetic_record(whole))
    path = write_record(tmp_path / "r", synthetic_record(cut))
    path.write_text(path.read_text()[:200])
    outcome = cli("table", FIG3, "--results", "r")
    assert outcome.code == 0
    assert f"left out, and `svgpbench run` makes it anew: r/{FIG3}" in " ".join(outcome.out.split())
    assert path.exists()  # a table changes nothing
