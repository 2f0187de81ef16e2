"""The width of q(f|u): that of p(f|u), or a narrower one that makes the bound tighter.

The usual bounds take q(f|u) = p(f|u), whose covariance is K_ff − Q_ff. Here it is
(K_ff − Q_ff)^½ diag(v) (K_ff − Q_ff)^½ instead, with the same mean. Let d_i = κ_i − w_iᵀw_i be the
variance of f_i given u, its residual variance. Then

    s Σ_i [E_{N(μ_i, v_id_i + w_iᵀSw_i)} log p(y_i|f_i) − ½(v_i − 1 − log v_i)] − KL[q(u) ‖ p(u)]

bounds log p(y) for one common v and, with Gaussian noise, for one v_i per datum (Titsias 2025,
arXiv:2502.08730, Sec. 3; Bui, Ashman and Turner 2025, arXiv:2502.04750, Sec. 3). Predictions use p(f_*|u)
and do not change. If u leaves no variance, d = 0, the bound does not change either.

* `scalar`: one v per latent function, at most 1. It is stationary where 1/v = 1 + (1/n) Σ_i β_id_i, with
  β at the marginals that v gives. So the E-step moves 1/v in the same way as the dual parameters and at
  the same rate (this step is ours). M-steps hold v, as they hold q.
* `diagonal`: Gaussian noise only. v_i = 1/(1 + d_i/σ²) is optimal at every θ and every q(u), so it is not
  a parameter. The bound is the usual one + s Σ_i ½[d_i/σ² − log(1 + d_i/σ²)], and E-steps do not change.

When θ moves, v is either held or optimal, so its derivative contributes nothing. An M-step's gradient only
needs the variance reduced by (1 − v_i)d_i (see `adjoint.py`). With ORTH and HYBRID, d is the variance that
β leaves (Bui, Ashman and Turner 2025, Sec. 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, cast

from jaxtyping import Float

from svgpbench.errors import unknown
from svgpbench.likelihoods import Conditional, GaussianLikelihood, Likelihood
from svgpbench.methods.data_term import DataTerm, ResidualScale
from svgpbench.methods.method import CoupledMethod, Factorised, State
from svgpbench.numerics.gaussian import Factor
from svgpbench.ops import Array, Ops


@dataclass(frozen=True)
class ResidualVariance:
    """A way of choosing v, with the functions that a method needs."""

    residual_scale: Callable[[Any], ResidualScale | None]
    """Function from the state's `residual` to v; it returns None if v = 1."""
    moves: bool = False  # True if 1/v is in the state, and the E-step uses and moves it
    refuses: Callable[[Likelihood], str] = lambda likelihood: ""
    row_gain: Callable[[Ops, Array], Array] | None = None
    """Function from d_i/σ² to the increase of a collapsed bound."""
    mean_gain: Callable[[Ops, Array], Array] | None = None
    """Function from the mean of d_i/σ² to this increase divided by n."""


def residual_variance(ops: Ops, f: Factor) -> Float[Array, "Q b"]:
    """Return the variance of p(f_i|u), κ − diag(WᵀW)."""
    return f.kff - ops.sum(f.W * f.W, axis=-2)


NOT_GAUSSIAN = (
    'residual_variance = "diagonal" has Gaussian noise only, where the best v_i of every datum is known; '
    '"scalar" takes any likelihood'
)


