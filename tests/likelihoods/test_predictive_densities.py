"""Predictive densities against mpmath's integrals, over μ, v and y of every likelihood and of strangers'."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from densities_by_mpmath import CASES, EACH, POINTS

from svgpbench.ops import Ops
from svgpbench.tree import tree_map

KNOWN = pd.read_csv(POINTS)


@pytest.mark.parametrize("name", CASES)
def test_log_predictive_densities_are_those_of_mpmath(ops: Ops, name: str) -> None:
    likelihood, parameters, *_ = CASES[name]
    rows = KNOWN[KNOWN.likelihood == name]
    assert len(rows) == EACH
    y, mu, v = (ops.asarray(rows[column].to_numpy()) for column in ("y", "mu", "v"))
    p = tree_map(lambda x: ops.asarray(np.float64(x)), parameters)
    got = ops.to_numpy(likelihood.log_predictive_density(ops, p, y, mu[None, :], v[None, :]))
    # 1e-6 absolute; a log density of −10⁵ has that many digits less
    np.testing.assert_allclose(got, rows.log_density, rtol=1e-10, atol=1e-6)
