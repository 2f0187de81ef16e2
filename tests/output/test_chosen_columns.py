"""A table of chosen metrics, data sets and methods, averaged over outputs or not."""

from __future__ import annotations

import math

import pytest
from hand_records import cell, collected, record

from svgpbench.errors import UserError
from svgpbench.metrics import METRICS, USUAL, loss, metric
from svgpbench.output.built_table import BuiltTable
from svgpbench.output.result_table import Finals
from svgpbench.results.records import Record


def built(*records: Record, **keys: object) -> BuiltTable:
    return Finals.model_validate(keys).build(collected(*records))


def headings(table: BuiltTable) -> list[list[str]]:
    return [[name for name in one.header if name != "failed"] for one in table.tables]


TWO_TASKS = (
    record(cell("airfoil"), -1.0, nlpd=0.5, mae=0.3, rmse=0.4),
    record(cell("sonar", likelihood="bernoulli-logit"), -2.0, nlpd=0.6, brier=0.2),
)


def test_columns_are_those_that_are_asked_for_in_their_order_and_of_their_task() -> None:
    table = built(*TWO_TASKS, metrics=("mae", "brier", "elbo"))
    ends = [header[3:] for header in headings(table)]
    assert ends == [["MAE", "ELBO"], ["Brier", "ELBO"]]
    notes = table.footnotes
    assert notes[2] == "MAE of y standardised by the training part"
    assert notes[3].startswith("Brier: mean of (p − y)²")


def test_a_metric_that_no_record_has_is_one_line() -> None:
    table = built(*TWO_TASKS, metrics=("elbo", "crps", "ece"))
    assert [header[3:] for header in headings(table)] == [["ELBO"], ["ELBO"]]
    assert table.notes == (
        "no CRPS: no record has it (only those of a Gaussian predictive density may)",
        "no ECE: no record has it",
    )
    alone = built(TWO_TASKS[0], metrics=("elbo", "ece"))
    assert alone.notes == ("no ECE: it is one of classification",)


def test_records_that_lack_a_metric_are_counted_and_have_no_mean() -> None:
    records = [record(cell(fold=fold), -1.0, rmse=1.0) for fold in (0, 1)]
    records += [record(cell(method="B", fold=fold), -1.0, rmse=1.0, mae=0.5) for fold in (0, 1)]
    table = built(*records, metrics=("rmse", "mae"))
    assert table.notes == ("MAE is not in 2 of 4 records",)
    old, new = table.to_json()["rows"]
    assert (old["mae_mean"], new["mae_mean"]) == (None, 0.5)


def test_the_held_out_bound_is_shown_where_it_is_recorded() -> None:
    (plain,) = headings(built(record(cell(), -1.0)))
    (online,) = headings(built(record(cell(), -1.0, heldout_elbo=-2.0, nmse=0.1)))
    assert plain[3:] == [METRICS[name].title for name in USUAL["regression"]]
    assert online[3:] == ["ELBO", "held-out ELBO", "NLPD", "NLPD [y]", "RMSE"]


def test_seconds_are_those_of_training() -> None:
    one = record(cell(), -1.0).model_copy(update={"timing": {"train_s": 2.5}})
    table = built(one, metrics=("seconds",))
    assert table.to_json()["rows"][0]["seconds_mean"] == 2.5
    assert "seconds_mean" not in built(one).to_json()["rows"][0]


def test_rows_are_of_the_data_sets_and_methods_that_are_named() -> None:
    records = [record(cell(d, m), -1.0) for d in ("airfoil", "boston") for m in ("A", "B")]
    rows = built(*records, data=("boston",), methods=("B",)).to_json()["rows"]
    assert [(row["data"], row["method"]) for row in rows] == [("boston", "B")]
    with pytest.raises(UserError, match="unknown data set in these records 'bostn'; did you mean"):
        built(*records, data=("bostn",))
    with pytest.raises(UserError, match="unknown method in these records 'C'"):
        built(*records, methods=("C",))


def output(name: str, fold: int, nmse: float, **more: float) -> Record:
    return record(cell(name, fold=fold), -nmse, nmse=nmse, rmse_original=9.0, **more)


def test_outputs_are_averaged_within_a_split_and_then_over_splits() -> None:
    records = [
        output(f"kuka@torque{i}", fold, nmse)
        for fold, values in enumerate(((1.0, 3.0), (5.0, 9.0)))
        for i, nmse in enumerate(values, 1)
    ]
    records.append(output("airfoil", 0, 0.5))
    table = built(*records, metrics=("nmse", "rmse_original"), outputs="averaged")
    kuka, airfoil = table.to_json()["rows"]
    # 2 and 7: mean 4.5, deviation √12.5, and as much the error of two splits with half as many test rows
    assert (kuka["data"], kuka["ok"], kuka["nmse_mean"]) == ("kuka", 2, 4.5)
    assert kuka["nmse_se"] == pytest.approx(math.sqrt(12.5), rel=1e-15)
    assert kuka["rmse_original_mean"] is None  # each output has units of its own
    assert (airfoil["nmse_mean"], airfoil["rmse_original_mean"]) == (0.5, 9.0)
    assert table.notes == ("kuka: mean over its 2 outputs",)
    each = built(*records, metrics=("nmse",)).to_json()["rows"]
    assert [row["data"] for row in each] == ["kuka@torque1", "kuka@torque2", "airfoil"]
    alone = built(*records, metrics=("nmse",), data=("kuka",)).to_json()["rows"]
    assert [row["data"] for row in alone] == ["kuka@torque1", "kuka@torque2"]


def test_an_output_that_failed_or_is_missing_has_no_mean_without_it() -> None:
    whole = [output(f"kuka@torque{i}", 0, 1.0) for i in (1, 2)]
    failed = [output("kuka@torque1", 1, 1.0), record(cell("kuka@torque2", fold=1), status="not_pd")]
    missing = [output("kuka@torque1", 2, 1.0)]
    table = built(*whole, *failed, *missing, metrics=("nmse",), outputs="averaged")
    (row,) = table.to_json()["rows"]
    assert (row["cells"], row["ok"], row["nmse_mean"]) == (3, 1, 1.0)
    assert row["failed"] == {"not_pd": 1, "skipped": 1}
    infinite = [output("kuka@torque1", 0, 1.0), output("kuka@torque2", 0, math.inf)]
    (row,) = built(*infinite, metrics=("nmse",), outputs="averaged").to_json()["rows"]
    assert row["nmse_mean"] is None


def test_a_loss_is_lower_where_a_metric_is_better() -> None:
    assert loss(2.0, "higher") < loss(1.0, "higher")
    assert loss(1.0, "lower") < loss(2.0, "lower")
    assert loss(0.94, 0.95) < loss(1.0, 0.95) < loss(0.8, 0.95)
    assert METRICS["coverage"].better == 0.95


def test_a_metric_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown metric 'crsp'; did you mean 'crps'"):
        metric("crsp")
