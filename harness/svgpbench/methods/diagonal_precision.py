"""Diagonal precision: q(u) with 2M parameters per latent (Kobe 2021, Ch. 3; Panos et al. 2018).

m = Kμ and S = (K⁻¹ + G)⁻¹ with G = diag g. Entries of g may have any sign while B = I + LᵀGL is
positive definite (Kobe 2021, Eq. 3.5). This is t-SVGP's form with C = LᵀGL and B⁻¹c = Lᵀμ. So t-SVGP's
formulas for marginals, KL and q(u) are used here; the E-steps are specific to this family.

`exact` is the natural gradient of the family. `projected-a` and `projected-b` are two readings of
Kobe 2021, Eqs. 3.18–3.20: take the natural gradient of all Gaussians and keep its diagonal. With
θ = Cg + c that keeps rows of F⁻¹∇, whereas the family's own direction is (CᵀFC)⁻¹Cᵀ∇. The two differ
wherever a kept row of F⁻¹ has entries in dropped columns. So `projected` stops where
diag(Σ βᵢ aᵢaᵢᵀ) = g. There ∂ELBO/∂g is not zero, and the best q of the family is missed.

All three move the mean by γS'∂ELBO/∂m with the new S'; `projected-a` adds a further term. This diverges
if γS'(K⁻¹ + Σ βᵢ aᵢaᵢᵀ) has an eigenvalue above 2, which S' of this family does not rule out at γ = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods import Conditional
from svgpbench.methods.adjoint import (
    Cross,
    GramGradient,
    grad_fixed_projected,
    grad_fixed_weights,
)
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.dual import DualSVGP, FactorisedDual
from svgpbench.methods.method import CoupledMethod, MethodInfo
from svgpbench.methods.step_control import halve_until_positive
from svgpbench.numerics.adam import AdamState, adam_ascent, adam_start
from svgpbench.numerics.gaussian import Factor, Prior, Whitener, matvec
from svgpbench.ops import Array, Ops

OPTIMISERS = ("exact", "projected-b", "projected-a", "adam")
STARTS = ("prior", "unit")
TYINGS = ("weights", "tied-projected")
SOFTPLUS_INVERSE_OF_1 = math.log(math.expm1(1.0))
DUAL = DualSVGP()


class Slope(NamedTuple):
    """A pair (μ, g) or (μ, softplus⁻¹ g), or a gradient in one of them."""

    mu: Float[Array, "P M"]
    g: Float[Array, "P M"]


class Ascent(NamedTuple):
    """The parameters that Adam moves, which determine q, and its moments."""

    at: Slope  # (μ, softplus⁻¹ g); the name is in saved posteriors
    moments: AdamState


class DiagonalState(NamedTuple):
    """q, the number of halvings of the rate, and Adam's state (else the empty tuple)."""

    mu: Float[Array, "P M"]
    g: Float[Array, "P M"]  # of any sign while B is positive definite
    halvings: Float[Array, ""]
    adam: Ascent | tuple[()]


