"""Bounds on log p(y) at a posterior's hyperparameters, which say how much more inducing points could add."""

from __future__ import annotations

from functools import reduce
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.backends import load_backend
from svgpbench.errors import UserError
from svgpbench.likelihoods import GaussianLikelihood
from svgpbench.methods.collapsed import SGPR
from svgpbench.methods.dual import factorised
from svgpbench.numerics.gaussian import LOG_2PI, log_determinant
from svgpbench.posterior.inputs import refuse_far_rows
from svgpbench.posterior.posterior import Floats, Posterior
from svgpbench.training.blocks import factor_at, prior_at
from svgpbench.tree import tree_map

MOST_ROWS: Final = 20_000
"""Most rows for which the upper bound evaluates the kernel between all pairs of rows."""


class EvidenceBounds(NamedTuple):
    """log p(y) of the exact GP lies between `lower` and `upper`; all are of standardised y, in nats."""

    lower: float  # Titsias (2009), Eq. 9: the bound at the best q(u)
    upper: float  # the lower one of both upper bounds, see `evidence_bounds`
    titsias_2014: float
    n: int  # rows

    @property
    def gap_per_row(self) -> float:
        """The most that any number of inducing points could add to the bound, per row."""
        return (self.upper - self.lower) / self.n


def evidence_bounds(
    posterior: Posterior, X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike
) -> EvidenceBounds:
    """Bound log p(y) of training rows X [n, D] and y [n] from both sides, at the posterior's θ and Z.

    A small gap certifies that the inducing points are enough at these hyperparameters: the exact GP could not
    be better by more. A large gap does not show that they are too few, as the upper bound may be loose.

    With A = K + σ²I and Q ≤ K, log|A| is at least log|Q + σ²I|, and yᵀA⁻¹y is at least 2vᵀy − vᵀAv for any v.
    Here v = (Q + σ²I)⁻¹y, at O(n²) for the product with K. Titsias (2014) has yᵀ(Q + (σ² + tr(K − Q))I)⁻¹y
    instead, at O(nM²). With more than 20,000 rows that is the only upper bound.

    Args:
        posterior: a posterior with Gaussian noise and one set of inducing inputs.
        X: the rows that trained it; the columns of a frame are found by name.
        y: their targets, in the units of the training.

    Raises:
        UserError: for another likelihood, for a method with two bases or the data as its basis, and for rows
            that do not fit the posterior.

    Examples:
        >>> import numpy as np
        >>> from svgpbench.api import evidence_bounds, fit
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> y = np.sin(6.0 * X[:, 0])
        >>> bounds = evidence_bounds(fit(X, y, inducing=10), X, y)
        >>> bounds.lower <= bounds.upper
        True
    """
    model, theta = posterior.model, posterior.theta
    if not isinstance(model.likelihood, GaussianLikelihood):
        raise UserError(
            "the bounds on log p(y) need Gaussian noise; "
            f"the likelihood is {posterior.facts.likelihood.name!r}"
        )
    if posterior.method.basis != "inducing":
        raise UserError(
            f"method {posterior.method.name!r} does not have one set of inducing inputs, "
            "which the bounds on log p(y) need"
        )
    # whatever method trained: with Gaussian noise SGPR's q(u) is the best at this θ and Z
    ops, sgpr = load_backend("numpy"), SGPR()
    prior = prior_at(ops, model, sgpr, theta)
    conditional = model.conditional(theta)
    chunks = posterior.standardised_inputs(X)
    targets = posterior.standardised_targets(y, sum(map(len, chunks)))
    parts = np.split(targets, np.cumsum([len(rows) for rows in chunks])[:-1])
    # far rows overflow in a squared distance; they are named below instead
    with np.errstate(over="ignore", invalid="ignore"):
        factors = [factor_at(ops, model, sgpr, theta, prior, rows) for rows in chunks]
    refuse_far_rows(np.concatenate([np.isfinite(f.W).all(axis=(0, 1)) for f in factors]))
    sums = reduce(
        lambda total, part: tree_map(np.add, total, part),
        (sgpr.sums(ops, f, conditional, part) for f, part in zip(factors, parts, strict=True)),
    )
    titsias = float(sgpr.upper_bound(ops, conditional, sums))
    upper = titsias
    if len(targets) <= MOST_ROWS:
        precision = float(conditional.site_precision(ops))
        # y = (Q + σ²I)v gives σ²v = y − Qv, and Qv is SGPR's mean at the rows: no n × n solve
        q = factorised(ops, sgpr.best_state(ops, conditional, sums))
        means = [sgpr.marginals(ops, f, q)[0][0] for f in factors]
        targets = conditional.residual(targets)  # as the sums have them
        v = precision * (targets - np.concatenate(means))  # (Q + σ²I)⁻¹y
        Av = v / precision + _kernel_product(posterior, chunks, v)
        # log|Q + σ²I| = log|B| + n log σ²; K(Z, Z)'s jitter lowers Q, so Q ≤ K holds with it too
        log_det_B = float(log_determinant(ops, q.L_B)[0])
        constant = len(targets) * (LOG_2PI - np.log(precision))
        # at most yᵀA⁻¹y for any v, since (y − Av)ᵀA⁻¹(y − Av) ≥ 0
        quadratic = 2.0 * v @ targets - v @ Av
        upper = min(titsias, float(-0.5 * (constant + log_det_B + quadratic)))
    lower = float(sgpr.collapsed_bound(ops, conditional, sums))
    return EvidenceBounds(lower, upper, titsias, len(targets))


def _kernel_product(posterior: Posterior, chunks: list[Floats], v: Floats) -> Floats:
    """Return Kv [n] from inputs in chunks of rows, with one pair of chunks in memory at a time."""
    ops, theta, kernel = load_backend("numpy"), posterior.theta, posterior.model.kernel
    v_parts = np.split(v, np.cumsum([len(rows) for rows in chunks])[:-1])
    return np.concatenate(
        [
            sum(
                kernel.cross(ops, theta.kernel, rows, others)[0] @ part
                for others, part in zip(chunks, v_parts, strict=True)
            )
            for rows in chunks
        ]
    )
