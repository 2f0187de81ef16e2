"""Pseudo-observations of a dual posterior: the data set of M rows at Z that stands for all training rows.

With S⁻¹ = K⁻¹ + T₂ and S⁻¹m = T₁, q(u) = N(m, S) is the posterior of an exact GP regression with the prior
N(0, K) at Z, targets ỹ and noise of precision T₂, where T₂ỹ = T₁ (Adam et al. 2021, Sec. 4; T₁ = K⁻¹λ̄₁
and T₂ = K⁻¹Λ̄₂K⁻¹). In the whitened c = LᵀT₁, C = LᵀT₂L and ỹ = Lt, this is Ct = c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from svgpbench.backends import load_backend
from svgpbench.errors import UserError
from svgpbench.methods.dual import DualPosterior
from svgpbench.methods.tying import DualState
from svgpbench.numerics.gaussian import matvec, unwhitened_precision
from svgpbench.plugins import METHODS, load_all

if TYPE_CHECKING:
    from svgpbench.posterior.posterior import Floats, Posterior

MOST_ERROR = 1e-3
"""Largest distance between the mean that the pseudo-data give and that of q(u), in units of its S."""


class PseudoData(NamedTuple):
    """Gaussian pseudo-observations of the latent functions at inputs Z, in the units of `Inducing`.

    `precision` is the inverse of their noise covariance. It is kept in place of the covariance because it
    always exists: fewer rows than inducing inputs, or an inducing input far from all rows, leave directions
    that nothing has observed, in which it is 0. With a likelihood that is not log-concave it may have
    negative eigenvalues, and so be no precision of any noise; the equations of `pseudo_data` still hold.
    """

    Z: Floats  # [M, D], standardised
    targets: Floats  # [P, M]
    precision: Floats  # [P, M, M]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in self._asdict().items())
        return f"<PseudoData {shapes}>"


def dual_methods() -> str:
    """Return the names of the methods whose q(u) is given by whitened dual parameters."""
    return ", ".join(x for x, of in load_all(METHODS).items() if issubclass(of, DualPosterior))


def pseudo_data(posterior: Posterior) -> PseudoData:
    """Return the pseudo-observations of a posterior; raises `UserError` if it has none."""
    state, facts = posterior.state, posterior.facts
    if not isinstance(state, DualState) or facts.functions == "features":
        raise UserError(
            f"method {posterior.method.name!r} on {facts.functions} has no dual parameters of function "
            f"values at inducing inputs, and so no pseudo-data; {dual_methods()} on points have"
        )
    ops, (prior, q) = load_backend("numpy"), posterior.factors
    d, U = np.linalg.eigh(state.C)
    # below this, an eigenvalue is the rounding of one that is 0: its direction has a target of 0
    floor = 4.0 * np.finfo(np.float64).eps * np.abs(d).max(axis=-1, keepdims=True)
    seen = np.abs(d) > floor
    along = np.where(seen, matvec(np.swapaxes(U, -1, -2), state.c), 0.0) / np.where(seen, d, 1.0)
    t = matvec(U, along)
    # S⁻¹(m' − m) = Ct − c, whitened; its length in S is that of its product with L_B⁻¹
    missed = ops.solve_triangular(q.L_B, (matvec(state.C, t) - state.c)[..., None])
    if not (distance := np.sqrt(np.sum(missed * missed, axis=(-2, -1))).max()) <= MOST_ERROR:
        raise UserError(
            "no Gaussian pseudo-data give this q(u): where its precision is that of the prior, its mean is "
            f"not (by {distance:.1g} standard deviations), such as where every β of the likelihood is 0"
        )
    L = np.broadcast_to(prior.L, state.C.shape)
    return PseudoData(
        np.asarray(posterior.theta.inducing),
        np.asarray(posterior.model.conditional(posterior.theta).of_f(matvec(L, t))),
        np.asarray(unwhitened_precision(ops, L, state.C)),
    )
