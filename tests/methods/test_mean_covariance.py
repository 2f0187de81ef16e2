"""q-SVGP: where it starts, against dense Gaussians, and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svgpbench.checks.cases import build_model, small_problem
from svgpbench.checks.dense import kernel_matrix
from svgpbench.errors import UserError
from svgpbench.methods import build_method
from svgpbench.methods.mean_covariance import MeanCholeskySVGP
from svgpbench.ops import Ops
from svgpbench.training.blocks import factor_at, prior_at
from svgpbench.tree import tree_map

PROBLEM = small_problem()


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("start", ["prior", "unit"])
def test_the_start_is_the_prior_or_unit_covariance(ops: Ops, start: str, whiten: bool) -> None:
    """Whitened, a unit covariance is the prior's; unwhitened, S = I (Kobe 2021, Sec. 4.2.1)."""
    model = build_model("gaussian", "se")
    theta = PROBLEM.theta(model)
    K, M = kernel_matrix("se", theta, PROBLEM.Z, PROBLEM.Z) + 1e-6 * np.eye(8), 8
    wanted = np.eye(M) if start == "unit" and not whiten else K
    method = MeanCholeskySVGP(whiten=whiten, start=start)
    at = tree_map(ops.asarray, theta)
    p = prior_at(ops, model, method, at)
    f = factor_at(ops, model, method, at, p, ops.asarray(PROBLEM.X))
    state = method.initial_state(ops, p, 2, len(PROBLEM.X))
    q = method.factorise(ops, f, state)
    mean, S = (ops.to_numpy(x) for x in method.posterior(ops, p, q))
    assert np.all(mean == 0.0)
    np.testing.assert_allclose(S, np.stack([wanted] * 2), rtol=1e-10, atol=1e-10)
    half = np.linalg.solve(K, wanted)
    kl = 0.5 * (np.trace(half) - M - np.linalg.slogdet(half)[1])
    assert float(ops.to_numpy(method.kl(ops, f, q))) == pytest.approx(2.0 * kl, rel=1e-8, abs=1e-9)
    assert method.starts_at_prior == (whiten or start == "prior")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "units"}, "did you mean 'unit'"),
        ({"optimiser": "adm"}, "did you mean 'adam'"),
        ({"gradient": "autodif"}, "did you mean 'autodiff'"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        build_method("q-svgp", options)
    assert "\n" not in str(caught.value)
