"""The methods that stand for rows of a table are those of the best bound, by program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from committed_records import RESULTS
from planted_table1 import TABLE1, Levels, plant

from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment
from svgpbench.results.tuned_methods import choices, why_not_chosen

BEST: Levels = {
    "": -20_000.0,
    "t-SVGP 2E1M .040": -19_000.0, "q-SVGP 2E1M .030": -19_900.0, "t-SVGP 3E1M .030": -19_500.0,
    "t-SVGP 4E1M .030": -10_000.0, "q-SVGP 4E2M .040": -19_999.0,
}  # fmt: skip


def chosen(folder: Path) -> dict[str, str]:
    return {choice.row: choice.best for choice in choices(folder, TABLE1, "paper")}


def test_each_method_of_a_row_gets_the_rate_of_its_own_best_bound(tmp_path: Path) -> None:
    plant(tmp_path, "rates", {"": 0.3}, BEST)
    assert chosen(tmp_path) == {
        "t-SVGP, lrE=? lrM=.10 E=2 M=1": "t-SVGP 2E1M .040 .10",
        "q-SVGP, lrE=? lrM=.10 E=2 M=1": "q-SVGP 2E1M .030 .10",
        "t-SVGP, lrE=? lrM=.10 E=3 M=1": "t-SVGP 3E1M .030 .10",
        "q-SVGP, lrE=? lrM=.10 E=3 M=1": "q-SVGP 3E1M .030 .10",
        "t-SVGP, lrE=? lrM=.03 E=4 M=1 or 2": "t-SVGP 4E1M .035 .03",  # .030 is the last row's
        "q-SVGP, lrE=? lrM=.03 E=4 M=1 or 2": "q-SVGP 4E1M .035 .03",
        "t-SVGP, lrE=? lrM=.03 E=4 M=2": "t-SVGP 4E2M .030 .03",
        "q-SVGP, lrE=? lrM=.03 E=4 M=2": "q-SVGP 4E2M .040 .03",
    }


def test_the_test_score_chooses_nothing_and_a_failed_cell_is_not_chosen(tmp_path: Path) -> None:
    nlpd = {"": 0.3, "t-SVGP 2E1M .030": 0.1, "t-SVGP 2E1M .040": 0.9}
    plant(tmp_path, "rates", nlpd, BEST)
    assert chosen(tmp_path)["t-SVGP, lrE=? lrM=.10 E=2 M=1"] == "t-SVGP 2E1M .040 .10"
    failed = tmp_path / "failed"
    plant(failed, "rates", nlpd, BEST, fails=["t-SVGP 2E1M .040 .10"])
    assert chosen(failed)["t-SVGP, lrE=? lrM=.10 E=2 M=1"] == "t-SVGP 2E1M .030 .10"


def test_nothing_is_chosen_from_some_of_the_cells(tmp_path: Path) -> None:
    plant(tmp_path, "paper", {"": 0.3})  # one of each row
    with pytest.raises(UserError, match="14 of the cells that choose have not run; `svgpbench run"):
        choices(tmp_path, TABLE1, "paper")


def searching(without: Callable[[str], bool]) -> Experiment:
    """Table 1, of which the search leaves some methods out."""
    rates = TABLE1.presets["rates"]
    left = tuple(label for label in rates.methods or () if not without(label))
    preset = rates.model_copy(update={"methods": left})
    return TABLE1.model_copy(update={"presets": TABLE1.presets | {"rates": preset}})


def test_a_method_that_the_search_leaves_out_is_not_chosen(tmp_path: Path) -> None:
    plant(tmp_path, "rates", {"": 0.3}, BEST)
    without = searching(lambda label: label == "t-SVGP 2E1M .040 .10")
    found = {choice.row: choice for choice in choices(tmp_path, without, "paper")}
    row = "t-SVGP, lrE=? lrM=.10 E=2 M=1"
    assert found[row].elbo.keys() == {"t-SVGP 2E1M .030 .10", "t-SVGP 2E1M .035 .10"}
    assert found[row].best == "t-SVGP 2E1M .030 .10"
    others = chosen(tmp_path).items() - {(row, "t-SVGP 2E1M .040 .10")}
    assert others == {(of, choice.best) for of, choice in found.items() if of != row}


def test_a_row_that_the_search_leaves_out_is_one_line(tmp_path: Path) -> None:
    plant(tmp_path, "rates", {"": 0.3}, BEST)
    without = searching(lambda label: label.startswith("t-SVGP 3E1M"))
    with pytest.raises(
        UserError,
        match=r"preset rates of adam2021-table1 runs no method of row 't-SVGP, lrE=. lrM=\.10 E=3",
    ):
        choices(tmp_path, without, "paper")


def test_the_table_says_where_the_records_choose_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ["table", "adam2021-table1", "--preset", "paper", "--results", str(tmp_path)]
    named = named_by_the_preset(-1.0)
    plant(tmp_path, "rates", {"": 0.3}, {"": -9.0} | named)
    plant(tmp_path, "paper", {"": 0.3}, named)
    assert exit_code(table) == 0
    assert "records choose" not in capsys.readouterr().out
    label, other = (
        next(x for x in TABLE1.labels if x.startswith("q-SVGP 4E2M") and (x in named) == is_named)
        for is_named in (True, False)
    )
    plant(tmp_path, "rates", {"": 0.3}, {"": -9.0, other: -0.5} | named)
    assert exit_code(table) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"{label!r} is not what records choose: {other!r} has the best ELBO of preset rates" in said
    )


def named_by_the_preset(bound: float) -> dict[str, float]:
    return dict.fromkeys(TABLE1.presets["paper"].methods or (), bound)


def test_the_preset_names_what_the_committed_records_choose() -> None:
    assert {choice.row: choice.named for choice in choices(RESULTS, TABLE1, "paper")} == chosen(
        RESULTS
    )


def test_each_preset_is_held_against_the_methods_that_it_names() -> None:
    paper, rates = (TABLE1.presets[name].methods or () for name in ("paper", "rates"))
    named = next(label for label in paper if label.startswith("q-SVGP 4E2M"))
    other = next(label for label in rates if label.startswith("q-SVGP 4E2M") and label != named)
    swapped = tuple(other if label == named else label for label in paper)
    wrong = TABLE1.presets["paper"].model_copy(update={"methods": swapped})
    both = TABLE1.model_copy(update={"presets": {"wrong": wrong} | TABLE1.presets})
    assert why_not_chosen(RESULTS, both, "paper") == ""
    assert repr(other) in why_not_chosen(RESULTS, both, "wrong")
