"""What the axes of a figure carry: the lines, bands, crosses and arrows, read back from matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hand_records import cell, record
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from svgpbench.output.figures.convergence import Convergence
from svgpbench.output.palette import METHOD_STYLES, OTHER_STYLES
from svgpbench.results.records import Record

Draw = Callable[..., tuple[Figure, str]]
DATA, METHODS = ("airfoil", "boston", "concrete"), ("t-SVGP", "q-SVGP Adam", "theirs")


def traced(
    elbo: Sequence[float], nlpd: Sequence[float] = (), status: str = "ok", **of: Any
) -> Record:
    trace = {
        "iteration": list(range(1, len(elbo) + 1)),
        "elbo": list(elbo),
        "nlpd": list(nlpd) or [0.5] * len(elbo),
        "rmse": [9.0] * len(elbo),
        "seconds": [9.0] * len(elbo),
    }
    return record(cell(**of), status=status, trace=trace)  # type: ignore[arg-type]


def panels(draw: Draw, *records: Record) -> dict[tuple[str, str], Axes]:
    """Draw the curves of records; the axes by data set and by what their row shows."""
    figure, _ = draw(Convergence(), *records)
    grid = np.array(figure.axes).reshape(2, -1)
    return {
        (top.get_title().partition("\n")[0], row[0].get_ylabel()): panel
        for row in grid
        for top, panel in zip(grid[0], row, strict=True)
    }


def drawn_lines(panel: Axes) -> dict[str, Line2D]:
    """Lines with more than a marker, by colour."""
    return {
        to_hex(one.get_color()).upper(): one for one in panel.lines if one.get_marker() == "None"
    }


def colour(method: str) -> str:
    return (METHOD_STYLES[method] if method in METHOD_STYLES else OTHER_STYLES[0]).colour.upper()


def values(data: str, method: str, fold: int) -> np.ndarray[Any, Any]:
    """Three numbers that no other data set, method or fold has."""
    at = 100.0 * DATA.index(data) + 10.0 * METHODS.index(method)
    return at + np.array([1.0, 2.0, 4.0]) * (1 + fold)


def grid() -> list[Record]:
    return [
        traced(-values(d, m, f), values(d, m, f) / 8, data=d, method=m, fold=f, iterations=3)
        for d in DATA
        for m in METHODS
        for f in (0, 1)
    ]


def test_every_line_is_the_mean_of_its_traces_in_the_panel_of_its_data_and_metric(
    draw: Draw,
) -> None:
    found = panels(draw, *grid())
    assert set(found) == {(data, label) for data in DATA for label in ("ELBO", "NLPD (test)")}
    for (data, label), panel in found.items():
        lines = drawn_lines(panel)
        assert set(lines) == {colour(method) for method in METHODS}
        for method in METHODS:
            mean = (values(data, method, 0) + values(data, method, 1)) / 2
            expected = -mean if label == "ELBO" else mean / 8
            x, y = lines[colour(method)].get_data()
            np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-14)
            assert list(np.asarray(x)) == [1, 2, 3]


def test_the_bound_is_above_and_the_density_below(draw: Draw) -> None:
    figure, _ = draw(Convergence(), *grid())
    top, bottom = np.array(figure.axes).reshape(2, -1)
    assert [top[0].get_ylabel(), bottom[0].get_ylabel()] == ["ELBO", "NLPD (test)"]
    assert [panel.get_xlabel() for panel in bottom] == ["EM iteration"] * 3
    assert [panel.get_title() for panel in top] == [f"{name}\n$n=90$, $D=5$" for name in DATA]
    assert not any(panel.get_ylabel() for panel in (*top[1:], *bottom[1:]))
    assert all(top[0].get_position().y0 > panel.get_position().y0 for panel in bottom)


def test_bands_are_a_standard_error_to_either_side(draw: Draw) -> None:
    panel = panels(
        draw,
        *(
            traced([-v, -2 * v, -3 * v], [v, 2 * v, 3 * v], fold=f)
            for f, v in enumerate((10, 12, 17))
        ),
    )
    # 10 12 17: mean 13, squares 9 1 16, over two; a third and n_test/n_train of it; none of one start's bound
    error = np.sqrt(26 / 2 * (1 / 3 + 1 / 2))
    for name, sign, wide in (("NLPD (test)", 1, error), ("ELBO", -1, 0.0)):
        (band,) = panel["airfoil", name].collections
        corners = np.asarray(band.get_paths()[0].vertices)
        for x in (1, 2, 3):
            ends = corners[corners[:, 0] == x][:, 1]
            expected = (x * (sign * 13 - wide), x * (sign * 13 + wide))
            assert (ends.min(), ends.max()) == pytest.approx(expected)


def test_methods_keep_their_styles_and_are_named_in_the_legend(draw: Draw) -> None:
    figure, _ = draw(Convergence(), *grid())
    (legend,) = figure.legends
    styles = {
        text.get_text(): to_hex(handle.get_color()).upper()  # type: ignore[attr-defined]
        for text, handle in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    assert styles == {method: colour(method) for method in METHODS}


def test_only_the_reference_backend_is_drawn_and_no_replica(draw: Draw) -> None:
    wanted = [traced([-3.0, -2.0, -1.0], fold=fold) for fold in (0, 1)]
    others = [
        traced([-30.0, -20.0, -10.0], fold=0, backend="torch"),
        traced([-300.0, -200.0, -100.0], fold=0, perturbation=1e-15),
        traced([-300.0], fold=1, perturbation=1e-15, status="not_pd"),
    ]
    panel = panels(draw, *wanted, *others)["airfoil", "ELBO"]
    (line,) = panel.lines
    assert list(np.asarray(line.get_ydata())) == [-3.0, -2.0, -1.0]
    assert not panel.texts


def test_a_cross_marks_the_end_of_a_curve_that_broke(draw: Draw) -> None:
    panel = panels(
        draw,
        traced([-5.0, -4.0, -3.0]),
        traced([-5.0, -2.0], status="not_pd", fold=1),
        traced([-6.0, -5.0, -4.0], method="B"),
    )["airfoil", "ELBO"]
    (cross,) = [line for line in panel.lines if line.get_marker() == "x"]
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([2.0], [-3.0])  # type: ignore[arg-type]
    assert cross.get_color() == OTHER_STYLES[0].colour
    ends = [len(line.get_data()[0]) for line in panel.lines if line.get_marker() == "None"]  # type: ignore[arg-type]
    assert ends == [2, 3]


def test_no_cross_where_all_end_well(draw: Draw) -> None:
    figure, _ = draw(Convergence(), traced([-5.0, -4.0, -3.0]), traced([-5.0, -4.0, -3.0], fold=1))
    assert not [line for panel in figure.axes for line in panel.lines if line.get_marker() == "x"]


def test_a_method_that_failed_before_its_first_point_is_named_and_not_drawn(draw: Draw) -> None:
    panel = panels(
        draw,
        traced([-5.0, -4.0, -3.0], method="t-SVGP"),
        traced([-1.0, -1.0, -1.0], method="B", fold=0),
        record(cell(method="B", fold=1), status="not_pd"),
    )["airfoil", "ELBO"]
    assert set(drawn_lines(panel)) == {colour("t-SVGP")}
    assert [text.get_text() for text in panel.texts] == ["B: failed"]


def test_a_method_of_which_nothing_is_left_is_named_too(draw: Draw) -> None:
    found = panels(
        draw,
        traced([-5.0, -4.0, -3.0], method="t-SVGP"),
        *(record(cell(method="B", fold=fold), status="not_pd") for fold in (0, 1)),
        record(cell("boston", method="B"), status="not_pd"),
    )
    for data in ("airfoil", "boston"):
        assert [text.get_text() for text in found[data, "ELBO"].texts] == ["B: failed"]
    assert set(drawn_lines(found["airfoil", "ELBO"])) == {colour("t-SVGP")}


def test_an_arrow_tells_where_a_curve_goes_that_leaves_the_panel(draw: Draw) -> None:
    found = panels(
        draw,
        traced([-5.0, -4.0, -3.0], [0.5, 0.4, 0.3], method="t-SVGP"),
        traced([-5.0, -4.0, -3.5], [0.5, 0.4, 0.4], method="B"),
        traced([-6.0, -48_200.0, -412.0], [0.5, 612.4, 30.0], method="theirs"),
    )
    for label, text, above in (
        ("ELBO", r"$\downarrow$ $-4.8\times10^{4}$", False),
        ("NLPD (test)", r"$\uparrow$ 612", True),
    ):
        (arrow,) = found["airfoil", label].texts
        assert arrow.get_text() == text
        assert arrow.get_color() == OTHER_STYLES[1].colour
        low, high = found["airfoil", label].get_ylim()
        assert (abs(low) < 100) and (abs(high) < 100)
        assert (arrow.get_position()[1] > 0.5) == above
