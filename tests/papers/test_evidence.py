"""What of a record's trace counts in the ledger."""

from __future__ import annotations

import math

import pytest
from hand_records import cell, record

from svgpbench.config import DataConfig, MethodConfig, OnlineConfig, TrainingConfig
from svgpbench.papers.evidence.experiment import scores_at
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import bound_traces, frame_of

SETTLING = [-90.0, -60.0, -70.0, -50.0, -40.0, -30.0, -20.0, -15.0, -12.0, -11.0]
"""Ten EM iterations of which one falls by ten."""


def only(trace: list[float]) -> dict[str, float]:
    """The row of one record with that trace of the bound."""
    iterations = {"iteration": list(range(1, len(trace) + 1))}
    one = record(cell(iterations=len(trace)), trace[-1], trace={**iterations, "elbo": trace})
    (row,) = frame_of([one]).to_dict(orient="records")
    return row


@pytest.mark.parametrize(
    ("after", "drop"),
    [([-10.0, -9.0], 0.0), ([-10.0, -12.5, -9.0, -9.5], 2.5), ([-13.0, -9.0], 2.0)],
)
def test_the_largest_drop_is_of_what_follows_iteration_10(after: list[float], drop: float) -> None:
    assert only(SETTLING + after)["elbo_drop"] == pytest.approx(drop)


def test_the_area_is_the_mean_of_the_trace() -> None:
    assert only([-4.0, -2.0, -3.0])["elbo_area"] == pytest.approx(-3.0)


def test_the_noise_variance_is_the_last_of_the_trace() -> None:
    trace = {"iteration": [1, 2], "elbo": [-2.0, -1.0], "noise_variance": [0.5, 0.25]}
    one = record(cell(iterations=2), -1.0, trace=trace)
    assert frame_of([one])["noise_variance"].tolist() == [0.25]
    assert math.isnan(only([-2.0, -1.0])["noise_variance"])


def traced(*bound: float, method: str = "A", **changes: object) -> Record:
    """A record on 100 training rows, looked at every ten iterations."""
    trace = {"iteration": [10 * k for k in range(1, len(bound) + 1)], "elbo": list(bound)}
    theta = {"variance": [2.0 * math.exp(-k) for k in range(len(bound))]}
    of = cell(method=method, **changes)  # type: ignore[arg-type]
    return record(of, bound[-1], trace=trace | theta, data={"n_train": 100})


def bests(*records: Record) -> list[float]:
    """The best bound known for the cell of each record."""
    return [trace.best for trace in bound_traces(records)]


def test_the_best_bound_of_a_cell_is_that_of_any_method_and_look() -> None:
    assert bests(traced(-9.0, -2.0), traced(-1.0, -3.0, method="B")) == [-1.0, -1.0]


def test_another_start_and_another_family_have_a_best_of_their_own() -> None:
    low = traced(-9.0, -2.0)
    assert bests(low, traced(-1.0, -1.0, seed=1)) == [-2.0, -1.0]
    assert bests(low, traced(-1.0, -1.0, method="B", of="q-svgp")) == [-1.0, -1.0]
    assert bests(low, traced(-1.0, -1.0, method="B", of="diagonal-precision")) == [-2.0, -1.0]


def test_a_narrower_bound_has_a_best_of_its_own() -> None:
    tighter = traced(-1.0, -1.0, method="B")
    options = {"residual_variance": "diagonal"}
    of = tighter.config.method.model_copy(update={"options": options})
    config = tighter.config.model_copy(update={"method": of})
    assert bests(traced(-9.0, -2.0), tighter.model_copy(update={"config": config})) == [-2.0, -1.0]


def test_a_cell_that_failed_has_no_trace_and_no_best() -> None:
    (found,) = bound_traces([record(cell(), status="diverged", data={"n_train": 100})])
    assert len(found.bound) == 0
    assert found.best == -math.inf


SPIKE = [0.0] * 20 + [9.0] + [0.0] * 19


@pytest.mark.parametrize(
    ("training", "highest"),
    [
        (TrainingConfig(), 9.0),
        (TrainingConfig(batch_size=100), 9.0),  # all rows
        (TrainingConfig(batch_size=99), 0.0),
        (TrainingConfig(rows=50, batch_size=50), 9.0),  # all rows that train
        (TrainingConfig(kind="online", online=OnlineConfig()), 0.0),
    ],
)
def test_traces_of_minibatches_are_smoothed(training: TrainingConfig, highest: float) -> None:
    (found,) = bound_traces([traced(*SPIKE, training=training)])
    assert max(found.bound) == highest


