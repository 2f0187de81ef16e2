"""Figures of frames that are computed: where their marks are, read back from matplotlib, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from svgpbench.errors import UserError
from svgpbench.experiments import FigureEntry, load_experiment
from svgpbench.output.figure import draw_computed
from svgpbench.output.figure_and_table_types import ComputedFigure, computed_figure, kind_of
from svgpbench.output.figures.contours import Contours
from svgpbench.output.figures.lines import Lines
from svgpbench.output.palette import METHOD_STYLES
from svgpbench.papers import load_paper
from svgpbench.plugins import FIGURES

Draw = Callable[[ComputedFigure, pd.DataFrame], tuple[Figure, str]]
COMMON = {"shows": "What there is.", "x_label": "across", "y_label": "up"}


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Draw:
    """The figure that `draw_computed` would have saved, and its caption."""
    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: saved.append(figure))

    def call(kind: ComputedFigure, frame: pd.DataFrame) -> tuple[Figure, str]:
        caption = draw_computed(frame, kind, "mine/fig1", tmp_path / "figure.png")
        return saved[-1], caption

    return call


def points(axis: Axes, **properties: Any) -> list[tuple[list[float], list[float]]]:
    """x and y of the lines that have some properties."""
    return [
        (list(map(float, line.get_xdata())), list(map(float, line.get_ydata())))
        for line in axis.lines
        if all(getattr(line, f"get_{name}")() == value for name, value in properties.items())
    ]


CURVES = pd.DataFrame(
    {
        "old": [1.5] * 4 + [2.5] * 4,
        "method": ["q-SVGP", "q-SVGP", "t-SVGP tied", "t-SVGP tied"] * 2,
        "theta": [3.0, 2.0, 1.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        "value": [-1.0, -2.0, -3.0, -40.0, -5.0, -6.0, -7.0, -8.0],
    }
)


def test_lines_have_a_panel_a_value_and_a_curve_a_method_in_the_order_of_rows(draw: Draw) -> None:
    kind = Lines(x="theta", y="value", panel="old", panel_label="old = ", **COMMON)
    figure, caption = draw(kind, CURVES)
    first, second = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["old = 1.5", "old = 2.5"]
    assert points(first, color=METHOD_STYLES["q-SVGP"].colour) == [([3.0, 2.0], [-1.0, -2.0])]
    assert points(second, color=METHOD_STYLES["t-SVGP tied"].colour) == [([7.0, 8.0], [-7.0, -8.0])]
    assert (first.get_xlabel(), first.get_ylabel()) == ("across", "up")
    assert caption == "mine/fig1: What there is. Computed afresh."


def test_lines_mark_what_they_are_asked_to_and_say_what_leaves_the_panel(draw: Draw) -> None:
    kind = Lines(
        x="theta", y="value", panel="old", at="old", log=("x",), points=True, y_limits=(-9.0, 0.0),
        **COMMON,
    )  # fmt: skip
    figure, caption = draw(kind, CURVES)
    for axis, at in zip(figure.axes, (1.5, 2.5), strict=True):
        assert points(axis, linestyle=":", color="0.3") == [([at, at], [0.0, 1.0])]
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "linear")
        assert axis.get_ylim() == (-9.0, 0.0)
    hollow = points(figure.axes[0], markerfacecolor="white")
    assert hollow == [([3.0], [-1.0]), ([1.0], [-3.0])]
    assert "Hollow: where they start." in caption
    assert "Curves go below the panel, to -40." in caption


GRID = [0.5, 1.0, 2.0]
SURFACE = pd.DataFrame(
    [
        {"x": x, "y": y, "value": 10.0 - (x - 1.0) ** 2 - 4.0 * (y - 1.0) ** 2, "of": "a"}
        for x in GRID
        for y in GRID
    ]
    + [{"x": x, "y": x * x, "curve": "square", "of": "a"} for x in GRID]
    + [{"x": 1.0, "y": 1.0, "curve": "best", "of": "a"}]
)


def contours(**more: Any) -> Contours:
    return Contours(x="x", y="y", value="value", panel="of", below=(1.0, 0.5), **COMMON, **more)


def test_contours_lie_below_the_largest_value_and_curves_on_top(draw: Draw) -> None:
    figure, caption = draw(contours(diagonal="x = y", begun=("square",)), SURFACE)
    (axis,) = figure.axes
    filled, lines = axis.collections
    assert list(lines.levels) == [-1.0, -0.5]
    assert filled.levels[-1] == 0.0
    x, y = np.concatenate([path.vertices for path in lines.get_paths()]).T
    # between grid points values are linear: 1 below the largest at x = 2, and a quarter of the way to y = 2
    assert (x.max(), y.max()) == pytest.approx((2.0, 1.25))
    assert points(axis, linestyle="-") == [(GRID, [0.25, 1.0, 4.0])]
    assert points(axis, marker="*") == [([1.0], [1.0])]
    assert points(axis, marker="o") == [([0.5], [0.25])]
    assert points(axis, linestyle=":")  # the diagonal
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["square", "best"]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert "Contours: 0.5, 1 below the largest value in the panel. Dotted: x = y." in caption


@pytest.mark.parametrize(
    ("kind", "frame", "column"),
    [
        (Lines(x="theta", y="valeu", **COMMON), CURVES, "valeu"),
        (Lines(x="theta", y="value", panel="odl", **COMMON), CURVES, "odl"),
        (contours(curve="cruve"), SURFACE, "cruve"),
    ],
)
def test_a_column_that_is_not_there_is_one_line(
    draw: Draw, kind: ComputedFigure, frame: pd.DataFrame, column: str
) -> None:
    message = f"unknown column of what is computed '{column}'; did you mean"
    with pytest.raises(UserError, match=message) as caught:
        draw(kind, frame)
    assert "\n" not in str(caught.value)


def test_a_kind_draws_either_records_or_what_is_computed() -> None:
    lines, records = FigureEntry(name="a", kind="lines"), FigureEntry(name="a", kind="finals")
    experiment = load_experiment("adam2021-fig3")
    with pytest.raises(UserError, match="kind 'lines' draws what is computed, not records"):
        kind_of(FIGURES, lines, experiment)
    fig1 = load_paper("adam2021").artefact("fig1")
    with pytest.raises(UserError, match="kind 'finals' draws records, not what is computed"):
        computed_figure(records, fig1.computed.figures, "adam2021/fig1")


def test_a_mistake_in_an_entry_names_the_artefact_and_the_key() -> None:
    fig1 = load_paper("adam2021").artefact("fig1")
    entry = FigureEntry(name="objectives", kind="lines", x="theta", yy="objective")
    with pytest.raises(
        UserError, match=r"^adam2021/fig1: unknown key 'yy' in \[\[figures\]\] no. 1"
    ):
        computed_figure(entry, fig1.computed.figures, "adam2021/fig1")
