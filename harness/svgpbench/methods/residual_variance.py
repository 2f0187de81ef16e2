"""How wide q(f|u) is: the prior's conditional, or one that is narrower and makes the bound tighter.

The usual bounds take q(f|u) = p(f|u), whose covariance is K_ff − Q_ff. Let it be
(K_ff − Q_ff)^½ diag(v) (K_ff − Q_ff)^½ instead, with the same mean, and let d_i = κ_i − w_iᵀw_i be the
residual variance that u leaves of f_i. Then

    s Σ_i [E_{N(μ_i, v_id_i + w_iᵀSw_i)} log p(y_i|f_i) − ½(v_i − 1 − log v_i)] − KL[q(u) ‖ p(u)]

bounds log p(y) for one v, and with Gaussian noise for a v_i each (Titsias 2025, arXiv:2502.08730, Sec. 3;
Bui, Ashman and Turner 2025, arXiv:2502.04750, Sec. 3). Predictions are by p(f_*|u) and stay what they
are; where u leaves nothing, d = 0, so does the bound.

* `scalar`: one v a latent function, at most 1. It is stationary where 1/v = 1 + (1/n) Σ_i β_id_i, with
  β at the marginals that v makes, so 1/v moves beside the dual parameters, like them and at their rate
  (this step is ours). M-steps hold it, as they hold q.
* `diagonal`: Gaussian noise only. v_i = 1/(1 + d_i/σ²) is the best at every θ and every q(u), so it is
  no parameter; the bound is the usual one + s Σ_i ½[d_i/σ² − log(1 + d_i/σ²)], and no E-step sees it.

Both are at their best v where θ moves, or hold v: in either case v itself has no slope. So all that an
M-step's gradient has of them is (1 − v_i)d_i less variance (see `adjoint.py`). With ORTH and HYBRID, d is
what β leaves (Bui, Ashman and Turner 2025, Sec. 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, cast

from svgpbench.errors import unknown
from svgpbench.likelihoods import Conditional, GaussianLikelihood, Likelihood
from svgpbench.methods.data_term import DataTerm, Narrowing
from svgpbench.methods.method import CoupledMethod, Factorised, State
from svgpbench.numerics.gaussian import Factor
from svgpbench.ops import Array, Ops


@dataclass(frozen=True)
class ResidualVariance:
    """A way of choosing v: what a method that takes the option asks of it."""

    narrowing: Callable[[Any], Narrowing | None]  # from what the state keeps: v; None where v = 1
    moves: bool = False  # whether 1/v is a part of the state, moved by the E-step and seen by it
    refuses: Callable[[Likelihood], str] = lambda likelihood: ""
    of_rows: Callable[[Ops, Array], Array] | None = (
        None  # what a collapsed bound gains, from d_i/σ²
    )
    of_mean: Callable[[Ops, Array], Array] | None = None  # the same over n, from their mean


def residual_variance(ops: Ops, f: Factor) -> Array:
    """The variance of p(f_i|u), κ − diag(WᵀW) [Q, b]."""
    return f.kff - ops.sum(f.W * f.W, axis=-2)


def _one(precision: Array) -> Narrowing:
    return lambda ops, likelihood, d: 1.0 / precision[..., None]


def _best(ops: Ops, likelihood: Conditional, d: Array) -> Array:
    return 1.0 / (1.0 + likelihood.site_precision(ops) * d)


def _gaussian_only(likelihood: Likelihood) -> str:
    if isinstance(likelihood, GaussianLikelihood):
        return ""
    return (
        'residual_variance = "diagonal" has Gaussian noise only, where the best v_i of every datum is '
        'known; "scalar" takes any likelihood'
    )


def _gain(ops: Ops, x: Array) -> Array:
    """½[x − log(1 + x)] of x = d/σ²."""
    return 0.5 * (x - ops.log(1.0 + x))


RESIDUAL_VARIANCES: dict[str, ResidualVariance] = {
    "prior": ResidualVariance(lambda kept: None),
    "scalar": ResidualVariance(_one, moves=True, of_mean=_gain),
    "diagonal": ResidualVariance(
        lambda kept: _best,
        refuses=_gaussian_only,
        of_rows=lambda ops, x: ops.sum(_gain(ops, x)),
    ),
}
"""By the name that the option has."""


def moved(ops: Ops, f: Factor, data: DataTerm, beta: Array, precision: Array, rate: Array) -> Array:
    """1/v [P] ← (1 − r)/v + r(1 + (1/b) Σ_batch β_id_i), where (s/n)Σ_batch is a batch's mean.

    Where β may be negative, the target may be below 1: then it is 1, the prior's width.
    """
    slope = ops.sum(beta * residual_variance(ops, f), axis=-1) / float(data.y.shape[-1])
    return (1.0 - rate) * precision + rate * (1.0 + ops.maximum(slope, 0.0))


@dataclass(frozen=True)
class Narrowed(Conditional):
    """A likelihood whose V is at marginals narrower by (1 − v)d, less what v costs.

    Adjoints ask for none: they have W themselves, and narrow the marginals (see `adjoint.py`).
    """

    seen: Conditional  # which may be one of a part of the mean
    by: Array  # [P, b], (1 − v)d
    cost: Array  # [b], Σ_latents ½(v − 1 − log v)

    def variational_expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        return self.seen.variational_expectations(ops, y, mu, v - self.by) - self.cost

    def gradients(self, ops: Ops, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        return self.seen.gradients(ops, y, mu, v - self.by)


def narrowed(ops: Ops, f: Factor, data: DataTerm) -> DataTerm:
    """The data at marginals that have q(f|u)'s width."""
    if data.narrowing is None:
        return data
    of, d = data.likelihood, residual_variance(ops, f)
    v = data.narrowing(ops, of, d)
    by = (1.0 - v) * d
    cost = ops.broadcast_to(0.5 * (v - 1.0 - ops.log(v)), by.shape)
    seen = Narrowed(of.likelihood, of.parameters, of, by, ops.sum(cost, axis=0))
    return data._replace(likelihood=seen, narrowing=None)


