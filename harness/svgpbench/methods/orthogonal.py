"""ORTH and HYBRID: a coupled q on β, and a part of the mean on its own basis γ.

ORTH (Salimbeni et al. 2018b, Eq. 12) makes this part of the mean orthogonal to β,

    m(x) = (k_xγ − k_xβK_β⁻¹K_βγ) a + k_xβK_β⁻¹m_β,    KL = KL_β + ½aᵀD_γa,  D_γ = K_γ − K_γβK_β⁻¹K_βγ,

HYBRID (Cheng and Boots 2017, App.; Salimbeni et al. 2018b, Eq. 11) does not: m(x) = k_xγa + k_xβK_β⁻¹m_β,
with K_γ in place of D_γ, and the further term aᵀK_γβK_β⁻¹m_β in the KL.

First β moves by the E-step of any coupled method, at marginals that include γ's mean. Then γ moves, at
the marginals of the new β. The alternative, to move both from the same q, costs as much (marginals twice).
In sequence, exact steps never lower the bound where it is concave, and γ only fits what β has left.
Each pair of exact steps then shrinks the error by one factor: the squared cosine of the angle between the
two parts of the mean, as measured on the data. M-steps hold a and what the coupled method holds.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float

from svgpbench.errors import UserError, unknown
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.pullback import DifferentiableCovariance, total
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.methods.adjoint import (
    BoundGradient,
    Cross,
    pull_back,
)
from svgpbench.methods.data_term import DataTerm, shifted
from svgpbench.methods.gamma_steps import (
    DENSE_STEPS,
    GAMMA_STEPS,
    DenseCurvature,
    Factorised,
    Move,
    TwoPartBlocks,
    TwoPartFactor,
    TwoPartPrior,
    TwoPartState,
    explained,
    explained_adjoint,
)
from svgpbench.methods.gram_columns import all_columns, no_columns, product, sampled_columns
from svgpbench.methods.method import CoupledMethod, MeanTerm, Method, MethodInfo
from svgpbench.methods.registry import build_named
from svgpbench.methods.residual_variance import BoundedMethod
from svgpbench.numerics.adam import adam_start
from svgpbench.numerics.gaussian import Factor, matvec, vecmat
from svgpbench.numerics.latents import outer, sum_shared, symmetric_outer
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class OrthogonalSVGP(Method[TwoPartPrior, TwoPartFactor, TwoPartState, Factorised]):
    """A coupled method on β and an orthogonal residue of the mean on γ.

    Options: `coupled`, a method and its variant as `svgpbench check` names them; `gamma_step` (adam,
    scaled, natural, newton); `gamma_rate` of that step, 0 for the E-step's own rate; `subset` of K_γ's
    columns for aᵀK_γa (0: all); `residual_variance`, of which bound (see `residual_variance.py`).
    """

    coupled: str = "q-svgp adam"
    gamma_step: str = "adam"
    gamma_rate: float = 0.0
    subset: int = 0
    residual_variance: str = "prior"
    name: ClassVar[str] = "orth"
    version: ClassVar[int] = 1
    basis: ClassVar[str] = "decoupled"
    gamma_steps: ClassVar[tuple[str, ...]] = tuple(GAMMA_STEPS)
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={
            "salimbeni2018": "ORTH (q-svgp adam), ORTHNAT (q-svgp natgrad)",
            "ours": "ORTH-DUAL (t-svgp, newton)",
            "titsias2025": "residual_variance = scalar, diagonal (with Bui et al. 2025)",
        },
        parameters="M_γ + M_β + M_β(M_β+1)/2",
        e_step="O((b + M_β + r)M_γ + bM_β² + M_β³), r = subset or M_γ; "
        "scaled: M_γM_β² more; natural, newton: M_γ³ more",
        memory="O((b + M_β + r)M_γ + M_β²)",
        variants={
            "adam": {},
            "adam subset": {"subset": 5},
            "natgrad adam": {"coupled": "q-svgp natgrad", "gamma_rate": 0.02},
            "natgrad scaled": {
                "coupled": "q-svgp natgrad",
                "gamma_step": "scaled",
                "gamma_rate": 0.02,
            },
            "natgrad natural": {
                "coupled": "q-svgp natgrad",
                "gamma_step": "natural",
                "gamma_rate": 0.02,
            },
            "natgrad newton": {"coupled": "q-svgp natgrad", "gamma_step": "newton"},
            "dual newton": {"coupled": "t-svgp", "gamma_step": "newton"},
            "dual newton scalar": {
                "coupled": "t-svgp",
                "gamma_step": "newton",
                "residual_variance": "scalar",
            },
            "dual newton diagonal": {
                "coupled": "t-svgp",
                "gamma_step": "newton",
                "residual_variance": "diagonal",
            },
        },
    )

    def __post_init__(self) -> None:
        if self.gamma_step not in self.gamma_steps:
            raise unknown(f"gamma_step of {self.name}", self.gamma_step, self.gamma_steps)
        if self.gamma_rate < 0.0 or self.subset < 0:
            raise UserError(f"gamma_rate and subset of method {self.name!r} must be 0 or more")
        if self.subset and self.gamma_step in DENSE_STEPS:
            raise UserError(
                f"gamma_step {self.gamma_step!r} of method {self.name!r} solves against all of D_γ: "
                "leave subset at 0, or take adam or scaled"
            )
        if self.part.needs_all_data:
            raise UserError(
                f"option coupled = {self.coupled!r} of method {self.name!r} keeps sites that depend on "
                "γ's mean, which moves with θ in the M-step; take another tying"
            )

    @functools.cached_property
    def part(self) -> CoupledMethod[Any, Any]:
        """The coupled method on β, with the `residual_variance` of this method."""
        part = build_named(self.coupled)
        if not isinstance(part, CoupledMethod) or part.basis != "inducing":
            raise UserError(
                f"option coupled = {self.coupled!r} of method {self.name!r} is no coupled method on "
                "inducing inputs; take q-svgp or t-svgp"
            )
        if self.residual_variance == "prior":
            return part
        if not isinstance(part, BoundedMethod):
            raise UserError(
                f"option coupled = {self.coupled!r} of method {self.name!r} has no residual_variance; "
                "take q-svgp or t-svgp"
            )
        return dataclasses.replace(part, residual_variance=self.residual_variance)

    @property
    def first_order(self) -> bool:
        return self.part.first_order

    @property
    def sampled_points(self) -> int:
        return self.subset

    def sampled_basis(self, inducing: Decoupled) -> Tree:
        return inducing.gamma

    def refuses(self, likelihood: Likelihood) -> str:
        return self.part.refuses(likelihood)

    # --- blocks --------------------------------------------------------------------------------

    def prior(self, ops: Ops, cov: Covariance, inducing: Decoupled) -> TwoPartPrior:
        gamma, beta = inducing
        coupled = self.part.prior(ops, cov, beta)
        columns = no_columns(ops, cov) if self.subset else all_columns(ops, cov, gamma)
        p = TwoPartPrior(coupled, cov.cross(beta, gamma), columns, ())
        if self.gamma_step == "adam":
            return p
        V = ops.solve_triangular(coupled.L, p.K_bg)
        if self.gamma_step == "scaled":
            diagonal = cov.diagonal(gamma) + cov.jitter - ops.sum(V * V, axis=-2)
            return p._replace(curvature=diagonal)
        K = columns.K + cov.jitter * ops.eye(V.shape[-1])
        # the jitter of K_γ stays in D_γ, which without it is singular if γ and β share a point
        D = self._residue(ops, K, V, V)
        dense = ops.cholesky(D) if self.gamma_step == "natural" else DenseCurvature(V, D, ())
        return p._replace(curvature=dense)

    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Decoupled,
        p: TwoPartPrior,
        X: Array,
        basis_points: Array | tuple[()],
    ) -> TwoPartFactor:
        gamma, beta = inducing
        coupled = self.part.factor(ops, cov, beta, p.coupled, X, ())
        sampled = not isinstance(basis_points, tuple)
        columns = sampled_columns(ops, cov, gamma, basis_points) if sampled else p.columns
        f = TwoPartFactor(coupled, p.K_bg, columns, p.curvature, cov.cross(gamma, X))
        if self.gamma_step != "newton":
            return f
        K_x = self._residue(ops, f.K_gx, f.curvature.V, coupled.W)
        return f._replace(curvature=f.curvature._replace(K_x=K_x))

    def _residue(
        self,
        ops: Ops,
        K: Float[Array, "Q M_γ m"],
        V: Float[Array, "Q M_β M_γ"],
        W: Float[Array, "Q M_β m"],
    ) -> Float[Array, "Q M_γ m"]:
        """Return K less the part that β explains, VᵀW."""
        return K - ops.matrix_transpose(V) @ W

    # --- q -------------------------------------------------------------------------------------

    def initial_state(self, ops: Ops, p: TwoPartPrior, latents: int, n: int) -> TwoPartState:
        a = ops.zeros((latents, p.K_bg.shape[-1]))
        adam = adam_start(ops, a) if self.gamma_step == "adam" else ()
        return TwoPartState(self.part.initial_state(ops, p.coupled, latents, n), a, adam)

    def factorise(self, ops: Ops, blocks: TwoPartBlocks, state: TwoPartState) -> Factorised:
        coupled = self.part.factorise(ops, blocks.coupled, state.coupled)
        return Factorised(coupled, state.a, explained(ops, blocks, state.a))

    def marginals(self, ops: Ops, f: TwoPartFactor, q: Factorised) -> tuple[Array, Array]:
        mu, v = self.part.marginals(ops, f.coupled, q.coupled)
        return mu + self._mean(f, q.a, q.explained), v

    def _mean(
        self, f: TwoPartFactor, a: Float[Array, "P M_γ"], at_beta: Float[Array, "P M_β"]
    ) -> Float[Array, "P b"]:
        """Return γ's part of the mean, k_xγa − k_xβK_β⁻¹K_βγa; `at_beta` is `explained` of a."""
        return vecmat(a, f.K_gx) - vecmat(at_beta, f.coupled.W)

    def mean_terms(
        self, ops: Ops, inducing: Decoupled, p: TwoPartPrior, q: Factorised
    ) -> tuple[MeanTerm, ...]:
        half = self._mean_at_beta(ops, p, q)[..., None]
        at_beta = ops.solve_triangular(p.coupled.L, half, transpose=True)[..., 0]
        return MeanTerm(inducing.gamma, q.a), MeanTerm(inducing.beta, at_beta)

    def _mean_at_beta(self, ops: Ops, p: TwoPartPrior, q: Factorised) -> Float[Array, "P M_β"]:
        """Return the weights of w_x = L⁻¹k_βx in the mean, here L⁻¹(m_β − K_βγa)."""
        return self.part.whitened_mean(ops, p.coupled, q.coupled) - q.explained

    def data_for_bound(
        self, ops: Ops, f: TwoPartFactor, data: DataTerm, state: TwoPartState
    ) -> DataTerm:
        return self.part.data_for_bound(ops, f.coupled, data, state.coupled)

    def kl(self, ops: Ops, f: TwoPartFactor, q: Factorised) -> Array:
        """Compute KL_β + ½aᵀD_γa, or its unbiased estimate; the part in K_γβ is always exact."""
        coupled = self.part.kl(ops, f.coupled, q.coupled)
        square = ops.sum(q.a * product(ops, f.columns, q.a))
        return coupled + 0.5 * (square + self._cross_term(ops, f, q))

    def _cross_term(self, ops: Ops, f: TwoPartFactor, q: Factorised) -> Float[Array, ""]:
        """Return the term of 2KL that contains K_γβ, summed over latents: −aᵀK_γβK_β⁻¹K_βγa."""
        return -ops.sum(q.explained * q.explained)

    def posterior(self, ops: Ops, blocks: TwoPartBlocks, q: Factorised) -> tuple[Array, Array]:
        """Return q(u) at β, where the residue is 0."""
        return self.part.posterior(ops, blocks.coupled, q.coupled)

    # --- E-step and M-step ---------------------------------------------------------------------

    def e_step(
        self, ops: Ops, f: TwoPartFactor, data: DataTerm, state: TwoPartState, rate: Array
    ) -> TwoPartState:
        """Return the state after a step on β by the coupled method, then one on γ at the new marginals.

        A natural-gradient step on β is Eqs. 16b and 16c. Source: Salimbeni et al. 2018b, Eqs. 16–17.
        """
        blocks, coupled_data = self.coupled_inputs(ops, f, data, state.a)
        coupled = self.part.e_step(ops, blocks, coupled_data, state.coupled, rate)
        state = state._replace(coupled=coupled)
        gradient, beta = self.gamma_gradient(ops, f, data, state)
        rate = self.gamma_rate + 0.0 * rate if self.gamma_rate else rate
        return GAMMA_STEPS[self.gamma_step](ops, Move(f, state, gradient, beta, rate))

    def gamma_gradient(
        self, ops: Ops, f: TwoPartFactor, data: DataTerm, state: TwoPartState
    ) -> tuple[Float[Array, "P M_γ"], Float[Array, "P b"]]:
        """Compute ∂_a = sK_γxα − K_γa, less the part through β, and sβ."""
        q, term = self.factorise(ops, f, state), self.data_for_bound(ops, f, data, state)
        alpha, beta = term.likelihood.gradients(ops, data.y, *self.marginals(ops, f, q))
        alpha, beta = data.scale * alpha, data.scale * beta
        g = matvec(f.K_gx, alpha) - product(ops, f.columns, q.a)
        return g - explained_adjoint(ops, f, self._through_beta(ops, f, q, alpha)), beta

    def _through_beta(
        self, ops: Ops, f: TwoPartFactor, q: Factorised, alpha: Float[Array, "P b"]
    ) -> Float[Array, "P M_β"]:
        """Return sWα − L⁻¹K_βγa; `alpha` is sα.

        Applying `explained_adjoint` gives the difference of sK_γxα − K_γa and sK_⊥ᵀα − D_γa.
        """
        return matvec(f.coupled.W, alpha) - q.explained

    def coupled_inputs(
        self, ops: Ops, f: TwoPartFactor, data: DataTerm, a: Float[Array, "P M_γ"]
    ) -> tuple[Factor, DataTerm]:
        """Return the blocks and the data term for the coupled method's E-step."""
        return f.coupled, shifted(data, self._mean(f, a, explained(ops, f, a)))

    @property
    def has_adjoint(self) -> bool:
        return self.part.has_adjoint and not self.subset

    def bound_gradient(
        self,
        ops: Ops,
        cov: DifferentiableCovariance,
        inducing: Decoupled,
        X: Array,
        p: TwoPartPrior,
        data: DataTerm,
        state: TwoPartState,
    ) -> BoundGradient:
        """Return the coupled method's gradient plus γ's terms.

        With e = L⁻¹K_βγa, W̄ has the further term −e(sα)ᵀ, and H has egᵀ + geᵀ − eeᵀ.
        """
        (gamma, beta), a, part = inducing, state.a, self.part
        L, kernels = p.coupled.L, p.K_bg.shape[0]
        f = Cross(L, cov.cross(beta, X), cov.diagonal(X))
        # L⁻ᵀe and, below, L⁻ᵀg enter the gradients in K(Z, X) and K(Z, Z)
        e = ops.solve_triangular(L, explained(ops, p, a)[..., None], transpose=True)[..., 0]
        q = part.factorise(ops, p.coupled, state.coupled)
        data = shifted(data, vecmat(a, cov.cross(gamma, X)) - vecmat(e, f.Kuf))
        bar = part.adjoint(ops, f, part.with_residual_scale(data, state.coupled), q, state.coupled)
        alpha = bar.slopes.alpha
        g = ops.solve_triangular(L, bar.slopes.g[..., None], transpose=True)[..., 0]
        cross = bar.cross - sum_shared(ops, outer(e, alpha), kernels)
        rank = sum_shared(ops, 0.5 * symmetric_outer(e, g - 0.5 * e), kernels)
        bar = bar._replace(cross=cross, square=bar.square + rank)
        coupled = pull_back(ops, cov, beta, X, bar)
        # the means lose w_iᵀL⁻¹K_βγa and −KL gains half of its square: the gradient in L⁻¹K_βγa is
        # e − g, here after L⁻ᵀ
        bar_bg = sum_shared(ops, outer(e - g, a), kernels)
        # `pull_cross` differentiates in its first basis: K_βγ is pulled back twice, its parameters
        # counted once
        of_beta = cov.pull_cross(beta, gamma, bar_bg)
        of_gamma = cov.pull_cross(gamma, beta, ops.matrix_transpose(bar_bg))
        square = cov.pull_square(gamma, sum_shared(ops, -0.5 * outer(a, a), kernels))
        cross = cov.pull_cross(gamma, X, sum_shared(ops, outer(a, alpha), kernels))
        return coupled._replace(
            kernel=total(
                ops, coupled.kernel, of_beta.parameters, square.parameters, cross.parameters
            ),
            inducing=Decoupled(
                total(ops, of_gamma.basis, square.basis, cross.basis),
                total(ops, coupled.inducing, of_beta.basis),
            ),
        )

    def invariant(
        self, ops: Ops, p: TwoPartPrior, likelihood: Conditional, state: TwoPartState
    ) -> TwoPartState:
        invariant = self.part.invariant(ops, p.coupled, likelihood, state.coupled)
        return state._replace(coupled=invariant)

    def state_at(
        self, ops: Ops, blocks: TwoPartBlocks, likelihood: Conditional, invariant: TwoPartState
    ) -> TwoPartState:
        coupled = self.part.state_at(ops, blocks.coupled, likelihood, invariant.coupled)
        return invariant._replace(coupled=coupled)
