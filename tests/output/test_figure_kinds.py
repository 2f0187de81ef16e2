"""Each kind of figure: where its marks are, read back from matplotlib, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hand_records import cell, record
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from svgpbench.config import InducingConfig, TrainingConfig
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.metrics import PIT_LEVELS, pit_column
from svgpbench.output.figure_and_table_types import kind_of
from svgpbench.output.figures.against import Against
from svgpbench.output.figures.calibration import Calibration
from svgpbench.output.figures.convergence import Convergence
from svgpbench.output.figures.finals import Finals
from svgpbench.output.panel import STEP
from svgpbench.plugins import FIGURES, TABLES
from svgpbench.results.records import Record

Draw = Callable[..., tuple[Figure, str]]


def bars(panel: Axes) -> list[tuple[list[float], list[float], list[float]]]:
    """x, mean and error of every error bar with its points."""
    found = []
    for container in panel.containers:
        if isinstance(container, ErrorbarContainer):
            line, _, (segments,) = container
            x, y = (list(map(float, np.asarray(v))) for v in line.get_data())
            ends = [np.asarray(segment) for segment in segments.get_segments()]
            found.append((x, y, [float(end[1, 1] - end[0, 1]) / 2 for end in ends]))
    return found


def test_finals_are_means_and_standard_errors_of_each_method_in_its_panel(draw: Draw) -> None:
    values = {
        ("airfoil", "A"): 1.0,
        ("airfoil", "B"): 2.0,
        ("boston", "A"): 5.0,
        ("boston", "B"): 7.0,
    }
    records = [
        record(cell(d, m, fold=fold), -1.0, nlpd=value + 2 * fold, rmse=value / 8)
        for (d, m), value in values.items()
        for fold in (0, 1)
    ]
    records.append(record(cell("airfoil", "A", fold=2), status="not_pd", nlpd=900.0))
    figure, caption = draw(Finals(metrics=("nlpd", "rmse")), *records)
    top, bottom = np.array(figure.axes).reshape(2, 2)
    for panel, data in zip(top, ("airfoil", "boston"), strict=True):
        assert [x[1:] for x in bars(panel)] == [
            ([values[data, m] + 1.0], pytest.approx([math.sqrt(2)])) for m in ("A", "B")
        ]
    assert [x[1] for x in bars(bottom[1])] == [[5 / 8], [7 / 8]]
    assert [panel.get_ylabel() for panel in (top[0], bottom[0])] == ["NLPD (test)", "RMSE (test)"]
    assert "over 2–3 cells" in caption and "In no mean: airfoil, A: 1 not_pd." in caption
    figure, _ = draw(Finals(metrics=("rmse",), marks="bars"), *records)
    assert [patch.get_height() for patch in figure.axes[1].patches] == [5 / 8, 7 / 8]  # type: ignore[attr-defined]


def test_a_metric_with_a_right_value_has_a_line_there(draw: Draw) -> None:
    records = [record(cell(fold=fold), -1.0, coverage=0.9, nlpd=1.0) for fold in (0, 1)]
    figure, _ = draw(Finals(metrics=("coverage", "nlpd")), *records)
    dotted = [
        [
            float(np.asarray(line.get_ydata())[0])
            for line in panel.lines
            if line.get_linestyle() == ":"
        ]
        for panel in figure.axes
    ]
    assert dotted == [[0.95], []]


def sized(label: str, count: int, **metrics: float) -> list[Record]:
    inducing = InducingConfig(count=count)
    return [
        record(cell(method=label, fold=fold, inducing=inducing), -1.0, **metrics)
        for fold in (0, 1)
    ]  # fmt: skip


def test_a_metric_against_a_setting_is_one_curve_from_left_to_right(draw: Draw) -> None:
    records = [
        *sized("large", 50, nlpd=0.5),
        *sized("small", 10, nlpd=0.9),
        *sized("other", 20, nlpd=7.0),
    ]
    curves = {"t-SVGP": ("small", "large")}
    figure, caption = draw(Against(curves=curves), *records)
    (panel,) = figure.axes
    assert [(x, y) for x, y, _ in bars(panel)] == [([10.0, 50.0], [0.9, 0.5])]
    assert panel.get_xlabel() == "inducing.count"
    assert "against inducing.count" in caption
    figure, caption = draw(Against(depth=0.8), *records)
    assert figure.axes[0].get_ylim() == pytest.approx((0.4, 1.3))  # of NLPD, lower is better
    assert "Beyond the axis: more than 0.8 from the best." in caption
    # without `curves` one a method by name, of which all three are
    figure, _ = draw(Against(), *records)
    assert [x for x, _, _ in bars(figure.axes[0])] == [[10.0, 20.0, 50.0]]


def test_against_time_or_rows_the_points_are_where_the_records_say(draw: Draw) -> None:
    def made(method: str, data: str, n: int, seconds: float, nlpd: float) -> Record:
        one = record(cell(data, method), -1.0, nlpd=nlpd, data={"n_train": n})
        return one.model_copy(update={"timing": {"train_s": seconds}})

    records = [made("A", "big", 900, 8.0, 0.1), made("A", "small", 90, 2.0, 0.4)]
    figure, caption = draw(Against(x="n_train", scale="log"), *records)
    (panel,) = figure.axes
    assert [(x, y) for x, y, _ in bars(panel)] == [([90.0, 900.0], [0.4, 0.1])]
    assert panel.get_xscale() == "log"
    assert "Times" not in caption
    figure, caption = draw(Against(x="seconds"), *records)
    assert [bars(panel)[0][0] for panel in figure.axes] == [[8.0], [2.0]]
    assert "Times are of processes that ran other cells too" in caption
    with pytest.raises(UserError, match=r"unknown x of a figure 'inducing\.cuont'; did you mean"):
        draw(Against(x="inducing.cuont"), *records)
    with pytest.raises(UserError, match="unknown method in these records 'B'"):
        draw(Against(curves={"t-SVGP": ("B", "C")}), *records)


def test_points_without_records_are_told_and_the_others_drawn(draw: Draw) -> None:
    curves = {"t-SVGP": ("small", "large"), "q-SVGP": ("a", "b")}
    figure, caption = draw(Against(curves=curves), *sized("small", 10, nlpd=0.9))
    assert [(x, y) for x, y, _ in bars(figure.axes[0])] == [([10.0], [0.9])]
    assert "Without records here: large, a and b." in caption
    _, caption = draw(Against(curves={"t-SVGP": ("small",)}), *sized("small", 10, nlpd=0.9))
    assert "Without records" not in caption


def calibrated(fold: int, factor: float, **of: Any) -> Record:
    shares = {pit_column(level): factor * level for level in PIT_LEVELS}
    return record(cell(fold=fold, **of), -1.0, **shares)


def test_calibration_is_the_mean_share_below_each_level(draw: Draw) -> None:
    records = [calibrated(0, 0.8), calibrated(1, 1.0), record(cell("boston"), -1.0)]
    figure, caption = draw(Calibration(), *records)
    (panel,) = figure.axes  # boston has no such shares
    _, curve = panel.lines
    x, y = (np.asarray(v, dtype=float) for v in curve.get_data())
    np.testing.assert_allclose(x, np.linspace(0, 1, 11), rtol=1e-14)
    np.testing.assert_allclose(y[1:-1], 0.9 * np.array(PIT_LEVELS), rtol=1e-14)
    assert (y[0], y[-1]) == (0.0, 1.0)
    (band,) = panel.collections
    corners = np.asarray(band.get_paths()[0].vertices)
    at = corners[np.isclose(corners[:, 0], 0.5)][:, 1]
    # 0.4 and 0.5: deviation √0.005, times 1/2 + 45/90
    assert (at.min(), at.max()) == pytest.approx((0.45 - 0.005**0.5, 0.45 + 0.005**0.5))
    assert "share of test targets below" in caption
    with pytest.raises(UserError, match="has the shares of targets below predictive quantiles"):
        draw(Calibration(), record(cell(), -1.0))


def test_calibration_is_of_each_method_s_cells_that_have_the_shares(draw: Draw) -> None:
    shares = calibrated(1, 0.3).metrics
    failed = record(cell(fold=1), status="not_pd", **shares)
    others = [calibrated(0, 1.0, method="B"), calibrated(0, 0.5, data="boston")]
    figure, _ = draw(Calibration(), calibrated(0, 0.8), failed, record(cell(fold=2), -1.0), *others)
    found = [
        [float(np.asarray(line.get_ydata())[5]) for line in panel.lines[1:]]
        for panel in figure.axes
    ]
    assert found == [pytest.approx([0.4, 0.5]), pytest.approx([0.25])]


def timed(fold: int, *seconds: float, method: str = "A", **more: Any) -> Record:
    steps = len(seconds)
    trace = {
        "iteration": list(range(1, steps + 1)),
        "elbo": [-3.0, -2.0, -1.0][:steps],
        "nlpd": [3.0, 2.0, 1.0][:steps],
        "seconds": list(seconds),
    }
    return record(cell(fold=fold, method=method), trace=trace | more)


def test_against_seconds_a_point_is_at_the_mean_time_of_its_iteration(draw: Draw) -> None:
    figure, caption = draw(
        Convergence(x="seconds"), timed(0, 1.0, 2.0, 3.0), timed(1, 3.0, 6.0, 9.0)
    )
    (line,) = figure.axes[0].lines
    assert list(np.asarray(line.get_xdata())) == [2.0, 4.0, 6.0]
    assert figure.axes[1].get_xlabel() == "seconds of training"
    assert "Times are of" in caption


def test_an_online_run_counts_iterations_and_others_em_iterations(draw: Draw) -> None:
    figure, _ = draw(Convergence(), timed(0, 1.0, 2.0, 3.0))
    assert figure.axes[1].get_xlabel() == "EM iteration"
    online = TrainingConfig(kind="online", em_iterations=3)
    records = [record(cell(training=online), trace=timed(0, 1.0, 2.0, 3.0).trace)]
    figure, _ = draw(Convergence(), *records)
    assert figure.axes[1].get_xlabel() == "iteration"


def test_a_method_without_a_metric_is_named_and_has_not_failed(draw: Draw) -> None:
    records = [timed(0, 1.0, 2.0, 3.0, crps=[0.3, 0.2, 0.1]), timed(0, 1.0, 2.0, 3.0, method="B")]
    figure, _ = draw(Convergence(metrics=("crps",)), *records)
    (panel,) = figure.axes
    assert len(panel.lines) == 1
    assert [text.get_text() for text in panel.texts] == ["B: no CRPS"]
    with pytest.raises(UserError, match="no record of by-hand on jax has coverage to draw"):
        draw(Convergence(metrics=("coverage",)), *records)


def test_a_depth_is_below_the_best_mean_of_all_methods_that_are_better_higher(draw: Draw) -> None:
    records = [
        record(
            cell(method=method),
            trace={"iteration": [1, 2], "elbo": [-90.0, best], "nlpd": [9.0, 1.0]},
        )
        for method, best in (("A", -4.0), ("B", -1.0), ("C", -2.0))
    ]
    figure, caption = draw(Convergence(depth=5.0), *records)
    bound, density = figure.axes
    assert bound.get_ylim() == pytest.approx((-6.0, -0.7))
    assert density.get_ylim()[0] < 1.0  # the densities have no depth
    assert not bound.texts
    assert "more than 5 from the best" in caption


def drawn_with(draw: Draw, *ends: float) -> Axes:
    """A panel with two curves near the top, and others that leave it below and come back to `ends`."""
    good = [[-5.0, -4.0, -3.0], [-5.0, -4.5, -3.2]]
    curves = good + [[-6.0, -4e4 - at, end] for at, end in enumerate(ends)]
    records = [
        record(
            cell(method=f"m{at}"),
            trace={"iteration": [1, 2, 3], "elbo": elbo, "nlpd": [1.0, 0.9, 0.8]},
        )
        for at, elbo in enumerate(curves)
    ]
    figure, _ = draw(Convergence(), *records)
    return figure.axes[0]


@pytest.mark.parametrize("ends", [(-5.1,), (-5.3,), (-5.1, -5.2)])
def test_labels_of_curves_that_leave_lie_on_no_curve_nor_on_one_another(
    draw: Draw, ends: tuple[float, ...]
) -> None:
    panel = drawn_with(draw, *ends)
    boxes = [text.get_window_extent() for text in panel.texts]
    assert len(boxes) == len(ends)
    for line in panel.lines:
        path = line.get_transform().transform_path(line.get_path())
        assert not any(path.intersects_bbox(box, filled=False) for box in boxes)
    assert not any(a.overlaps(b) for a in boxes for b in boxes if a is not b)
    for box in boxes:
        assert panel.bbox.x0 <= box.x0 and box.x1 <= panel.bbox.x1


def test_a_label_in_an_empty_corner_stays_there(draw: Draw) -> None:
    (label,) = drawn_with(draw, -4e4).texts
    assert (label.get_position(), label.get_horizontalalignment()) == ((0.98, 0.03), "right")
    assert STEP == 0.1


def test_hyperparameters_of_a_trace_are_drawn_as_metrics_are(draw: Draw) -> None:
    moving = timed(0, 1.0, 2.0, 3.0, variance=[1.0, 0.5, 0.25])
    figure, caption = draw(Convergence(metrics=("variance",)), moving)
    (line,) = figure.axes[0].lines
    assert list(np.asarray(line.get_ydata())) == [1.0, 0.5, 0.25]
    assert "of the kernel's variance, against" in caption


@pytest.mark.parametrize("name", shipped_experiments())
def test_every_figure_and_table_of_a_shipped_experiment_has_its_kind(name: str) -> None:
    experiment = load_experiment(name)
    for group, entries in ((FIGURES, experiment.figures), (TABLES, experiment.tables)):
        for entry in entries:
            assert kind_of(group, entry, experiment)
