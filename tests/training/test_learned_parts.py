"""After M-steps q is where the method ties it to the new θ, whichever part of θ is learned."""

from __future__ import annotations

import numpy as np
import pytest
from small_training import PROBLEM, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.cases import VARIANTS, build_model, likelihoods_of
from svgpbench.config import LEARN
from svgpbench.methods import build_method
from svgpbench.training.m_step import m_objective
from svgpbench.tree import leaves

NUMPY = load_backend("numpy")


def on_all_rows(title: str) -> bool:
    """Whether a variant keeps a q between phases, with no draws that its bound sees."""
    name, options = VARIANTS[title]
    method = build_method(name, options)
    return not (method.collapsed or method.sampled_points)


CASES = [
    (title, likelihood)
    for title in filter(on_all_rows, VARIANTS)
    for likelihood in likelihoods_of(title)
    if likelihood in ("gaussian", "student-t")  # which have parameters
]


@pytest.mark.parametrize("optimiser", ["adam", "l-bfgs"])
@pytest.mark.parametrize("learn", [("likelihood",), ("kernel",), LEARN], ids="+".join)
@pytest.mark.parametrize(("title", "likelihood"), CASES)
def test_the_bound_after_m_steps_is_the_objective_that_they_went_up(
    title: str, likelihood: str, learn: tuple[str, ...], optimiser: str
) -> None:
    """The objective ties q to every θ that it sees; the bound takes the q that the run holds."""
    name, options = VARIANTS[title]
    model, method = build_model(likelihood, "matern52"), build_method(name, options)
    theta = PROBLEM.theta(model, method.basis)
    run = trainer(NUMPY, title, model=model, learn=learn, optimiser=optimiser, e_rate=0.2)
    before, _ = run.e_phase(run.state._replace(iteration=1))
    invariant = method.invariant(NUMPY, before.prior, model.conditional(theta), before.q)
    after = run.m_phase(before)
    batch = run.batches.full(after.raw.inducing)
    wanted = m_objective(NUMPY, model, method, after.raw, invariant, batch, run.one)
    assert run.elbo(after) == pytest.approx(float(wanted), rel=1e-9)
    for part in LEARN:
        moved = [
            not np.array_equal(one, other)
            for one, other in zip(
                leaves(getattr(before.raw, part)), leaves(getattr(after.raw, part)), strict=True
            )
        ]
        assert all(moved) == any(moved) == (part in run.learn), part
