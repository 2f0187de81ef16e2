"""What the exact and counted claims of Kobe 2021 come to, part by part, with the figures that decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from svgpbench.papers import load_paper
from svgpbench.report.grading import judge

R, N = "reproduced", "not reproduced"
SMALL = 0.0
"""A residual that is nothing but rounding."""

PARTS: dict[str, list[tuple[str, float | None]]] = {
    "kobe2021-01": [(R, SMALL), (R, SMALL), (R, SMALL), (R, 0.0854), (R, 0.0120)],
    "kobe2021-02": [(R, SMALL), (R, SMALL), (N, 2.0), (R, SMALL), (R, None), (N, None), (R, 4.07)],
    "kobe2021-03": [
        (R, SMALL), (R, SMALL), (N, 0.376), (N, 0.265), (N, 0.265), (N, 0.388), (R, SMALL),
    ],
    "kobe2021-04": [(R, SMALL), (R, SMALL), (N, 1.31), (N, SMALL), (R, 0.00356), (R, 0.0375)],
    "kobe2021-05": [(R, SMALL), (R, SMALL), (R, 0.0086)],
    "kobe2021-06": [(R, SMALL), (R, 1.021), (R, 1.018), (N, 0.0078), (N, 1.34)],
    "kobe2021-07": [
        (R, SMALL), (R, 3.0), (R, 2.996), (R, 1.0), (R, 1.987), (N, 3.0), (N, 2.997), (N, 3.0), (R, 1.0),
    ],
    "kobe2021-15": [(N, None), (N, 0.0505), (N, 0.2317), (R, SMALL)],
    "kobe2021-17": [(N, 1387.7)],
    "kobe2021-18": [(R, 0.0145), (R, 0.00173), (R, SMALL), (R, 0.0137)],
    "kobe2021-19": [(N, 6.705)],
}  # fmt: skip
"""Grade and figure of each part; None where it is that of rounding or of where an ascent stops."""


@pytest.mark.parametrize("claim", PARTS)
def test_each_part_comes_out_with_its_figure(claim: str, tmp_path: Path) -> None:
    paper = load_paper("kobe2021")
    (entry,) = judge(paper, [one for one in paper.claims if one.id == claim], tmp_path)
    computed = [part for part in entry.claim.parts if paper.artefact(part.artefact).computed]
    found = [part.judgement for part in entry.parts[: len(computed)]]  # before what records decide
    assert [(one.grade, part.says) for one, part in zip(found, entry.parts, strict=False)] == [
        (verdict, part.says) for (verdict, _), part in zip(PARTS[claim], computed, strict=True)
    ]
    for finding, (_, figure) in zip(found, PARTS[claim], strict=True):
        (effect,) = finding.effects
        if figure is not None:
            assert effect.value == pytest.approx(figure, rel=5e-3, abs=1e-7)


def test_the_verdicts_follow_from_the_parts(tmp_path: Path) -> None:
    """One claim of each kind; a claim holds as stated where each of its parts does."""
    paper = load_paper("kobe2021")
    exact = [one for one in paper.claims if one.id in ("kobe2021-02", "kobe2021-07")]
    assert {entry.grade for entry in judge(paper, exact, tmp_path)} == {"partly"}
    decided = {one.id for one in paper.claims if one.kind in ("exact", "count")}
    assert decided | {"kobe2021-05", "kobe2021-15", "kobe2021-17", "kobe2021-19"} == set(PARTS)
