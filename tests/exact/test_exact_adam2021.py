"""Every exact or counted claim of adam2021 comes out as it must, part by part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from svgpbench.exact.derivatives import curvature, slope
from svgpbench.papers import load_paper
from svgpbench.report.verdicts import judge

FAILS = {
    "adam2021-05": {
        "t-SVGP tied-projected, Z = X, σ² moved",
        "t-SVGP tied-projected, M < n",
        "t-SVGP tied as Eq. 21 prints it",
    },
    "adam2021-06": {"t-SVGP, where a_i and κ_i move too: dᵀΔHd is the second difference"},
    "adam2021-07": {
        "inducing points, q(u) held (Alg. 1)",
        "no inducing points, q of the whitened variables held",
    },
}
"""Parts that do not hold; all others do."""


@pytest.mark.parametrize("name", [f"adam2021-{number:02d}" for number in range(1, 10)])
def test_each_part_holds_or_fails_as_it_must(name: str, tmp_path: Path) -> None:
    paper = load_paper("adam2021")
    (one,) = judge(paper, [claim for claim in paper.claims if claim.id == name], tmp_path)
    fails = FAILS.get(name, set())
    verdicts = {part.says: str(part.finding.verdict) for part in one.parts}
    assert verdicts == {
        part.says: "not reproduced" if part.says in fails else "reproduced" for part in one.parts
    }
    assert one.verdict == ("partly" if fails else "reproduced")


def test_derivatives_are_those_of_polynomials_to_the_sixth_degree() -> None:
    def f(x: float) -> float:
        return 3.0 + 2.0 * x - 5.0 * x**2 + x**3 - x**4 + 4.0 * x**5 - x**6

    assert slope(f, 0.1) == pytest.approx(2.0, abs=1e-12)
    assert curvature(f, 0.1) == pytest.approx(-10.0, abs=1e-11)
    assert slope(lambda t: np.array([np.sin(t), np.exp(t)])) == pytest.approx([1.0, 1.0], abs=1e-12)
