"""Claims that are computed afresh: which rows decide a part, and why one has not run."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from another_paper import FIFTH, fifth_paper

from svgpbench.errors import UserError
from svgpbench.papers import load_paper
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged, judge
from svgpbench_papers.adam2021.algebra import lagrangian
from svgpbench_papers.algebra.random_problems import positive_part, with_worst
from svgpbench_papers.cheng2017.algebra import variances
from svgpbench_papers.titsias2025.algebra import bounds

CODE = """
import pandas as pd

def frame():
    return pd.DataFrame({"check": ["near", "near", "far"], "residual": [1e-12, -1e-9, 0.5]})

CLAIMS = {"fifth2030-01": frame}
"""
CLAIM = """
[[claims]]
id = "fifth2030-01"
title = "planted"
where = "here"
kind = "exact"
fidelity = "algebra"
claim = "planted"
predicate = "a test"
depends_on = "nothing"
finding = "planted"
artefacts = ["algebra"]
"""
PART = '[[claims.parts]]\nsays = "planted"\nartefact = "algebra"\ncore = true\n'
Parts = tuple[str, ...]


def test_nan_is_the_worst_residual() -> None:
    assert [positive_part(x) for x in (-1.0, 0.0, 2.0)] == [0.0, 0.0, 2.0]
    assert math.isnan(positive_part(math.nan))
    part = pd.DataFrame({"seed": [0, 0, 1, 1], "residual": [math.nan, 1.0, 2.0, 3.0]})
    (_, nan, three) = with_worst(part[1:2], part, "seed")["residual"]
    assert math.isnan(nan) and three == 3.0


def test_a_variance_or_a_slope_that_is_nan_is_no_residual_of_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nan(*_: object) -> tuple[float, npt.NDArray[np.float64]]:
        return math.nan, np.array([math.nan])

    monkeypatch.setattr(variances.DecoupledModel, "marginals", nan)
    residuals = dict(variances._beside_prior(0, 4))
    assert math.isnan(residuals["at most the prior's"])
    monkeypatch.setattr(lagrangian, "lagrangian", lambda *_: math.nan)
    point = lagrangian.LagrangianPoint(
        np.zeros(2), np.eye(2), np.zeros(2), np.ones(2), np.zeros(2), np.zeros(2)
    )
    slopes: Any = lagrangian._slopes(None, point, 0)  # type: ignore[arg-type]
    assert np.isnan([*slopes.values()]).all()
    monkeypatch.setattr(bounds.Bench, "marginals", lambda *_: [np.zeros(1), np.array([math.nan])])
    assert bounds.same_steps()["residual"].isna().all()


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Judged]:
    """The one claim of another package's paper, with parts and code of a test's own, judged."""

    def judged(*parts: str, code: str = CODE) -> Judged:
        theirs = fifth_paper("kobe2021", tmp_path, monkeypatch, code)
        asked = "\n".join(PART + part + "\n" for part in parts)
        (theirs / "claims.toml").write_text(CLAIM + asked, encoding="utf-8")
        paper = load_paper(FIFTH)
        (one,) = judge(paper, paper.claims, tmp_path / "runs")
        return one

    return judged


@pytest.mark.parametrize(
    ("parts", "grades", "whole"),
    [
        (('predicate = "identity"\nchecks = ["near"]',), ["holds"], "holds"),
        (('predicate = "identity"',), ["fails"], "fails"),  # every row
        (
            (
                'predicate = "differs"\nchecks = ["far"]',
                'predicate = "identity"\nchecks = ["far", "near"]',
            ),
            ["holds", "fails"],
            "mixed",
        ),
    ],
)
def test_a_part_is_decided_by_the_rows_of_its_checks(
    entry: Callable[..., Judged], parts: Parts, grades: list[str], whole: str
) -> None:
    one = entry(*parts)
    assert [part.grade for part in one.parts] == grades
    assert one.grade == whole
    assert one.condition == "computed: 2 checks, 3 cases"


def test_an_unknown_check_is_one_line(entry: Callable[..., Judged]) -> None:
    with pytest.raises(UserError, match="unknown check 'nearr'; did you mean 'near'") as caught:
        entry('predicate = "identity"\nchecks = ["nearr"]')
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ('predicate = "identity"', "unknown column of algebra in 'planted' 'residual'"),
        (
            'predicate = "exponent"\ncost = "flops"\nsize = "M"\npower = 1.0',
            "unknown column of algebra in 'planted' 'M'",
        ),
    ],
)
def test_a_column_that_a_frame_lacks_is_one_line(
    entry: Callable[..., Judged], part: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        entry(part, code=CODE.replace("residual", "residuals"))


@pytest.mark.parametrize("code", ["", CODE.replace("fifth2030-01", "fifth2030-02")])
def test_a_claim_without_a_computation_has_not_run(entry: Callable[..., Judged], code: str) -> None:
    one = entry('predicate = "identity"', code=code)
    assert (one.grade, one.finding) == (Grade.not_run, "nothing computes it")
