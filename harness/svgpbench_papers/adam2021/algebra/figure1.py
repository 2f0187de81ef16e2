"""Adam et al. 2021, Figure 1, left: M-step objectives over θ after an E-step at θ_old; claim 11."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from svgpbench.checks.matrix import difference
from svgpbench_papers.adam2021.algebra.placed import DUALS, METHODS, STANDARD
from svgpbench_papers.adam2021.algebra.toy import LINK, LINKS, e_step
from svgpbench_papers.algebra.random_problems import Row, with_worst

OLD_THETAS = (0.1, 0.6, 2.5)
"""0.6 from the notebook, 2.5 from the start of Figure 2, and a value on the other side of the optimum."""
DUAL_CURVES = tuple(f"{dual}, θ_old = " for dual in DUALS)
# each θ_old is among them to the last bit: `theta == old` finds where the curves touch
THETAS = np.union1d(np.geomspace(0.05, 5.0, 41), OLD_THETAS)


@cache
def objectives(link: str = LINK) -> pd.DataFrame:
    """Return one row per θ_old, method and θ, with the objective of the method's M-step."""
    return pd.DataFrame(
        {
            "theta_old": old, "method": method, "theta": theta, "objective": step(theta),
        }
        for old, method in itertools.product(OLD_THETAS, METHODS)
        for step in [e_step(method, old, link)]
        for theta in map(float, THETAS)
    )  # fmt: skip


def dual_is_above() -> pd.DataFrame:
    """Return by how many nats q-SVGP's objectives exceed dual ones; their difference at θ_old (claim 11)."""
    rows: list[Row] = [
        {
            "theta_old": old, "method": method, "theta": theta, "check": "dense algebra",
            "residual": difference(step(theta), step.by_dense_algebra(theta)),
        }
        for old, method in itertools.product(OLD_THETAS, METHODS)
        for step in [e_step(method, old)]
        for theta in map(float, THETAS[::4])
    ]  # fmt: skip
    frame = pd.DataFrame([*rows, *(row for link in LINKS for row in _gaps(link))])
    below = frame[frame["check"].str.startswith(DUAL_CURVES)]
    below = below.assign(check=below["method"] + ", at its worst θ")
    return with_worst(frame, below, ["method", "theta_old"])


def _gaps(link: str) -> Iterator[Row]:
    """Yield by how much q-SVGP objectives exceed dual ones, and their differences at θ_old."""
    curves = objectives(link)
    wide = curves.pivot(index=["theta_old", "theta"], columns="method", values="objective")
    for dual, standard in itertools.product(DUALS, STANDARD):
        for (old, theta), lower, upper in zip(wide.index, wide[standard], wide[dual], strict=True):
            case = {"link": link, "theta_old": old, "theta": theta}
            case |= {"method": dual, "other": standard}
            check = f"{dual}, θ_old = {old:g}" if link == LINK else f"{dual}, {link}"
            yield {**case, "check": check, "residual": np.maximum(0.0, lower - upper)}
            if theta == old:
                yield {**case, "check": "touching", "residual": difference(lower, upper)}
