"""Exact and counted claims of Cheng and Boots 2017: what holds as printed, and what does not."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from svgpbench.papers import Claim, load_paper
from svgpbench.papers.evidence.computed import Computation, compute
from svgpbench.papers.predicates.computations import ComputedPart
from svgpbench_papers.cheng2017.algebra import CLAIMS
from svgpbench_papers.cheng2017.algebra.figure1 import LIKE, posterior

COMPUTED = [name for name in CLAIMS if "/" not in name]


@functools.cache
def computation(claim: str) -> Computation:
    """What is computed for a claim, once."""
    found = compute("cheng2017", claim)
    assert found is not None
    return found


def claim_of(name: str) -> Claim:
    """An entry of the paper's claims."""
    return next(one for one in load_paper("cheng2017").claims if one.id == name)


@pytest.mark.parametrize("claim", COMPUTED)
def test_every_check_is_part_of_the_claim(claim: str) -> None:
    parts = claim_of(claim).parts
    named = {check for part in parts if isinstance(part, ComputedPart) for check in part.checks}
    assert set(computation(claim).frame["check"]) == named


@pytest.mark.parametrize("claim", list(CLAIMS)[:3])
def test_a_check_has_five_seeds_of_each_likelihood(claim: str) -> None:
    cases = computation(claim).frame.groupby(["check", "likelihood"])["seed"].nunique()
    assert set(cases) == {5}


def test_at_its_points_of_beta_the_best_variance_is_below_the_exact_one() -> None:
    of_04 = computation("cheng2017-04").frame
    at_beta = of_04[of_04["check"].str.startswith("same theta, on beta")]
    assert (at_beta["residual"] == 1).all()
    assert len(at_beta) == 10


def test_the_steps_of_the_online_runs_are_far_apart() -> None:
    """Beyond 30 times, where the claim of like costs is refuted, in FLOPs and in bytes."""
    of_06 = computation("cheng2017-06").frame
    ratios = of_06[of_06["check"].str.contains("Sec. 4")].set_index(["check", "D"])["residual"]
    assert len(ratios) == 4
    assert ratios.min() > 30


def test_figure_1_has_a_small_model_at_the_large_one_s_theta_and_at_its_own() -> None:
    same, own = (posterior(0, "small coupled", theta)[0] for theta in ("same theta", "own theta"))
    assert np.max(np.abs(same - own)) > 0.01
    for theta in ("same theta", "own theta"):
        assert posterior(0, LIKE, theta)[0] == pytest.approx(posterior(0, LIKE, "same theta")[0])
