"""Records as tables of cells and iterations, and which backend's numbers stand for all."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hand_records import cell, record

from svgpbench.config import BackendConfig, OnlineConfig, SplitConfig, TrainingConfig
from svgpbench.errors import UserError
from svgpbench.results.frames import METRICS, count_by, final_frame, reference_backend, trace_frame
from svgpbench.results.records import Record


def test_final_values_are_those_of_the_metrics_and_not_of_the_trace() -> None:
    values = {name: float(place) for place, name in enumerate(METRICS, 1)}
    trace = {name: [50.0, 60.0] for name in (*METRICS, "iteration", "seconds")}
    (row,) = final_frame([record(cell(), trace=trace, **values)]).to_dict(orient="records")
    assert {name: row[name] for name in METRICS} == values


def test_a_failed_cell_has_a_status_and_a_message_and_no_values() -> None:
    failed = record(cell(), -1.0, status="diverged", nlpd=2.0)
    failed = failed.model_copy(update={"message": "θ is not finite"})
    (row,) = final_frame([failed]).to_dict(orient="records")
    assert (row["status"], row["message"]) == ("diverged", "θ is not finite")
    assert all(math.isnan(row[name]) for name in METRICS)


def test_a_row_says_which_cell_it_is_of() -> None:
    config = cell(
        "sonar",
        "B",
        likelihood="bernoulli-logit",
        split=SplitConfig(kind="random", fold=3, seed=4),
        seed=5,
        backend="numpy",
        perturbation=1e-15,
        iterations=7,
    )
    config = config.model_copy(
        update={"backend": BackendConfig(name="torch", mode="compile", dtype="float32")}
    )
    (row,) = final_frame([record(config)]).to_dict(orient="records")
    expected = {
        "data": "sonar",
        "task": "classification",
        "method": "B",
        "backend": "torch:compile float32",
        "dtype": "float32",
        "split_seed": 4,
        "fold": 3,
        "seed": 5,
        "perturbation": 1e-15,
        "iterations": 7,
        "n_train": 90,
        "dimensions": 5,
    }
    assert {key: row[key] for key in expected} == expected


def test_iterations_of_an_online_run_are_its_own() -> None:
    training = TrainingConfig(kind="online", em_iterations=3, online=OnlineConfig(iterations=40))
    assert final_frame([record(cell(training=training))])["iterations"].tolist() == [40]


def test_a_trace_row_is_an_iteration_of_a_cell_failed_ones_included() -> None:
    frame = trace_frame(
        [
            record(
                cell(fold=1),
                trace={"iteration": [1, 2], "elbo": [-2.0, -1.0], "seconds": [0.1, 0.2]},
            ),
            record(cell(fold=2), status="not_pd", trace={"iteration": [1], "elbo": [-9.0]}),
            record(cell(fold=3), status="oom"),
        ]
    )
    rows = frame[["fold", "iteration", "elbo", "status"]].to_numpy().tolist()
    assert rows == [[1, 1, -2.0, "ok"], [1, 2, -1.0, "ok"], [2, 1, -9.0, "not_pd"]]
    assert frame["seconds"].tolist()[:2] == [0.1, 0.2]
    assert trace_frame([record(cell())]).empty


def test_counts_come_in_the_order_of_the_rows() -> None:
    frame = final_frame([record(cell(method=m, fold=f)) for f, m in enumerate("BABAB")])
    assert list(count_by(frame, "data", "method").items()) == [
        (("airfoil", "B"), 3),
        (("airfoil", "A"), 2),
    ]


def chosen(*records: Record) -> str:
    return reference_backend(final_frame(records))


def of(name: str, good: int, bad: int = 0, **changes: Any) -> list[Record]:
    """Cells of a backend that ended well, and others that did not."""
    backend = BackendConfig.model_validate({"name": name} | changes)
    configs = [
        cell(fold=fold).model_copy(update={"backend": backend}) for fold in range(good + bad)
    ]
    return [record(c, status="ok" if at < good else "not_pd") for at, c in enumerate(configs)]


def test_the_backend_of_most_good_cells_stands_for_all() -> None:
    assert chosen(*of("jax", 2), *of("torch", 3), *of("numpy", 1)) == "torch"
    # good ones: not those that ran
    assert chosen(*of("jax", 1, bad=5), *of("torch", 2)) == "torch"


def test_of_equals_the_first_stands_for_all() -> None:
    assert chosen(*of("torch", 2), *of("jax", 2), *of("numpy", 2)) == "torch"
    assert chosen(*of("torch", 0, bad=1), *of("jax", 0, bad=1)) == "torch"


def test_double_precision_goes_before_any_number_of_cells_in_single() -> None:
    single = of("jax", 5, dtype="float32")
    assert chosen(*single, *of("torch", 1)) == "torch"
    assert chosen(*single, *of("torch", 0, bad=1)) == "torch"
    assert chosen(*single, *of("torch", 2, dtype="float32")) == "jax float32"


def test_replicas_do_not_count_and_alone_stand_for_nothing() -> None:
    replicas = [record(cell(fold=fold, backend="jax", perturbation=1e-15)) for fold in range(5)]
    assert chosen(*of("jax", 1), *replicas, *of("torch", 2)) == "torch"
    with pytest.raises(UserError, match="all of perturbed replicas"):
        chosen(*replicas)


def test_a_record_is_one_line_of_python() -> None:
    trace = {"iteration": list(range(500)), "elbo": [0.5] * 500}
    shown = repr([record(cell("airfoil", "t-SVGP"), -12.5, trace=trace)])
    assert shown.startswith("[<Record airfoil t-SVGP jax ") and len(shown) < 150
    assert shown.endswith("airfoil, t-SVGP, jax, ok, ELBO -12.5>]")
