"""Exact and counted claims of Salimbeni et al. 2018b come out as algebra and counting say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from svgpbench.exact.salimbeni2018.surface import Surface, problem
from svgpbench.papers import load_paper
from svgpbench.report.grading import judge

FAILS: dict[str, tuple[str, ...]] = {
    "salimbeni2018-01": (),
    "salimbeni2018-02": (),
    "salimbeni2018-03": (),
    "salimbeni2018-04": (
        "the bound's cross block is 0, as printed",
        "cond(ORTH) < cond(HYBRID), in a_β and m_β as printed",
    ),
    "salimbeni2018-05": (),
    "salimbeni2018-06": (),
    "salimbeni2018-07": (
        "HYBRID: no |β| beside |α|, as printed",
        "extra cost of β over that of γ falls as β grows, as printed",
    ),
}
"""By claim: which of its parts do not hold."""


@pytest.mark.parametrize("claim", FAILS)
def test_a_claim_holds_but_for_what_is_false_as_printed(claim: str) -> None:
    paper = load_paper("salimbeni2018")
    (judged,) = judge(paper, [x for x in paper.claims if x.id == claim], Path("none"))
    found = {part.says: part.grade for part in judged.parts}
    assert found == dict.fromkeys(found, "reproduced") | dict.fromkeys(
        FAILS[claim], "not reproduced"
    )
    assert judged.grade == ("partly" if FAILS[claim] else "reproduced")


def test_every_exact_or_counted_claim_is_decided() -> None:
    claims = load_paper("salimbeni2018").claims
    assert {claim.id for claim in claims if claim.kind in ("exact", "count")} == set(FAILS)
    assert all(claim.parts for claim in claims if claim.id in FAILS)


def test_hessians_are_the_gaussian_bounds_own_in_the_mean() -> None:
    """K⁻¹ + AAᵀ/σ² in m, at each of several points."""
    of = Surface("COUPLED", "gaussian", problem(0))
    points = of.random_points(np.random.default_rng(0), 3)
    W, M = of.blocks.W[0], of.lengths[0]
    noise = float(of.model.likelihood.initial_parameters().noise_variance)
    L_inv = np.linalg.inv(of.blocks.L[0])
    expected = L_inv.T @ (np.eye(M) + W @ W.T / noise) @ L_inv
    for H in of.hessians(points):
        np.testing.assert_allclose(H[:M, :M], expected, rtol=0, atol=1e-7 * np.abs(expected).max())
