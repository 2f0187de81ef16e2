"""DECOUPLED: one basis α for the mean, another β for the covariance (Cheng and Boots 2017).

m(x) = k_xα a and v(x) = κ − k_xβ C k_βx with C = (B⁻¹ + K_β)⁻¹ = L_B H⁻¹ L_Bᵀ, H = I + L_BᵀK_βL_B
(Eqs. 7–8 and their footnote 8). E-steps go up the gradient in (a, L_B). With `subset` the quadratic
form aᵀK_αa is estimated from that many columns of K_α; cost and memory are then linear in M_α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.errors import UserError, unknown
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.covariance import Covariance
from svgpbench.methods.basis_extension import extend_by_diagonal, extend_moments, zero_pad
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.gram_columns import (
    Columns,
    all_columns,
    no_columns,
    product,
    sampled_columns,
)
from svgpbench.methods.method import MeanTerm, Method, MethodInfo
from svgpbench.numerics.adam import AdamState, adam_ascent, adam_start
from svgpbench.numerics.gaussian import log_determinant, matvec, vecmat
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

OPTIMISERS = ("adam", "sgd")
START = 1e-3
"""L_B starts at START·I, where KL ≈ START⁴ tr(K²)/4. At 0 the gradient in L_B would be exactly 0."""


class DecoupledPrior(NamedTuple):
    """Blocks of the two bases."""

    columns: Columns  # of K_α
    K_ba: Float[Array, "Q M_β M_α"]
    K_b: Float[Array, "Q M_β M_β"]  # jitter added


class DecoupledFactor(NamedTuple):
    """Blocks of the two bases and a batch."""

    columns: Columns  # of K_α
    K_ba: Float[Array, "Q M_β M_α"]
    K_b: Float[Array, "Q M_β M_β"]  # jitter added
    K_af: Float[Array, "Q M_α b"]
    K_bf: Float[Array, "Q M_β b"]
    kff: Float[Array, "Q b"]


class MeanPrecision(NamedTuple):
    """Coefficients of the mean, and the factor of B = L_B L_Bᵀ."""

    a: Float[Array, "P M_α"]
    L_B: Float[Array, "P M_β M_β"]  # lower triangular


class DecoupledState(NamedTuple):
    """q, and Adam's moments if the E-step is Adam (else the empty tuple)."""

    q: MeanPrecision
    adam: AdamState | tuple[()]


class FactorisedDecoupled(NamedTuple):
    """The mean's coefficients, and C = TᵀT through T = L_H⁻¹L_Bᵀ."""

    a: Float[Array, "P M_α"]
    L_H: Float[Array, "P M_β M_β"]  # Cholesky factor of H
    T: Float[Array, "P M_β M_β"]