def _gain(ops: Ops, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Compute ½[x − log(1 + x)] for x = d/σ²."""
    return 0.5 * (x - ops.log(1.0 + x))


RESIDUAL_VARIANCES: dict[str, ResidualVariance] = {
    "prior": ResidualVariance(lambda residual: None),
    "scalar": ResidualVariance(
        lambda precision: lambda ops, likelihood, d: 1.0 / precision[..., None],
        moves=True,
        mean_gain=_gain,
    ),
    "diagonal": ResidualVariance(
        lambda residual: lambda ops, p, d: 1.0 / (1.0 + p.site_precision(ops) * d),
        refuses=lambda x: "" if isinstance(x, GaussianLikelihood) else NOT_GAUSSIAN,
        row_gain=lambda ops, x: ops.sum(_gain(ops, x)),
    ),
}
"""The ways of choosing v, by the value of the option `residual_variance`."""


def next_residual(
    ops: Ops,
    f: Factor,
    data: DataTerm,
    beta: Float[Array, "P b"],
    precision: Float[Array, "P"],
    rate: Float[Array, ""],
) -> Float[Array, "P"]:
    """Return the new 1/v, (1 − r)/v + r(1 + (1/b) Σ_batch β_id_i); (1/b)Σ_batch is (s/n)Σ_batch.

    If β is negative, the target may be below 1. It is then set to 1, the width of p(f|u).
    """
    slope = ops.sum(beta * residual_variance(ops, f), axis=-1) / float(data.y.shape[-1])
    return (1.0 - rate) * precision + rate * (1.0 + ops.maximum(slope, 0.0))


@dataclass(frozen=True)
class ReducedVariance(Conditional):
    """A likelihood evaluated at marginals with variance reduced by (1 − v)d, less the cost of v.

    Adjoints do not use it: they have W, and reduce the variances themselves (see `adjoint.py`). The number m
    of columns is b, or b + 1 if `inner` is `Tilted`.
    """

    inner: Conditional  # the likelihood that is evaluated, maybe `Tilted`
    removed_variance: Float[Array, "P m"]  # (1 − v)d
    cost: Float[Array, "m"]  # Σ_latents ½(v − 1 − log v)

    def variational_expectations(
        self, ops: Ops, y: Float[Array, "b"], mu: Float[Array, "P m"], v: Float[Array, "P m"]
    ) -> Float[Array, "m"]:
        return (
            self.inner.variational_expectations(ops, y, mu, v - self.removed_variance) - self.cost
        )

    def gradients(
        self, ops: Ops, y: Float[Array, "b"], mu: Float[Array, "P m"], v: Float[Array, "P m"]
    ) -> tuple[Float[Array, "P m"], Float[Array, "P m"]]:
        return self.inner.gradients(ops, y, mu, v - self.removed_variance)


def reduce_variance(ops: Ops, f: Factor, data: DataTerm) -> DataTerm:
    """Return the data term at marginals with the width of q(f|u)."""
    if data.residual_scale is None:
        return data
    likelihood, d = data.likelihood, residual_variance(ops, f)
    v = data.residual_scale(ops, likelihood, d)
    removed_variance = (1.0 - v) * d
    # one v costs once for each datum: ½n(v − 1 − log v) in all
    cost = ops.broadcast_to(0.5 * (v - 1.0 - ops.log(v)), removed_variance.shape)
    reduced = ReducedVariance(
        likelihood.likelihood,
        likelihood.parameters,
        likelihood,
        removed_variance,
        ops.sum(cost, axis=0),
    )
    return data._replace(likelihood=reduced, residual_scale=None)


@dataclass(frozen=True)
class BoundedMethod(CoupledMethod[State, Factorised], Generic[State, Factorised]):
    """A coupled method whose bound takes any of `RESIDUAL_VARIANCES`; its state has a field `residual`.

    Its E-step takes α and β from `data_for_e_step`, and moves the state's 1/v by `with_residual`.
    """

    residual_variance: str = "prior"

    def __post_init__(self) -> None:
        if self.residual_variance not in RESIDUAL_VARIANCES:
            raise unknown(
                f"residual_variance of {self.name}", self.residual_variance, RESIDUAL_VARIANCES
            )

    @property
    def residual(self) -> ResidualVariance:
        """The chosen entry of `RESIDUAL_VARIANCES`."""
        return RESIDUAL_VARIANCES[self.residual_variance]

    def refuses(self, likelihood: Likelihood) -> str:
        return self.residual.refuses(likelihood)

    def first_residual(self, ops: Ops, latents: int) -> Float[Array, "P"] | tuple[()]:
        """Return the initial 1/v = 1, the width of p(f|u), or () if the state does not keep it."""
        return ops.zeros((latents,)) + 1.0 if self.residual.moves else ()

    def with_residual_scale(self, data: DataTerm, state: Any) -> DataTerm:
        return data._replace(residual_scale=self.residual.residual_scale(state.residual))

    def data_for_bound(self, ops: Ops, f: Factor, data: DataTerm, state: Any) -> DataTerm:
        return reduce_variance(ops, f, self.with_residual_scale(data, state))

    def data_for_e_step(self, ops: Ops, f: Factor, data: DataTerm, state: Any) -> DataTerm:
        """Return the data term for the E-step: the bound's if v is in the state, else `data` itself."""
        return self.data_for_bound(ops, f, data, state) if self.residual.moves else data

    def with_residual(
        self,
        ops: Ops,
        f: Factor,
        data: DataTerm,
        beta: Float[Array, "P b"] | tuple[()],
        state: State,
        rate: Float[Array, ""],
    ) -> State:
        """Return the state with 1/v moved, from β of `data_for_e_step`."""
        if not self.residual.moves:
            return state
        s = cast(Any, state)
        residual = next_residual(ops, f, data, beta, s.residual, rate)
        return cast(State, s._replace(residual=residual))
