"""t-SVGP: the dual parameterization (Adam, Chang, Khan and Solin 2021).

q(u) has S⁻¹ = K⁻¹ + K⁻¹Λ̄₂K⁻¹ and S⁻¹m = K⁻¹λ̄₁ with Λ̄₂ = Σ β_i k_i k_iᵀ and λ̄₁ = Σ (β_i μ_i + α_i) k_i
(Eqs. 22–24). Their λ₂ is −β/2; here it is +β throughout. The minibatch factor n/b, which Eqs. 22–23
leave out, is included. The state is whitened, c = L⁻¹λ̄₁ and C = L⁻¹Λ̄₂L⁻ᵀ, so that with B = I + C
no step at fixed θ solves against K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods import Conditional
from svgpbench.methods.adjoint import Cross, GramGradient, Whitened
from svgpbench.methods.basis_extension import zero_pad
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import MethodInfo
from svgpbench.methods.residual_variance import BoundedMethod
from svgpbench.methods.step_control import halve_until_positive
from svgpbench.methods.tying import TYINGS, DualState, Sites, step_sites
from svgpbench.numerics.gaussian import (
    Factor,
    Prior,
    Whitener,
    log_determinant,
    lower_gram,
    lower_inverse,
    matvec,
    symmetric_product,
)
from svgpbench.ops import Array, Ops


class FactorisedDual(NamedTuple):
    """The factor of B = I + C, and c solved against it."""

    L_B: Float[Array, "P M M"]  # Cholesky factor of B
    c_half: Float[Array, "P M"]  # L_B⁻¹c


def factorised(ops: Ops, state: DualState) -> FactorisedDual:
    """Factorise B = I + C and solve c against the factor; as the state is whitened, this takes no prior."""
    # with β ≥ 0 the eigenvalues of B are at least 1: it has a factor whatever the condition of K
    L_B = ops.cholesky(ops.eye(state.c.shape[-1]) + state.C)
    return FactorisedDual(L_B, ops.solve_triangular(L_B, state.c[..., None])[..., 0])


@dataclass(frozen=True)
class DualPosterior(BoundedMethod[DualState, FactorisedDual]):
    """Base class of methods whose q(u) is given by its whitened dual parameters."""

    def factorise(self, ops: Ops, blocks: Whitener, state: DualState) -> FactorisedDual:
        return factorised(ops, state)

    def marginals(self, ops: Ops, f: Factor, q: FactorisedDual) -> tuple[Array, Array]:
        """Compute μ = wᵀB⁻¹c, v = κ − wᵀw + wᵀB⁻¹w (Adam et al. 2021, App. C, Eq. 49)."""
        half = ops.solve_triangular(q.L_B, f.W)  # [P, M, b]
        mu = ops.sum(half * q.c_half[..., None], axis=-2)
        v = f.kff - ops.sum(f.W * f.W, axis=-2) + ops.sum(half * half, axis=-2)
        return mu, v

    def kl(self, ops: Ops, f: Factor, q: FactorisedDual) -> Array:
        """Compute ½(tr B⁻¹ − M + ‖B⁻¹c‖² + log|B|) (Adam et al. 2021, App. C, Eq. 51)."""
        inverse = lower_inverse(ops, q.L_B)
        mean = matvec(ops.matrix_transpose(inverse), q.c_half)
        terms = (
            ops.sum(inverse * inverse, axis=(-2, -1))
            - q.L_B.shape[-1]
            + ops.sum(mean * mean, axis=-1)
            + log_determinant(ops, q.L_B)
        )
        return 0.5 * ops.sum(terms)

    def whitened(self, ops: Ops, q: FactorisedDual) -> Whitened:
        """Compute S = B⁻¹ and m = B⁻¹c."""
        inverse = lower_inverse(ops, q.L_B)
        m = matvec(ops.matrix_transpose(inverse), q.c_half)
        return Whitened(m, lower_gram(ops, inverse))

    def posterior(self, ops: Ops, blocks: Whitener, q: FactorisedDual) -> tuple[Array, Array]:
        """Compute m = L B⁻¹c, S = L B⁻¹Lᵀ (Adam et al. 2021, App. C, Eqs. 47–48)."""
        half = ops.solve_triangular(q.L_B, ops.matrix_transpose(blocks.L))  # [P, M, M]
        return matvec(ops.matrix_transpose(half), q.c_half), ops.matrix_transpose(half) @ half


@dataclass(frozen=True)
class DualSVGP(DualPosterior):
    """t-SVGP: q(u) by its dual parameters, which an E-step moves without autodiff.

    Options: `tying`, what the M-step holds fixed while θ moves (see `tying.py`); `residual_variance`, of
    which bound (see `residual_variance.py`).
    """

    tying: str = "tied-projected"
    name: ClassVar[str] = "t-svgp"
    version: ClassVar[int] = 1
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={
            "adam2021": "t-SVGP",
            # mirror ascent with D(q‖q_t) is T ← (1−γ)T + γT̂; T is held while θ and the bases move
            "cheng2017": "iVSGPR (tied-projected, on a growing basis)",
            "titsias2025": "residual_variance = scalar, diagonal (with Bui et al. 2025)",
        },
        parameters="M + M(M+1)/2; untied: 2n more",
        e_step="O(bM² + M³)",
        memory="O(bM + M²)",
        variants={
            tying: {"tying": tying}
            for tying in ("tied-projected", "tied", "untied", "standard", "whitened")
        }
        | {
            "scalar": {"residual_variance": "scalar"},
            "diagonal": {"residual_variance": "diagonal"},
            "untied scalar": {"tying": "untied", "residual_variance": "scalar"},
            "untied diagonal": {"tying": "untied", "residual_variance": "diagonal"},
        },
        timed={"": {}},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tying not in TYINGS:
            raise unknown("tying of t-svgp", self.tying, TYINGS)

    @property
    def needs_all_data(self) -> bool:  # type: ignore[override]
        """Return True if the M-step rebuilds its sums from every site."""
        return TYINGS[self.tying].keeps_sites

    @property
    def exact_with_gaussian_noise(self) -> bool:
        return True

    def initial_state(self, ops: Ops, p: Prior, latents: int, n: int) -> DualState:
        M = p.L.shape[-1]
        sites = Sites(ops.zeros((latents, n)), ops.zeros((latents, n)))
        return DualState(
            ops.zeros((latents, M)),
            ops.zeros((latents, M, M)),
            sites if TYINGS[self.tying].keeps_sites else (),
            ops.zeros(()),
            self.first_residual(ops, latents),
        )

    def e_step(
        self, ops: Ops, f: Factor, data: DataTerm, state: DualState, rate: Array
    ) -> DualState:
        """Return the state after one natural-gradient step on the dual parameters, without autodiff.

        If the likelihood damps negative β, the rate is halved until B is positive definite.
        Source: Adam et al. 2021, Eqs. 22–24, with w_i = L⁻¹k_i in place of k_i.
        """
        term = self.data_for_e_step(ops, f, data, state)
        mu, v = self.marginals(ops, f, self.factorise(ops, f, state))
        alpha, beta = term.likelihood.gradients(ops, data.y, mu, v)  # [P, b]
        lambda1 = beta * mu + alpha
        state = self.with_residual(ops, f, data, beta, state, rate)

        def step(rate: Array) -> DualState:
            return self._step(ops, f, data, lambda1, beta, state, rate)

        # with β ≥ 0 and r ≤ 1 the new C is a mean of positive semidefinite matrices: B needs no
        # check
        if not data.likelihood.damps:
            return step(rate)

        def trial(rate: Array) -> tuple[DualState, Array]:
            stepped = step(rate)
            return stepped, self.factorise(ops, f, stepped).L_B

        stepped, halvings = halve_until_positive(
            ops, trial, rate, extra_halving=data.likelihood.retreats
        )
        return stepped._replace(halvings=state.halvings + halvings)

    def _step(
        self,
        ops: Ops,
        f: Factor,
        data: DataTerm,
        lambda1: Float[Array, "P b"],
        beta: Float[Array, "P b"],
        state: DualState,
        rate: Float[Array, ""],
    ) -> DualState:
        """Return the state after a step at `rate`, from the targets β_iμ_i + α_i and β_i."""
        step = rate * data.scale
        c = (1.0 - rate) * state.c + step * matvec(f.W, lambda1)
        # all of β on one side: √β on both would be NaN where β < 0
        target = symmetric_product(ops, f.W * (step * beta)[..., None, :], f.W)
        C = (1.0 - rate) * state.C + target
        if not TYINGS[self.tying].keeps_sites:
            return state._replace(c=c, C=C)
        sites = step_sites(ops, state.sites, data, lambda1, beta, rate)
        return state._replace(c=c, C=C, sites=sites)

    def refuses_growth(self) -> str:
        if TYINGS[self.tying].keeps_sites:
            return (
                f"tying {self.tying!r} of {self.name} rebuilds q from sites at the data, which a larger "
                'basis changes; use tying = "tied-projected"'
            )
        return ""

    def grow(self, ops: Ops, p: Prior, state: DualState) -> DualState:
        if why := self.refuses_growth():
            raise UserError(why)
        (P, _), M = state.c.shape, p.L.shape[-1]
        return state._replace(c=zero_pad(ops, state.c, (P, M)), C=zero_pad(ops, state.C, (P, M, M)))

    def invariant(self, ops: Ops, p: Whitener, likelihood: Conditional, state: DualState) -> Any:
        return TYINGS[self.tying].invariant(ops, p.L, likelihood, state)

    def state_at(
        self, ops: Ops, blocks: Prior | Factor, likelihood: Conditional, invariant: Any
    ) -> DualState:
        return TYINGS[self.tying].state_at(ops, blocks, likelihood, invariant)

    def adjoint(
        self, ops: Ops, f: Cross, data: DataTerm, q: FactorisedDual, state: DualState
    ) -> GramGradient:
        return TYINGS[self.tying].adjoint(ops, f, data, self.whitened(ops, q), state)