@dataclass(frozen=True)
class DiagonalPrecision(CoupledMethod[DiagonalState, FactorisedDual]):
    """Mean Kμ and precision K⁻¹ + diag g: 2M parameters.

    Options: `optimiser` of the E-step (exact, projected-b, projected-a, adam); `start` at the prior
    (μ = 0, g = 0) or at `unit` g as in Kobe 2021, Sec. 4.2.1 (μ = 0, g = 1), where Adam on softplus⁻¹ g
    has to start; `tying`, what the M-step fixes while θ moves: the `weights` μ and g as Kobe 2021 does
    (joint gradients at fixed (μ, g)), or, as t-SVGP's `tied-projected`, S⁻¹m and g.
    """

    optimiser: str = "exact"
    start: str = "prior"
    tying: str = "weights"
    name: ClassVar[str] = "diagonal-precision"
    version: ClassVar[int] = 1
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={"kobe2021": "O(M) parameterisation (projected: our NGD method)"},
        parameters="2M",
        e_step="O(bM² + M³)",
        memory="O(bM + M²)",
        variants={
            "exact": {"optimiser": "exact"},
            "exact tied-projected": {"optimiser": "exact", "tying": "tied-projected"},
            "projected-b": {"optimiser": "projected-b"},
            "projected-a": {"optimiser": "projected-a"},
            "adam": {"optimiser": "adam", "start": "unit"},
        },
    )

    @property
    def stationary(self) -> bool:
        return not self.optimiser.startswith("projected")

    def __post_init__(self) -> None:
        if self.optimiser not in OPTIMISERS:
            raise unknown("optimiser of diagonal-precision", self.optimiser, OPTIMISERS)
        if self.start not in STARTS:
            raise unknown("start of diagonal-precision", self.start, STARTS)
        if self.tying not in TYINGS:
            raise unknown("tying of diagonal-precision", self.tying, TYINGS)
        if self.first_order and self.tying != "weights":
            raise UserError("diagonal-precision: adam moves the weights μ; leave tying = 'weights'")
        if self.first_order and self.start == "prior":
            raise UserError(
                "diagonal-precision: adam moves softplus⁻¹ g, which has no g = 0; set start = 'unit'"
            )

    @property
    def first_order(self) -> bool:
        return self.optimiser == "adam"

    @property
    def starts_at_prior(self) -> bool:
        return self.start == "prior"

    def initial_state(self, ops: Ops, p: Prior, latents: int, n: int) -> DiagonalState:
        zeros = ops.zeros((latents, p.L.shape[-1]))
        g = zeros if self.starts_at_prior else zeros + 1.0
        adam: Ascent | tuple[()] = ()
        if self.first_order:
            parameters = Slope(zeros, zeros + SOFTPLUS_INVERSE_OF_1)
            adam = Ascent(parameters, adam_start(ops, parameters))
        return DiagonalState(zeros, g, ops.zeros(()), adam)

    def e_step(
        self, ops: Ops, f: Factor, data: DataTerm, state: DiagonalState, rate: Array
    ) -> DiagonalState:
        """Return the state after one step; a natural gradient's rate is halved until B is positive definite.

        Source: Kobe 2021, Eqs. 3.18–3.20 (projected); the family's own Fisher information (exact).
        """
        q = self.factorise(ops, f, state)
        mu, v = self.marginals(ops, f, q)
        alpha, beta = data.likelihood.gradients(ops, data.y, mu, v)  # [P, b]
        alpha, beta = data.scale * alpha, data.scale * beta
        # m = Kμ = LLᵀμ, so that L⁻¹m takes a product and no solve against L
        mean = matvec(ops.matrix_transpose(f.L), state.mu)  # [P, M], L⁻¹m
        pull = matvec(f.W, alpha) - mean  # Lᵀ ∂ELBO/∂m
        if isinstance(state.adam, Ascent):
            # ∂ELBO/∂μ = K ∂ELBO/∂m = L(Lᵀ ∂ELBO/∂m), as m = Kμ
            mu = matvec(f.L, pull)
            S, SA = _covariances(ops, f, q)
            # ∂ELBO/∂g = ½[((SA)∘(SA))sβ − (S∘S)g]; softplus has slope 1 − exp(−g)
            slope = Slope(mu, 0.5 * (matvec(SA * SA, beta) - matvec(S * S, state.g)))
            slope = slope._replace(g=slope.g * (1.0 - ops.exp(-state.g)))
            parameters, moments = adam_ascent(ops, state.adam.moments, state.adam.at, slope, rate)
            g = ops.softplus(parameters.g)
            return DiagonalState(parameters.mu, g, state.halvings, Ascent(parameters, moments))
        if self.optimiser == "exact":
            target = _exact_target(ops, f, q, beta)
        else:  # the diagonal of sA diag(β)Aᵀ, the target of S⁻¹ − K⁻¹ over all Gaussians
            A = ops.solve_triangular(f.L, f.W, transpose=True)
            target = matvec(A * A, beta)
        if self.optimiser == "projected-a":
            # θ₁ moves to A(α + βAᵀm): add what the kept diagonal of the precision leaves out
            beta_mean = beta * ops.sum(f.W * mean[..., None], axis=-2)
            diagonal_part = matvec(ops.matrix_transpose(f.L), target * matvec(f.L, mean))
            pull = pull + matvec(f.W, beta_mean) - diagonal_part
        extra_halving = data.likelihood.retreats
        return _natural_step(ops, f, state, target, pull, rate, extra_halving)

    def factorise(self, ops: Ops, blocks: Whitener, state: DiagonalState) -> FactorisedDual:
        """Factorise B = I + LᵀGL, and compute L_B⁻¹c with B⁻¹c = Lᵀμ."""
        L_B = ops.cholesky(_whitened_precision(ops, blocks.L, state.g))
        mean = matvec(ops.matrix_transpose(blocks.L), state.mu)
        return FactorisedDual(L_B, matvec(ops.matrix_transpose(L_B), mean))

    def marginals(self, ops: Ops, f: Factor, q: FactorisedDual) -> tuple[Array, Array]:
        """Compute μ = kᵀμ, v = κ − wᵀw + wᵀB⁻¹w (Kobe 2021, Eq. 3.6)."""
        return DUAL.marginals(ops, f, q)

    def kl(self, ops: Ops, f: Factor, q: FactorisedDual) -> Array:
        """Compute ½(μᵀKμ + tr B⁻¹ − M + log|B|) (Kobe 2021, Eq. 3.7)."""
        return DUAL.kl(ops, f, q)

    def posterior(self, ops: Ops, blocks: Whitener, q: FactorisedDual) -> tuple[Array, Array]:
        """Return the mean Kμ and covariance LB⁻¹Lᵀ (Kobe 2021, Eq. 3.5)."""
        return DUAL.posterior(ops, blocks, q)

    def adjoint(
        self, ops: Ops, f: Cross, data: DataTerm, q: FactorisedDual, state: DiagonalState
    ) -> GramGradient:
        gradient = grad_fixed_weights if self.tying == "weights" else grad_fixed_projected
        return gradient(ops, f, data, DUAL.whitened(ops, q))

    def invariant(
        self, ops: Ops, p: Whitener, likelihood: Conditional, state: DiagonalState
    ) -> DiagonalState:
        """Return the state itself, or the state with S⁻¹m = μ + g∘m in place of μ."""
        if self.tying == "weights":
            return state
        # S⁻¹m = (K⁻¹ + G)Kμ: μ and g are not natural parameters of the family, S⁻¹m and g are
        m = matvec(p.L, matvec(ops.matrix_transpose(p.L), state.mu))
        return state._replace(mu=state.mu + state.g * m)

    def state_at(
        self, ops: Ops, blocks: Whitener, likelihood: Conditional, invariant: DiagonalState
    ) -> DiagonalState:
        """Return the state: `invariant` itself, or μ = θ₁ − g∘m, m = LB⁻¹Lᵀθ₁, from the fixed θ₁ = S⁻¹m."""
        if self.tying == "weights":
            return invariant
        L_B = ops.cholesky(_whitened_precision(ops, blocks.L, invariant.g))
        half = ops.solve_triangular(L_B, ops.matrix_transpose(blocks.L) @ invariant.mu[..., None])
        m = blocks.L @ ops.solve_triangular(L_B, half, transpose=True)
        return invariant._replace(mu=invariant.mu - invariant.g * m[..., 0])


