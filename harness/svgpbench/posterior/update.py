"""New rows in a dual posterior, at fixed hyperparameters and inducing inputs.

The dual parameters λ̄₁ = Σ (β_iμ_i + α_i) k_i and Λ̄₂ = Σ β_i k_i k_iᵀ are sums over rows. With Gaussian noise
the terms of a row do not depend on q, so those of the new rows are added and nothing else changes.

With another likelihood the sites of the old rows are held. Their product with the prior is the old q(u),
which is then the prior of the new rows, as in a streaming GP. So the new sites come from t-SVGP's own
E-steps, with u = m + LL_B⁻ᵀu', u' ~ N(0, I) under the old q: W' = L_B⁻¹W, and the old marginals as prior mean
and variance. The bound of these E-steps, ΣV − KL[q ‖ old q], never falls.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.backends import load_backend
from svgpbench.errors import UserError
from svgpbench.experiments.likelihood_of_data import misfit
from svgpbench.methods.data_term import DataTerm, shifted
from svgpbench.methods.dual import DualPosterior, DualSVGP
from svgpbench.methods.tying import Sites
from svgpbench.numerics.gaussian import Factor, Prior, matvec, symmetric_product
from svgpbench.posterior.inputs import refuse_far_rows
from svgpbench.posterior.pseudo_data import dual_methods
from svgpbench.stats.measures import MEASURES
from svgpbench.training.blocks import factor_at
from svgpbench.training.guard import checks_e_steps, guarded_e_step, slack_of

if TYPE_CHECKING:
    from svgpbench.posterior.posterior import Posterior

E_STEPS: Final = 30
"""E-steps on the new rows if the likelihood is not Gaussian."""

LAST: Final = 10
"""E-steps at the end of these in which their bound may rise by the region of practical equivalence alone."""


def updated(posterior: Posterior, X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike) -> Posterior:
    """Return the posterior with rows X [t, D] and targets y [t] added; raises `UserError`."""
    method, model, facts = posterior.method, posterior.model, posterior.facts
    if not isinstance(method, DualPosterior):
        raise UserError(
            f"method {method.name!r} has no dual parameters to which new rows add; {dual_methods()} have"
        )
    if method.residual.moves and checks_e_steps(DualSVGP(), model.likelihood):
        raise UserError(
            'residual_variance = "scalar" is one number for all rows, which new rows would change for the '
            "old ones; fit again, or take Gaussian noise"
        )
    rows = np.concatenate(posterior.standardised_inputs(X))
    targets = posterior.standardised_targets(y, len(rows))
    if wrong := misfit(model.likelihood, targets, "y[{}]".format):
        raise UserError(f"likelihood {model.likelihood.name!r} {wrong}")
    ops, theta, old = load_backend("numpy"), posterior.theta, posterior.state
    # far rows overflow in a squared distance; they are named below instead
    with np.errstate(over="ignore", invalid="ignore"):
        f = factor_at(ops, model, method, theta, posterior.factors[0], rows)
    refuse_far_rows(np.isfinite(f.W).all(axis=(0, 1)))
    data = DataTerm(
        model.conditional(theta, posterior.noise()),
        targets,
        np.arange(len(rows)),
        np.asarray(1.0),
    )
    sites, residual = _new_sites(method, f, data, posterior.factors[1])
    target = symmetric_product(ops, f.W * sites.beta[..., None, :], f.W)
    state = old._replace(c=old.c + matvec(f.W, sites.lambda1), C=old.C + target)
    if isinstance(old.sites, Sites):  # of all rows, from which an M-step rebuilds c and C
        both = zip(old.sites, sites, strict=True)
        state = state._replace(sites=Sites(*(np.concatenate(x, axis=-1) for x in both)))
    n = facts.n + len(rows)
    if not isinstance(old.residual, tuple):  # 1/v = 1 + the mean of β_id_i over all rows
        mean = (facts.n * old.residual + len(rows) * residual) / n
        state = state._replace(residual=mean)
    grown = facts.model_copy(update={"n": n, "trace": {}, "ended": ""})
    return dataclasses.replace(posterior, facts=grown, state=state)


def _new_sites(
    method: DualPosterior, f: Factor, data: DataTerm, q: Any
) -> tuple[Sites, npt.NDArray[np.float64] | tuple[()]]:
    """Return the sites of new rows, and the 1/v of these rows alone if the state of the method has one."""
    ops, likelihood = load_backend("numpy"), data.likelihood.likelihood
    engine = DualSVGP(tying="untied", residual_variance=method.residual_variance)
    mu, v = method.marginals(ops, f, q)
    W = ops.solve_triangular(q.L_B, f.W)
    identity = ops.broadcast_to(ops.eye(W.shape[-2]), q.L_B.shape)
    relative, shifted_data = Factor(identity, W, v), shifted(data, mu)
    start = engine.initial_state(ops, Prior(identity, identity), *mu.shape)
    rate, state = np.asarray(1.0), start
    if checks_e_steps(engine, likelihood):
        step = functools.partial(guarded_e_step, ops, engine, slack_of(ops, likelihood))
        bounds = []
        for steps in (E_STEPS - LAST, LAST):
            for _ in range(steps):
                state, _count = step(relative, shifted_data, rate, state, ops.zeros(()))
            bounds.append(float(engine.bound(ops, relative, shifted_data, state)))
        rise, region = bounds[1] - bounds[0], MEASURES["elbo"].per_datum * len(data.y)
        if not rise <= region:  # also if it is NaN
            raise UserError(
                f"{E_STEPS} E-steps on the new rows did not settle: the last {LAST} raised their bound by "
                f"{rise:.2g} nats, more than {region:.2g}; fit all rows again, or give fewer at once"
            )
    else:
        state = engine.e_step(ops, relative, shifted_data, start, rate)
    # its λ₁ are those of f less the old mean
    lambda1, beta = state.sites
    return Sites(lambda1 + beta * mu, beta), state.residual
