"""Table 1 of cheng2017: every printed exponent has a counted one beside it."""

from __future__ import annotations

import pytest

from svgpbench.papers import load_paper
from svgpbench.papers.published_values import compare_with_computed
from svgpbench_papers.cheng2017.algebra.costs import beside_print


def test_every_printed_exponent_is_beside_one_counted_exponent_near_it() -> None:
    printed = [x for x in load_paper("cheng2017").printed if x.artefact == "counting"]
    rows = compare_with_computed(printed, beside_print(), [])
    assert [row.printed for row in rows] == printed and len(printed) == 40
    for row in rows:
        # terms of a lower order still count at the largest sizes, by 7.3e-4 at most
        assert row.ours.mean == pytest.approx(float(row.printed.value), abs=7.5e-4), row.printed
    kinds = {(x.setting.partition(",")[0], x.metric) for x in printed}
    methods = ("SVDGP", "SVI", "iVSGPR", "VSGPR", "GPR")
    assert kinds == {(m, f"exponent of {what}") for m in methods for what in ("time", "memory")}


def test_all_columns_are_a_setting_of_their_own() -> None:
    frame = beside_print().set_index(["setting", "metric"])["value"]
    where = "M_α where NM_α rules"
    assert frame[f"SVDGP with all columns, {where}", "exponent of memory"] == pytest.approx(2.0)
    assert frame[f"SVDGP, {where}", "exponent of memory"] == pytest.approx(1.0)
