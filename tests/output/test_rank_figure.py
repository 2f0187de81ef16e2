"""The picture of critical differences: its marks and band, and the data sets that it takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hand_records import cell, record
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from svgpbench.errors import UserError
from svgpbench.output.figures.ranks import CriticalDifference
from svgpbench.results.records import Record

Draw = Callable[..., tuple[Figure, str]]


def on_sets(count: int, *methods: str) -> list[Record]:
    """Each method on so many sets, the last named the best on every one."""
    return [
        record(cell(f"set {at}", method), -1.0, nlpd=-float(place))
        for at in range(count)
        for place, method in enumerate(methods)
    ]


def test_methods_stand_best_on_top_with_the_band_from_the_best(draw: Draw) -> None:
    figure, caption = draw(CriticalDifference(), *on_sets(10, "A", "B", "C"))
    (panel,) = figure.axes
    assert [text.get_text() for text in panel.get_yticklabels()] == ["C", "B", "A"]
    assert panel.yaxis_inverted()
    lines = [each[0] for each in panel.containers if isinstance(each, ErrorbarContainer)]
    marks = [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines]
    assert marks == [(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)]
    (band,) = panel.patches
    assert band.get_extents().transformed(panel.transData.inverted()).intervalx == pytest.approx(
        [1.0, 2.05], abs=5e-3
    )
    assert "average ranks of 3 methods over 10 data sets" in caption
    assert "the critical difference at 5 %, 1.05 (Nemenyi)" in caption


def test_bars_end_where_the_bootstrap_over_data_sets_says(draw: Draw) -> None:
    """Methods that are not always in one order; the best by mean rank is not the first one named."""
    ranks = np.array([[3, 1, 2], [2, 1, 3], [1, 2, 3]] + [[3, 1, 2]] * 3 + [[2, 1, 3]] * 4)
    records = [
        record(cell(f"set {at}", method), -1.0, rmse=float(rank))
        for at, row in enumerate(ranks)
        for method, rank in zip("ABC", row, strict=True)
    ]
    figure, _ = draw(CriticalDifference(metric="rmse"), *records)
    (panel,) = figure.axes
    rows = np.random.default_rng(0).integers(10, size=(10_000, 10))
    ends = np.quantile(ranks[rows].mean(axis=1), [0.025, 0.975], axis=0)
    order = [1, 0, 2]  # mean ranks 1.1, 2.3, 2.6
    assert [text.get_text() for text in panel.get_yticklabels()] == ["B", "A", "C"]
    found = [
        np.asarray(container[2][0].get_segments()[0])[:, 0]
        for container in panel.containers
        if isinstance(container, ErrorbarContainer)
    ]
    np.testing.assert_allclose(found, ends[:, order].T, rtol=1e-12)
    assert np.all(np.diff(found) > 0.1)
    assert panel.get_xlabel() == "average rank in RMSE (test)"


@pytest.mark.parametrize(
    ("sets", "methods", "says"),
    [
        (9, "AB", "9 data sets and 2 methods"),
        (4, "AB", "4 data sets and 2 methods"),
        (10, "A", "10 data sets and 1 methods"),
    ],
)
def test_few_data_sets_or_methods_have_no_picture(
    draw: Draw, sets: int, methods: str, says: str
) -> None:
    with pytest.raises(UserError, match=f"take 10 data sets .* by-hand have {says}"):
        draw(CriticalDifference(), *on_sets(sets, *methods))
