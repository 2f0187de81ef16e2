"""Claims computed ahead in several processes: those that are asked for, and the same frames."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from svgpbench.papers import Paper, load_paper
from svgpbench.papers import precomputed as module
from svgpbench.papers.evidence.computed import Computation, compute, computed_frame
from svgpbench.papers.grading import judge
from svgpbench.papers.precomputed import NOT_PRECOMPUTED, InProcess, precompute

QUICK = ("kobe2021-02", "kobe2021-07")


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_paper("kobe2021")


def test_several_processes_compute_what_one_does_and_tell_each(
    paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: (0, 1))
    done: list[str] = []
    asked = {*QUICK, "kobe2021-08"}  # the last rests on records
    with precompute([paper], asked, done.append, [(paper.name, QUICK[1])]) as given:
        assert given.claim is not compute
        frames = {claim: given.claim(paper.name, claim) for claim in QUICK}
        drawn = given.frame(paper.name, QUICK[1])
        with pytest.raises(KeyError):
            given.claim(paper.name, "kobe2021-03")  # nobody asked for it
        with pytest.raises(KeyError):
            given.frame(paper.name, QUICK[0])
        assert given.executor.submit(os.getpid).result() != os.getpid()
    assert sorted(done) == sorted([*QUICK, QUICK[1]])
    assert drawn is not None
    pd.testing.assert_frame_equal(drawn, computed_frame(paper.name, QUICK[1]))
    for claim, found in frames.items():
        here = compute(paper.name, claim)
        assert found is not None and here is not None
        pd.testing.assert_frame_equal(found.frame, here.frame)


@pytest.mark.parametrize(("cores", "asked"), [((0,), {*QUICK}), ((0, 1), {QUICK[0]})])
def test_one_core_or_one_claim_takes_no_other_process(
    paper: Paper, monkeypatch: pytest.MonkeyPatch, cores: tuple[int, ...], asked: set[str]
) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: cores)
    with precompute([paper], asked, lambda claim: None) as given:
        assert given is NOT_PRECOMPUTED
        assert given.executor.submit(os.getpid).result() == os.getpid()


def test_an_exception_in_this_process_is_raised_where_the_result_is_needed() -> None:
    future = InProcess().submit(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        future.result()


def test_only_what_is_asked_for_is_computed_and_only_of_claims_that_rest_on_it(
    paper: Paper, tmp_path: Path
) -> None:
    computed: list[str] = []

    def told(name: str, claim: str) -> Computation | None:
        computed.append(claim)
        return compute(name, claim)

    claims = [claim for claim in paper.claims if claim.id in {QUICK[0], "kobe2021-08"}]
    judged = judge(paper, claims, tmp_path, told)
    assert computed == [QUICK[0]]
    assert [one.grade == "not run" for one in judged] == [False, True]
