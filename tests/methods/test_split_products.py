"""Steps of a large basis, whose symmetric products are split, are those of the products in full."""

from __future__ import annotations

import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.bench import bench, worst_of
from svgpbench.numerics import gaussian


@pytest.mark.parametrize("likelihood", ["gaussian", "softmax"])
@pytest.mark.parametrize("method", ["t-svgp tied-projected", "q-svgp natgrad"])
def test_a_run_and_the_m_step_s_gradient(
    monkeypatch: pytest.MonkeyPatch, method: str, likelihood: str
) -> None:
    b = bench(load_backend("numpy"), method, likelihood)
    in_full = b.minibatch_run(5)
    value, gradient = b.objective(in_full, b.raw)
    monkeypatch.setattr(gaussian, "WORTH_SPLITTING", 2)
    split = b.minibatch_run(5)
    assert worst_of(b.posterior(split), b.posterior(in_full)) < 1e-12
    again, moved = b.objective(in_full, b.raw)
    assert again == pytest.approx(value, rel=1e-14)
    assert worst_of(moved, gradient) < 1e-11
