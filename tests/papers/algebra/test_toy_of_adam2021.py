"""Figures 1 and 2 of adam2021: the toy, its M-steps, how iterations are counted, and what is drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from svgpbench.output.figure_and_table_types import computed_figure
from svgpbench.papers import load_paper
from svgpbench_papers.adam2021.algebra import CLAIMS
from svgpbench_papers.adam2021.algebra.figure1 import THETAS, objectives
from svgpbench_papers.adam2021.algebra.figure2 import em_path, fixed_point, iterates
from svgpbench_papers.adam2021.algebra.placed import METHODS, iterations_until
from svgpbench_papers.adam2021.algebra.toy import HIGHEST, LOWEST, ascent, e_step, toy


def test_the_toy_is_that_of_the_authors() -> None:
    """First inputs of NumPy's old generator at 123, and how many labels are 1."""
    problem = toy(0.6)
    assert problem.X[:3, 0] == pytest.approx([0.39293837, -0.42772133, -0.54629709], abs=1e-8)
    assert problem.X.shape == (100, 1)
    assert len(problem.Z) == 10
    assert np.ptp(np.diff(problem.Z[:, 0])) < 1e-12
    assert problem.theta(e_step("q-SVGP", 0.6).bench.model).kernel.variance == [0.6]


@pytest.mark.parametrize(
    ("margins", "count"),
    [
        ([1.0, 1.0], 0.0),
        ([-1.0, 1.0, 1.0], 1.0),
        ([-1.0, 0.0, -1.0, 1.0], 3.0),  # it has to stay
        ([-1.0, 1.0, -1.0], 3.0),  # one more than were run
        ([-1.0, np.nan], np.nan),
    ],
)
def test_iterations_are_counted_until_it_stays_so(margins: list[float], count: float) -> None:
    assert iterations_until(np.array(margins)) == pytest.approx(count, nan_ok=True)


@pytest.mark.parametrize("start", [0.01, 2.0, 2.1, 40.0])
def test_an_ascent_ends_at_the_maximum_uphill_of_its_start(start: float) -> None:
    """Two maxima, at 2 and at 30, with a valley at √60 between them."""

    def hills(theta: float) -> float:
        t, low, high = np.log(theta), np.log(2.0), np.log(30.0)
        return -float((t - low) ** 2 * (t - high) ** 2)

    assert ascent(hills, start) == pytest.approx(2.0 if start < 7.0 else 30.0, rel=1e-5)


def test_an_ascent_without_a_maximum_ends_at_a_limit() -> None:
    assert np.log(ascent(lambda theta: theta, 1.0)) >= HIGHEST
    assert np.log(ascent(lambda theta: -theta, 1.0)) <= LOWEST


def test_every_m_step_moves_to_where_its_curve_is_largest() -> None:
    """The curves that are drawn against θ* found by ascent, for the method that moves least and most."""
    curves = objectives()
    for method in ("t-SVGP untied", "q-SVGP"):
        mine = curves[(curves["theta_old"] == 0.6) & (curves["method"] == method)]
        highest = mine["theta"].to_numpy()[mine["objective"].argmax()]
        best = e_step(method, 0.6).best
        near = THETAS[np.abs(np.log(THETAS / highest)) < 0.13]
        assert near.min() <= best <= near.max()


def test_em_stands_still_at_one_point_whatever_the_method() -> None:
    at = fixed_point()
    for method in METHODS:
        assert e_step(method, at).best == pytest.approx(at, rel=1e-6)  # ascents end at 1e-7


def test_stairs_go_to_each_iterate_and_across() -> None:
    curves = iterates()
    mine = curves[(curves["method"] == "q-SVGP") & (curves["curve"] == "EM from θ = 2.5")]
    first, second = em_path("q-SVGP")[1:3]
    stairs = list(zip(mine["theta_old"], mine["theta"], strict=True))
    assert stairs[:4] == [(2.5, 2.5), (2.5, first), (first, first), (first, second)]
    assert stairs[-1] == (em_path("q-SVGP")[-1],) * 2


def test_every_declared_figure_has_a_frame_with_its_columns() -> None:
    paper = load_paper("adam2021")
    declared = [
        (artefact.id, artefact.computed, entry)
        for artefact in paper.about.artefacts
        if artefact.computed
        for entry in artefact.computed.figures
    ]
    assert [f"{name}/{entry.name}" for name, _, entry in declared] == [
        "fig1/objectives", "fig1/paths", "fig2/optima", "fig2/iterates",
    ]  # fmt: skip
    for name, computed, entry in declared:
        frame = CLAIMS[f"{name}/{entry.name}"]()
        kind = computed_figure(entry, computed.figures, f"adam2021/{name}")
        drawn = kind.draw(frame)
        panels = frame[kind.panel].nunique()
        assert len(drawn.axes) == panels


def test_printed_counts_have_ours_beside_them() -> None:
    ours = CLAIMS["fig2/printed"]().set_index(["setting", "note"])["value"]
    assert ours["t-SVGP, from θ=2.5", "untied"] == 1.0
    assert np.isnan(ours["t-SVGP, from θ=2.5", "tied more than 8"])
    assert ours["optimum", ""] == fixed_point()
    printed = {
        figure.setting for figure in load_paper("adam2021").printed if figure.artefact == "fig2"
    }
    assert printed == set(ours.index.get_level_values("setting"))


def test_claims_are_judged_on_the_frames_that_are_drawn() -> None:
    """The largest residual of claim 11 once more, from the curves of Figure 1."""
    curves = objectives()
    at = curves[curves["theta_old"] == 0.1].pivot(
        index="theta", columns="method", values="objective"
    )
    worst = max((at[other] - at["t-SVGP tied"]).max() for other in ("whitened q-SVGP", "q-SVGP"))
    rows: pd.DataFrame = CLAIMS["adam2021-11"]()
    judged = rows[rows["check"] == "t-SVGP tied, θ_old = 0.1"]["residual"].max()
    assert worst == pytest.approx(judged, rel=1e-12)
    assert worst > 50.0