@dataclass(frozen=True)
class DecoupledSVGP(Method[DecoupledPrior, DecoupledFactor, DecoupledState, FactorisedDecoupled]):
    """DECOUPLED; `optimiser` of the E-step (adam or sgd), `subset` of K_α's columns (0: all).

    With `union` the mean's basis is α = γ ∪ β, and the best q that of ORTH and HYBRID on the same γ and β
    where the likelihood is log-concave; else it is γ.
    """

    optimiser: str = "adam"
    subset: int = 0
    union: bool = False
    name: ClassVar[str] = "decoupled"
    version: ClassVar[int] = 1
    basis: ClassVar[str] = "decoupled"
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={"cheng2017": "SVDGP (on a growing basis)", "salimbeni2018": "DECOUPLED"},
        parameters="M_γ + M_β(M_β+1)/2",
        e_step="O((b + r)M_γ + bM_β² + M_β³), r = subset or M_γ",
        memory="O((b + r + M_β)M_γ + M_β²)",
        variants={
            "adam": {"optimiser": "adam"},
            "sgd": {"optimiser": "sgd"},
            "adam subset": {"optimiser": "adam", "subset": 5},
        },
    )

    def __post_init__(self) -> None:
        if self.optimiser not in OPTIMISERS:
            raise unknown(f"E-step of {self.name}", self.optimiser, OPTIMISERS)
        if self.subset < 0:
            raise UserError(f"option 'subset' of method {self.name!r} must be 0 (all) or more")
        if self.subset and self.union:
            raise UserError(
                f"method {self.name!r} samples columns of γ alone: leave union or subset"
            )

    def bases(self, ops: Ops, inducing: Decoupled) -> Decoupled:
        """Return the bases α and β of the mean and the covariance."""
        gamma, beta = inducing
        if not self.union:
            return inducing
        return Decoupled(tree_map(lambda *parts: ops.concat(parts, axis=0), gamma, beta), beta)

    @property
    def first_order(self) -> bool:
        return True

    @property
    def sampled_points(self) -> int:
        return self.subset

    def sampled_basis(self, inducing: Decoupled) -> Tree:
        return inducing.gamma

    def prior(self, ops: Ops, cov: Covariance, inducing: Decoupled) -> DecoupledPrior:
        alpha, beta = self.bases(ops, inducing)
        columns = no_columns(ops, cov) if self.subset else all_columns(ops, cov, alpha)
        return DecoupledPrior(columns, cov.cross(beta, alpha), cov.square(beta))

    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Decoupled,
        p: DecoupledPrior,
        X: Array,
        basis_points: Array | tuple[()],
    ) -> DecoupledFactor:
        alpha, beta = self.bases(ops, inducing)
        sampled = not isinstance(basis_points, tuple)
        columns = sampled_columns(ops, cov, alpha, basis_points) if sampled else p.columns
        blocks = (cov.cross(alpha, X), cov.cross(beta, X), cov.diagonal(X))
        return DecoupledFactor(columns, p.K_ba, p.K_b, *blocks)

    def initial_state(self, ops: Ops, p: DecoupledPrior, latents: int, n: int) -> DecoupledState:
        M_b, M_a = p.K_ba.shape[-2], p.K_ba.shape[-1]
        L_B = ops.broadcast_to(START * ops.eye(M_b), (latents, M_b, M_b))
        q = MeanPrecision(ops.zeros((latents, M_a)), L_B)
        return DecoupledState(q, adam_start(ops, q) if self.optimiser == "adam" else ())

    def e_step(
        self, ops: Ops, f: DecoupledFactor, data: DataTerm, state: DecoupledState, rate: Array
    ) -> DecoupledState:
        """Return the state after one gradient step in (a, L_B), or after an Adam step with that gradient."""
        g = self.gradients(ops, f, data, state)
        if isinstance(state.adam, AdamState):
            return DecoupledState(*adam_ascent(ops, state.adam, state.q, g, rate))
        q = MeanPrecision(state.q.a + rate * g.a, state.q.L_B + rate * g.L_B)
        return DecoupledState(q, ())

    def gradients(
        self, ops: Ops, f: DecoupledFactor, data: DataTerm, state: DecoupledState
    ) -> MeanPrecision:
        """Compute ∂_a = sK_αbα − K_αa and ∂_{L_B} = tril(2 ∂_B L_B), in closed form.

        2∂_B = U diag(sβ) Uᵀ − SBS, where S = K_β − K_βCK_β and U = (I − K_βC)K_βb. Source: Cheng and Boots
        2017, Sec. 3.4.
        """
        q = self.factorise(ops, f, state)
        alpha, beta = data.likelihood.gradients(ops, data.y, *self.marginals(ops, f, q))
        g_a = data.scale * matvec(f.K_af, alpha) - product(ops, f.columns, q.a)
        TK = q.T @ f.K_b
        U = f.K_bf - ops.matrix_transpose(TK) @ (q.T @ f.K_bf)  # [P, M_β, b]
        S = f.K_b - ops.matrix_transpose(TK) @ TK
        L_B, SL = state.q.L_B, S @ state.q.L_B
        # SBSL_B = SL_B(L_BᵀSL_B), and Uᵀ meets L_B first: neither B nor U diag(sβ)Uᵀ is formed
        by_data = (U * (data.scale * beta)[..., None, :]) @ (ops.matrix_transpose(U) @ L_B)
        return MeanPrecision(g_a, ops.tril(by_data - SL @ (ops.matrix_transpose(L_B) @ SL)))

    def factorise(
        self, ops: Ops, blocks: DecoupledPrior | DecoupledFactor, state: DecoupledState
    ) -> FactorisedDecoupled:
        half = ops.matrix_transpose(state.q.L_B)
        # eigenvalues of H are at least 1; neither K_β nor B, which starts near 0, is inverted
        H = ops.eye(half.shape[-1]) + half @ blocks.K_b @ state.q.L_B
        L_H = ops.cholesky(H)
        return FactorisedDecoupled(state.q.a, L_H, ops.solve_triangular(L_H, half))

    def marginals(
        self, ops: Ops, f: DecoupledFactor, q: FactorisedDecoupled
    ) -> tuple[Array, Array]:
        """Compute μ = k_xα a, v = κ − ‖T k_βx‖² (Cheng and Boots 2017, Eq. 8)."""
        half = q.T @ f.K_bf
        return vecmat(q.a, f.K_af), f.kff - ops.sum(half * half, axis=-2)

    def mean_terms(
        self, ops: Ops, inducing: Decoupled, p: DecoupledPrior, q: FactorisedDecoupled
    ) -> tuple[MeanTerm, ...]:
        return (MeanTerm(self.bases(ops, inducing).gamma, q.a),)

    def kl(self, ops: Ops, f: DecoupledFactor, q: FactorisedDecoupled) -> Array:
        """Compute ½aᵀK_αa + ½log|H| − ½tr(K_βC) (Cheng and Boots 2017, Eq. 9)."""
        terms = (
            ops.sum(q.a * product(ops, f.columns, q.a), axis=-1)
            + log_determinant(ops, q.L_H)
            - ops.sum(q.T * (q.T @ f.K_b), axis=(-2, -1))
        )
        return 0.5 * ops.sum(terms)

    def refuses_growth(self) -> str:
        return "the mean's own points come before β in α = γ ∪ β" if self.union else ""

    def grow(self, ops: Ops, p: DecoupledPrior, state: DecoupledState) -> DecoupledState:
        """Return a state with exactly the same mean; the variance falls by the order of START²."""
        P, (M_b, M_a) = state.q.a.shape[0], p.K_ba.shape[-2:]
        L_B = extend_by_diagonal(ops, state.q.L_B, M_b, START)
        q = MeanPrecision(zero_pad(ops, state.q.a, (P, M_a)), L_B)
        adam = state.adam
        return DecoupledState(
            q, extend_moments(ops, adam, q) if isinstance(adam, AdamState) else ()
        )

    def posterior(
        self, ops: Ops, blocks: DecoupledPrior | DecoupledFactor, q: FactorisedDecoupled
    ) -> tuple[Array, Array]:
        """Return K_βα a and K_β − K_βCK_β, the mean and covariance of q at β."""
        TK = q.T @ blocks.K_b
        return matvec(blocks.K_ba, q.a), blocks.K_b - ops.matrix_transpose(TK) @ TK