def test_a_frame_has_how_the_bound_moved_in_the_last_quarter_and_the_rows_that_it_covers() -> None:
    whole = traced(-9.0, -3.0, -2.0, -4.0)
    part = traced(-1.0, -1.0, -1.0, -1.0, training=TrainingConfig(rows=40))
    once = traced(-1.0, -1.0)
    frame = frame_of([whole, part, once])
    rises = frame["bound_rise"].tolist()
    assert rises == pytest.approx([-2.0, 0.0, math.nan], nan_ok=True)
    assert frame["bound_fall"].tolist() == [2.0, 0.0, 0.0]
    assert frame["n_bound"].tolist() == [100, 40, 100]
    regions = [trace.region for trace in frame["bound_trace"]]
    assert regions == pytest.approx([0.1, 0.04, 0.1])


def test_hyperparameters_of_a_trace_are_logarithms_by_iteration() -> None:
    (theta,) = frame_of([traced(-9.0, -1.0)])["theta"]
    assert theta["variance"].to_dict() == pytest.approx({10.0: math.log(2), 20.0: math.log(2) - 1})


def test_thirds_are_of_the_iterations_whatever_points_a_trace_has() -> None:
    row = only([-9.0, -7.0, -5.0, -4.0, -3.0, -1.0])
    thirds = [row[name] for name in ("elbo_early", "elbo_midway", "elbo_late")]
    assert thirds == [-8.0, -4.5, -2.0]
    sparse = {"iteration": [1, 5, 6], "elbo": [-9.0, -3.0, -1.0]}
    row = frame_of([record(cell(iterations=6), -1.0, trace=sparse)]).iloc[0]
    assert (row["elbo_early"], row["elbo_late"]) == (-9.0, -2.0)
    assert math.isnan(row["elbo_midway"])


def test_hyperparameters_at_the_end_are_logarithms_and_nothing_where_a_cell_failed() -> None:
    theta = {"variance": math.e, "lengthscale_mean": 1.0, "noise_variance": 0.01}
    good, bad = record(cell(), -1.0, **theta), record(cell(seed=1), -1.0, status="not_pd", **theta)
    frame = frame_of([good, bad])
    logs = frame.loc[0, ["log_variance", "log_lengthscale", "log_noise"]]
    assert list(logs) == pytest.approx([1.0, 0.0, math.log(0.01)])
    assert math.isnan(frame.loc[1, "log_variance"])


def test_factors_of_a_grid_are_columns_and_name_its_cells() -> None:
    grid = DataConfig.model_validate({"name": "airfoil", "factors": {"N": 100, "M": 10}})
    frame = frame_of([record(cell().model_copy(update={"data": grid}), -1.0), record(cell(), -1.0)])
    assert list(frame["data"]) == ["N=100, M=10", "airfoil"]
    assert frame["N"].iloc[0] == 100
    assert math.isnan(frame["M"].iloc[1])


def test_methods_on_two_bases_have_one_best_decoupled_ones_on_their_union() -> None:
    best = traced(-1.0, -1.0, of="orth")
    hybrid = traced(-9.0, -2.0, method="B", of="hybrid")
    assert bests(hybrid, best) == [-1.0, -1.0]
    alone, union = (
        traced(-9.0, -3.0).config.model_copy(
            update={"method": MethodConfig(name="decoupled", options=options)}
        )
        for options in ({}, {"union": True})
    )
    of_decoupled = [
        traced(-9.0, -3.0).model_copy(update={"config": config}) for config in (alone, union)
    ]
    assert bests(*of_decoupled, best) == [-3.0, -1.0, -1.0]


def test_a_moment_in_seconds_is_the_last_point_by_then() -> None:
    trace = {"iteration": [1, 2, 3], "seconds": [5.0, 10.0, 20.0], "elbo": [-3.0, -2.0, -1.0]}
    one = record(cell(), -1.0, trace=trace)
    assert [scores_at(one, f"{s} s").get("elbo") for s in (4, 10, 19.9, 99)] == [None, -2, -2, -1]
    assert scores_at(one, "2")["seconds"] == 10.0


@pytest.mark.parametrize(
    ("training", "rate"),
    [
        (TrainingConfig(e_rate=0.3), 0.3),
        (TrainingConfig(kind="online", online=OnlineConfig(rates=(0.2,))), 0.2),
        (TrainingConfig(kind="online"), math.nan),  # picked from several
    ],
)
def test_the_rate_of_a_run_is_the_one_it_was_given(training: TrainingConfig, rate: float) -> None:
    (found,) = frame_of([record(cell(training=training), -1.0)])["e_rate"]
    assert found == pytest.approx(rate, nan_ok=True)


@pytest.mark.parametrize(("rows", "gap"), [(None, -0.1 + 0.5), (50, -0.2 + 0.5)])
def test_the_gap_is_the_bound_of_a_trained_row_and_the_nlpd(rows: int | None, gap: float) -> None:
    of = cell(training=TrainingConfig(rows=rows))
    frame = frame_of([record(of, -10.0, data={"n_train": 100}, nlpd=0.5)])
    assert frame["bound_gap"].iloc[0] == pytest.approx(gap, rel=1e-12)
