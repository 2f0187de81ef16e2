"""The plot of effects beside what matters: what a row holds, where it stands, and that it can be drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from planted_frames import around, planted, reversed_around, together
from planted_grades import judged, part
from planted_traces import converging
from test_grading import judged as graded
from test_grading import residual

from svgpbench.papers.forest import (
    LONGEST,
    MOST,
    WIDTH,
    ForestRow,
    _labels,
    as_text,
    draw,
    forest_rows,
    place,
)
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged, Part
from svgpbench.papers.predicates.all_predicates import Ordering


def test_an_effect_is_in_multiples_of_what_matters() -> None:
    frame = planted({"A": reversed_around(0.5), "B": around(0.55)})
    (effect,) = judged(frame, "ordering", metric="nlpd", methods=("A", "B")).effects
    assert effect.in_regions is not None and effect.low is not None
    assert effect.in_regions[:2] == (pytest.approx(5.0), pytest.approx(effect.low / 0.01))
    frame = planted({"A": reversed_around(1.0), "B": around(1.03)}, "mae")
    (effect,) = judged(frame, "ordering", metric="mae", methods=("A", "B")).effects
    assert effect.in_regions is not None
    assert effect.in_regions[0] == pytest.approx(0.03 / 1.03 / 0.01)  # 1 % of B's
    (effect,) = judged(converging({"A": [10], "B": [20]}), "sooner", methods=["A", "B"]).effects
    assert effect.in_regions is not None
    assert effect.in_regions[0] == pytest.approx(math.log(2) / math.log(1.1))


def of_experiments() -> Judged:
    """A claim with one core part on three data sets and a condition."""
    sets = [
        planted({"A": reversed_around(0.5), "B": around(0.5 + gain)}, data=f"set {at}")
        for at, gain in enumerate((0.02, 0.05, 0.09))
    ]
    stated = Ordering(
        says="lower NLPD", artefact="printed", predicate="ordering", metric="nlpd",
        methods=("A", "B"), core=True, printed_effect=(0.04, 0.02),
    )  # fmt: skip
    found = Part("lower NLPD", "core", stated.judge(together(*sets)))
    one = graded(residual("near"))
    claim = one.claim.model_copy(update={"parts": (stated,)})
    return replace(one, claim=claim, kind="experiments", parts=(found,))


def test_a_row_spans_its_cases_and_has_what_is_printed() -> None:
    (row,) = forest_rows([of_experiments(), graded(residual("near"))])
    assert (row.claim, row.cases, row.grade) == ("adam2021-01", 3, Grade.holds)
    assert (row.low, row.middle, row.high) == pytest.approx((2.0, 5.0, 9.0))
    assert row.printed == pytest.approx((4.0, 2.0))
    assert forest_rows([replace(of_experiments(), kind="ours")]) == []


def test_a_printed_ratio_is_in_multiples_of_a_tenth_more() -> None:
    keys = {"methods": ("A", "B"), "at_least": 4.0}
    ratio = part("ratio", printed_effect=5.0, **keys)
    assert ratio.printed_in_regions == pytest.approx((math.log(5) / math.log(1.1),))
    assert part("ratio", **keys).printed_in_regions == ()
    assert part("sooner", methods=("A", "B")).printed_in_regions == ()


def test_the_axis_is_even_and_ends() -> None:
    assert place(0.0) == 0.0
    assert place(-3.0) == -place(3.0)
    assert place(MOST) == place(math.inf) == 1.0
    assert 0.0 < place(1.0) < place(10.0) < 1.0


ROWS = [
    ForestRow("adam2021-15", "higher", Grade.holds, 6, 5.0, 2.0, 90.0, (60.0, 300.0)),
    ForestRow("salimbeni2018-17", "lower", Grade.fails, 1, -1.0, -math.inf, 0.5),
]


def test_the_text_fits_80_columns_and_shows_each_row() -> None:
    lines = as_text(ROWS).splitlines()
    assert max(map(len, lines)) <= 80
    first, second = lines[2:4]
    assert first.startswith("adam2021-15      holds             6")
    assert second.index("●") - 38 < WIDTH // 2 < first.index("●") - 38
    assert (first.count("▲"), second.count("▲")) == (2, 0)
    assert second.index("─") == 38


def test_the_picture_is_as_wide_as_a_telephone(tmp_path: Path) -> None:
    width, height = draw(ROWS, tmp_path / "effects.png")
    assert (tmp_path / "effects.png").stat().st_size > 5000
    assert (width, height) == (430, 161)
    with Image.open(tmp_path / "effects.png") as image:
        assert image.mode == "P"


def test_an_id_stands_where_its_claim_begins_and_long_texts_are_cut() -> None:
    again = ROWS[0]._replace(says="a test that takes more words than the picture has room for")
    first, second, third = _labels([ROWS[0], again, ROWS[1]])
    assert (first, third) == ("adam2021-15  higher", "salimbeni2018-17  lower")
    assert (len(second), second[:6], second[-1]) == (LONGEST, "a test", "…")