@dataclass(frozen=True)
class BoundedMethod(CoupledMethod[State, Factorised], Generic[State, Factorised]):
    """A coupled method whose bound takes any of `RESIDUAL_VARIANCES`; its state has a field `residual`.

    Its E-step takes α and β of `seen_by_e_step`, and `with_residual` has the state's 1/v moved.
    """

    residual_variance: str = "prior"

    def __post_init__(self) -> None:
        if self.residual_variance not in RESIDUAL_VARIANCES:
            raise unknown(
                f"residual_variance of {self.name}", self.residual_variance, RESIDUAL_VARIANCES
            )

    @property
    def residual(self) -> ResidualVariance:
        """How wide q(f|u) is."""
        return RESIDUAL_VARIANCES[self.residual_variance]

    def refuses(self, likelihood: Likelihood) -> str:
        return self.residual.refuses(likelihood)

    def first_residual(self, ops: Ops, latents: int) -> Array | tuple[()]:
        """The prior's width, 1/v = 1 [P], where the state keeps it."""
        return ops.zeros((latents,)) + 1.0 if self.residual.moves else ()

    def bounded(self, data: DataTerm, state: Any) -> DataTerm:
        return data._replace(narrowing=self.residual.narrowing(state.residual))

    def seen(self, ops: Ops, f: Factor, data: DataTerm, state: Any) -> DataTerm:
        return narrowed(ops, f, self.bounded(data, state))

    def seen_by_e_step(self, ops: Ops, f: Factor, data: DataTerm, state: Any) -> DataTerm:
        """As the bound sees the data where v is a parameter; else no derivative in q has it."""
        return self.seen(ops, f, data, state) if self.residual.moves else data

    def with_residual(
        self, ops: Ops, f: Factor, data: DataTerm, beta: Any, state: State, rate: Array
    ) -> State:
        """The state with 1/v moved, from β [P, b] of `seen_by_e_step`."""
        at: Any = state
        if self.residual.moves:
            at = at._replace(residual=moved(ops, f, data, beta, at.residual, rate))
        return cast(State, at)