def _natural_step(
    ops: Ops,
    f: Factor,
    state: DiagonalState,
    target: Float[Array, "P M"],
    pull: Float[Array, "P M"],
    rate: Float[Array, ""],
    extra_halving: bool,
) -> DiagonalState:
    """Return the state after g ← (1 − γ)g + γ·target and S'⁻¹m' = S'⁻¹m + γL⁻ᵀpull, with the new S'.

    With pull = Lᵀ∂_m this is θ₁ ← (1 − γ)θ₁ + γ(sAα + target∘m), θ₁ = S⁻¹m. `exact` is this step. The
    natural gradient of all Gaussians moves the mean in the same way.
    """

    def trial(rate: Array) -> tuple[DiagonalState, Array]:
        g = (1.0 - rate) * state.g + rate * target
        L_B = ops.cholesky(_whitened_precision(ops, f.L, g))
        half = ops.solve_triangular(L_B, rate * pull[..., None])
        move = ops.solve_triangular(L_B, half, transpose=True)  # change of L⁻¹m
        # μ = L⁻ᵀ(L⁻¹m): only the change is solved against L, so that the old μ keeps its digits
        mu = state.mu + ops.solve_triangular(f.L, move, transpose=True)[..., 0]
        return state._replace(mu=mu, g=g), L_B

    # this checks S' alone: a rate at which the mean diverges (see the module) passes it
    stepped, count = halve_until_positive(ops, trial, rate, extra_halving=extra_halving)
    return stepped._replace(halvings=state.halvings + count)


def _exact_target(
    ops: Ops, f: Factor, q: FactorisedDual, beta: Float[Array, "P b"]
) -> Float[Array, "P M"]:
    """Return the g at which ∂ELBO/∂g would vanish: (S∘S)⁻¹((SA)∘(SA))sβ, since F_gg = ½S∘S.

    S∘S is positive definite by Schur's product theorem.
    """
    S, SA = _covariances(ops, f, q)
    chol = ops.cholesky(S * S)
    half = ops.solve_triangular(chol, (SA * SA) @ beta[..., None])
    return ops.solve_triangular(chol, half, transpose=True)[..., 0]


def _covariances(
    ops: Ops, f: Factor, q: FactorisedDual
) -> tuple[Float[Array, "P M M"], Float[Array, "P M b"]]:
    """Compute S = LB⁻¹Lᵀ and SA = LB⁻¹W."""
    half = ops.solve_triangular(q.L_B, ops.matrix_transpose(f.L))
    half_batch = ops.solve_triangular(q.L_B, f.W)
    return ops.matrix_transpose(half) @ half, ops.matrix_transpose(half) @ half_batch


def _whitened_precision(
    ops: Ops, L: Float[Array, "Q M M"], g: Float[Array, "P M"]
) -> Float[Array, "P M M"]:
    """Compute B = I + LᵀGL."""
    return ops.eye(L.shape[-1]) + ops.matrix_transpose(L) @ (g[..., None] * L)
