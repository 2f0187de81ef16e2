"""What a row of a table holds: means, standard errors and counts, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from hand_records import cell, collected, record

from svgpbench.errors import UserError
from svgpbench.output.result_table import Finals
from svgpbench.results.frames import METRICS
from svgpbench.results.records import Record
from svgpbench.stats.means import mean_and_error, means_and_errors


def row(*records: Record, **which: str) -> dict[str, Any]:
    """The one row of a table whose columns have these values."""
    rows = Finals().build(collected(*records)).to_json()["rows"]
    (found,) = [each for each in rows if which.items() <= each.items()]
    return found


def cells(metric: str, values: Mapping[tuple[int, int], float]) -> pd.DataFrame:
    """A row a fold and seed, of 80 training and 20 test data."""
    rows = [
        {"split_seed": 0, "fold": fold, "seed": seed, "n_train": 80, "n_test": 20, metric: value}
        for (fold, seed), value in values.items()
    ]
    return pd.DataFrame(rows)


FOUR = {(fold, 0): value for fold, value in enumerate((1.0, 3.0, 5.0, 11.0))}


def test_the_error_of_a_test_score_is_corrected_for_splits_that_overlap() -> None:
    # deviations from 5: −4, −2, 0, 6; squares 56; variance 56/3; times 1/4 + 20/80
    mean, error = mean_and_error(cells("nlpd", FOUR), "nlpd")
    assert mean == 5.0
    assert error == pytest.approx(math.sqrt(56 / 3 * (1 / 4 + 20 / 80)), rel=1e-15)
    # of five folds it is 1.5 times that of as many independent ones
    folds = {(fold, 0): float(fold) for fold in range(5)}
    _, error = mean_and_error(cells("nlpd", folds), "nlpd")
    assert error == pytest.approx(1.5 * math.sqrt(2.5 / 5), rel=1e-15)


def test_seeds_within_a_split_are_averaged_before_its_error_is_taken() -> None:
    twice = {
        (fold, seed): x + (-0.5, 0.5)[seed] for (fold, _), x in FOUR.items() for seed in (0, 1)
    }
    once = mean_and_error(cells("nlpd", FOUR), "nlpd")
    assert mean_and_error(cells("nlpd", twice), "nlpd") == pytest.approx(once, rel=1e-15)


def test_the_bound_has_an_error_from_five_starts_a_split_on() -> None:
    assert mean_and_error(cells("elbo", FOUR), "elbo") == pytest.approx(
        (5.0, math.nan), nan_ok=True
    )
    starts = {(fold, seed): seed + 100.0 * fold for fold in (0, 1) for seed in range(5)}
    mean, error = mean_and_error(cells("elbo", starts), "elbo")
    assert mean == 52.0
    assert error == pytest.approx(math.sqrt(2.5 / 5), rel=1e-15)  # the folds are given


def test_one_split_has_the_plain_error_of_five_starts_and_none_of_four() -> None:
    starts = {(0, seed): float(seed) for seed in range(5)}
    assert mean_and_error(cells("nlpd", starts), "nlpd")[1] == pytest.approx(math.sqrt(2.5 / 5))
    starts.pop((0, 4))
    assert math.isnan(mean_and_error(cells("nlpd", starts), "nlpd")[1])


def test_one_value_has_a_mean_and_no_error_and_none_has_neither() -> None:
    mean, error = mean_and_error(cells("nlpd", {(0, 0): 3.0}), "nlpd")
    assert mean == 3.0 and math.isnan(error)
    none = mean_and_error(cells("nlpd", {(0, 0): math.nan}), "nlpd")
    assert all(math.isnan(value) for value in none)


def test_every_metric_of_a_row_is_the_mean_of_its_own_column() -> None:
    first = {name: 10.0 * place for place, name in enumerate(METRICS, 1)}
    second = {name: value + 2.0 * place for place, (name, value) in enumerate(first.items(), 1)}
    found = row(record(cell(fold=0), **first), record(cell(fold=1), **second))
    for place, name in enumerate(METRICS, 1):
        assert found[f"{name}_mean"] == 11.0 * place, name
        if METRICS[name].rows == "test":  # two values 2p apart: deviation √2 p, times 1/2 + 45/90
            assert found[f"{name}_se"] == pytest.approx(math.sqrt(2) * place, rel=1e-14), name
        else:
            assert found[f"{name}_se"] is None, name


def test_a_score_that_is_not_finite_has_no_mean_and_is_told() -> None:
    """A label that was held impossible: infinite NLPD, null in the record."""
    records = [record(cell(fold=fold), -1.0, nlpd=0.5, rmse=1.0) for fold in (0, 1)]
    records.append(record(cell(fold=2), -1.0, nlpd=math.inf, rmse=1.0))
    found = row(*records)
    assert (found["ok"], found["elbo_mean"], found["rmse_mean"]) == (3, -1.0, 1.0)
    assert (found["nlpd_mean"], found["nlpd_se"]) == (None, None)  # 0.5 would be that of the lucky
    assert Finals().build(collected(*records)).notes == (
        "no mean of nlpd: airfoil, A on jax: not finite in 1 of 3 cells",
    )


def test_replicas_alone_make_no_table() -> None:
    for backends in ((), ("jax",)):
        with pytest.raises(UserError, match="all of perturbed replicas"):
            Finals().build(collected(record(cell(perturbation=1e-15), -1.0)), backends)


def test_cells_of_other_rows_stay_out_of_a_mean() -> None:
    records = [
        record(cell(fold=fold, data=data, method=method, backend=backend), elbo)
        for fold in (0, 1)
        for data, method, backend, elbo in (
            ("airfoil", "A", "jax", -1.0 - fold),
            ("boston", "A", "jax", -20.0),
            ("airfoil", "B", "jax", -300.0),
            ("airfoil", "A", "torch", -4000.0),
        )
    ]
    found = row(*records, data="airfoil", method="A", backend="jax")
    assert (found["elbo_mean"], found["cells"], found["ok"]) == (-1.5, 2, 2)
    assert len(Finals().build(collected(*records)).frame) == 4


def test_rows_come_in_the_order_of_the_records() -> None:
    order = [("sonar", "B"), ("sonar", "A"), ("airfoil", "C")]
    rows = (
        Finals()
        .build(collected(*(record(cell(*names), -1.0) for names in order)))
        .to_json()["rows"]
    )
    assert [(each["data"], each["method"]) for each in rows] == order


def test_perturbed_replicas_are_in_no_mean_and_no_count() -> None:
    plain = [record(cell(fold=fold), -10.0 - fold) for fold in (0, 1)]
    replicas = [
        record(cell(fold=0, perturbation=1e-15), -1000.0),
        record(cell(fold=1, perturbation=1e-15), status="not_pd"),
    ]
    found = row(*plain, *replicas)
    assert found["elbo_mean"] == -10.5
    assert (found["cells"], found["ok"], found["failed"]) == (2, 2, {})


def test_failed_cells_are_counted_under_their_status_and_give_no_number() -> None:
    found = row(
        record(cell(fold=0), -1.0),
        record(cell(fold=1), -3.0),
        # a failed cell keeps the last values it reached
        record(cell(fold=2), -5000.0, status="diverged", nlpd=77.0),
        record(cell(fold=3), -7000.0, status="not_pd"),
        record(cell(fold=4), status="not_pd"),
    )
    assert found["elbo_mean"] == -2.0
    assert found["nlpd_mean"] is None
    assert (found["cells"], found["ok"]) == (5, 2)
    assert found["failed"] == {"not_pd": 2, "diverged": 1}


def test_a_row_without_a_good_cell_stays_in_the_table() -> None:
    found = row(record(cell(), status="oom"), record(cell(fold=1), status="timeout"))
    assert (found["cells"], found["ok"], found["elbo_mean"]) == (2, 0, None)
    assert found["failed"] == {"oom": 1, "timeout": 1}


def test_seeds_and_split_seeds_are_replicates_as_folds_are() -> None:
    from svgpbench.config import SplitConfig

    by_seed = [record(cell(seed=seed), float(seed)) for seed in (1, 2, 6)]
    assert row(*by_seed)["elbo_mean"] == 3.0
    by_split = [
        record(cell(split=SplitConfig(kind="random", seed=seed)), float(seed)) for seed in (1, 2, 6)
    ]
    assert (row(*by_split)["elbo_mean"], row(*by_split)["ok"]) == (3.0, 3)


def test_failures_that_the_shown_rows_do_not_tell_of_are_notes() -> None:
    table = Finals().build(
        collected(
            record(cell(), -1.0),
            record(cell(fold=1), -1.0),
            record(cell(fold=2), status="not_pd"),
            record(cell(perturbation=1e-15), status="diverged"),
            record(cell(backend="torch"), status="oom"),
            record(cell(backend="torch", fold=1), status="oom"),
            record(cell(backend="torch", fold=2), status="crashed"),
            notes=["a note of the records"],
        )
    )
    assert table.footnotes[0].endswith(", on jax")
    assert table.notes == (
        "a note of the records",
        "failed besides: airfoil, A: jax perturbed 1 diverged, torch 2 oom, torch 1 crashed",
    )


def test_a_terminal_gets_the_backend_that_stands_for_all_or_those_asked_for() -> None:
    records = [
        record(cell(backend="torch"), -1.0),
        record(cell(backend="torch", fold=1), status="oom"),
    ]
    records += [record(cell(fold=fold), -2.0) for fold in (0, 1)]
    # torch comes first and has fewer
    assert [row[3] for row in Finals().build(collected(*records)).tables[0].texts] == ["-2.000"]
    (torch,) = Finals().build(collected(*records), ("torch",)).tables
    assert [row[3] for row in torch.texts] == ["-1.000"]


def test_notes_follow_the_order_of_the_rows() -> None:
    records = [
        record(cell(data, fold=fold), -1.0, nlpd=nlpd, rmse=1.0)
        for data in ("boston", "airfoil")
        for fold, nlpd in enumerate((0.5, math.inf))
    ]
    notes = Finals().build(collected(*records)).notes
    assert [note.split(": ")[1].split(",")[0] for note in notes] == ["boston", "airfoil"]


def test_where_there_is_no_mean_there_is_no_error() -> None:
    """One start of a split has no finite value: the splits alone would have an error."""
    index = pd.MultiIndex.from_product([[0], [0, 1], [0, 1]], names=["split_seed", "fold", "seed"])
    values = pd.DataFrame({"nlpd": [math.nan, 0.4, 0.5, 0.6]}, index)
    (mean,), (error,) = means_and_errors(values, 0.25, ["nlpd"])
    assert math.isnan(mean) and math.isnan(error)
