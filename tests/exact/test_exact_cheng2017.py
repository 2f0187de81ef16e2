"""Exact and counted claims of Cheng and Boots 2017: what holds as printed, and what does not."""

from __future__ import annotations

import functools

import pytest

from svgpbench.exact.cheng2017 import CLAIMS
from svgpbench.papers import Claim, load_paper
from svgpbench.papers.of_computations import Computed
from svgpbench.papers.grades import combined
from svgpbench.report.evidence import Computation, compute

DECIDED = {
    "cheng2017-01": "partly",
    "cheng2017-02": "reproduced",
    "cheng2017-03": "reproduced",
    "cheng2017-04": "partly",
    "cheng2017-05": "partly",
    "cheng2017-06": "partly",
    "cheng2017-07": "partly",
}
FALSE = {
    "cheng2017-01": ["α=β gives every coupled posterior"],
    "cheng2017-04": [
        "strictly below it where B ⪰ 0, as printed",
        "same θ: above the exact GP's at most points of β",
        "learned θ: above the exact GP's at most x among the data, M_β=M_α",
        "learned θ: above the exact GP's at most x beyond the data, M_β<M_α",
        "learned θ: above the exact GP's at most points of β",
    ],
    "cheng2017-05": ["the printed N of DNM where D > M > N"],
    "cheng2017-06": [
        "memory, M_α ~ M_β³, N held",
        "time, M_α ~ M_β³, N above M",
        "time, M_α ~ M_β², N and D above M",
        "memory, M_α ~ M_β², N above M",
        "the online runs' steps within 10 times",
    ],
    "cheng2017-07": [
        "at one θ: variances correlate with the large model's",
        "each at its own θ: mean within a tenth of small's distance",
        "each at its own θ: variances correlate with the large model's",
    ],
}
"""The parts of a claim that do not hold."""


@functools.cache
def computation(claim: str) -> Computation:
    """What is computed for a claim, once."""
    found = compute("cheng2017", claim)
    assert found is not None
    return found


def claim_of(name: str) -> Claim:
    """An entry of the paper's claims."""
    return next(one for one in load_paper("cheng2017").claims if one.id == name)


def test_every_exact_and_counted_claim_is_computed() -> None:
    claims = load_paper("cheng2017").claims
    assert [one.id for one in claims if one.id in DECIDED] == list(DECIDED)
    assert list(CLAIMS) == [*DECIDED, "fig1/sinc"]


@pytest.mark.parametrize("claim", DECIDED)
def test_a_claim_comes_out_as_decided_part_by_part(claim: str) -> None:
    found = {
        part.says: part.judge(computation(claim).of(part.checks)).grade
        for part in claim_of(claim).parts
        if isinstance(part, Computed)
    }
    failed = [part for part, verdict in found.items() if verdict == "not reproduced"]
    assert failed == FALSE.get(claim, [])
    assert set(found.values()) <= {"reproduced", "not reproduced"}
    assert combined(found.values()) == DECIDED[claim]


@pytest.mark.parametrize("claim", DECIDED)
def test_every_check_is_part_of_the_claim(claim: str) -> None:
    parts = claim_of(claim).parts
    named = {check for part in parts if isinstance(part, Computed) for check in part.checks}
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
