"""q-SVGP: mean and Cholesky factor of q(u) (Hensman et al. 2013, 2015; Salimbeni et al. 2018a).

Whitened, the state is (m_v, L_v) of u = Lv; unwhitened, it is (m, L_S) of u itself. E-steps: `adam` on
the state, or `natgrad`, whose gradient is taken in closed form or, as today's libraries do, by autodiff
through the maps between parameterizations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.errors import unknown
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.methods.adjoint import (
    Cross,
    GramGradient,
    Whitened,
    grad_fixed_factor,
    grad_fixed_posterior,
    grad_fixed_whitened,
)
from svgpbench.methods.basis_extension import (
    extend_by_diagonal,
    extend_factor,
    extend_mean,
    extend_moments,
    zero_pad,
)
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import MethodInfo
from svgpbench.methods.residual_variance import BoundedMethod
from svgpbench.methods.step_control import halve_until_positive
from svgpbench.numerics.adam import AdamState, adam_ascent, adam_start
from svgpbench.numerics.gaussian import (
    Factor,
    Prior,
    Whitener,
    cholesky_of_inverse,
    log_determinant,
    lower_inverse,
    matvec,
    symmetric_product,
    symmetrise,
)
from svgpbench.ops import Array, Ops

E_STEPS = ("natgrad", "adam")
GRADIENTS = ("closed-form", "autodiff")
STARTS = ("prior", "unit")


class MeanCholesky(NamedTuple):
    """Mean and lower Cholesky factor of the covariance."""

    mean: Float[Array, "P M"]
    chol: Float[Array, "P M M"]


class QState(NamedTuple):
    """q, Adam's moments if the E-step is Adam, and the number of halvings of a natural gradient's rate."""

    q: MeanCholesky
    adam: AdamState | tuple[()]
    halvings: Float[Array, ""]  # since the start
    residual: Float[Array, "P"] | tuple[()] = ()  # 1/v of one residual variance


@dataclass(frozen=True)
class MeanCholeskySVGP(BoundedMethod[QState, MeanCholesky]):
    """q-SVGP, whitened or not.

    Options: `whiten`; `optimiser` of the E-step (natgrad or adam); `gradient` (closed-form, or
    autodiff); `start` at the prior, or at `unit` covariance of what the state is of (unwhitened, S = I as
    in Kobe 2021, Sec. 4.2.1; whitened, the prior is that); `residual_variance`, of which bound (see
    `residual_variance.py`).
    """

    whiten: bool = True
    optimiser: str = "natgrad"
    gradient: str = "closed-form"
    start: str = "prior"
    name: ClassVar[str] = "q-svgp"
    version: ClassVar[int] = 1
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={
            "adam2021": "q-SVGP",
            "kobe2021": "NGD, Adam (full covariance)",
            "salimbeni2018": "COUPLED (adam), COUPLEDNAT (natgrad)",
            "cheng2017": "SVI (natgrad, unwhitened, on a growing basis)",
            "titsias2025": "residual_variance = scalar, diagonal (with Bui et al. 2025)",
        },
        parameters="M + M(M+1)/2",
        e_step="O(bM² + M³)",
        memory="O(bM + M²)",
        variants={
            "natgrad": {"whiten": True},
            "natgrad autodiff": {"whiten": True, "gradient": "autodiff"},
            "natgrad unwhitened": {"whiten": False},
            "natgrad unwhitened autodiff": {"whiten": False, "gradient": "autodiff"},
            "adam": {"whiten": True, "optimiser": "adam"},
            "adam autodiff": {"whiten": True, "optimiser": "adam", "gradient": "autodiff"},
            "adam unwhitened": {"whiten": False, "optimiser": "adam"},
            "natgrad scalar": {"whiten": True, "residual_variance": "scalar"},
            "natgrad diagonal": {"whiten": True, "residual_variance": "diagonal"},
            "natgrad unwhitened autodiff scalar": {
                "whiten": False,
                "gradient": "autodiff",
                "residual_variance": "scalar",
            },
        },
        timed={"": {"gradient": "closed-form"}, "autodiff": {"gradient": "autodiff"}},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimiser not in E_STEPS:
            raise unknown(f"E-step of {self.name}", self.optimiser, E_STEPS)
        if self.gradient not in GRADIENTS:
            raise unknown(f"gradient of {self.name}", self.gradient, GRADIENTS)
        if self.start not in STARTS:
            raise unknown(f"start of {self.name}", self.start, STARTS)

    @property
    def first_order(self) -> bool:
        return self.optimiser == "adam"

    @property
    def exact_with_gaussian_noise(self) -> bool:
        return not self.first_order

    @property
    def starts_at_prior(self) -> bool:
        return self.whiten or self.start == "prior"

    def refuses(self, likelihood: Likelihood) -> str:
        if likelihood.clips and (self.optimiser == "adam" or self.gradient == "autodiff"):
            return "negative β is clipped in closed-form natural gradients only"
        return super().refuses(likelihood)

    def initial_state(self, ops: Ops, p: Prior, latents: int, n: int) -> QState:
        M = p.L.shape[-1]
        start = p.L if self.start == "prior" and not self.whiten else ops.eye(M)
        q = MeanCholesky(ops.zeros((latents, M)), ops.broadcast_to(start, (latents, M, M)))
        adam = adam_start(ops, q) if self.optimiser == "adam" else ()
        return QState(q, adam, ops.zeros(()), self.first_residual(ops, latents))

    def e_step(self, ops: Ops, f: Factor, data: DataTerm, state: QState, rate: Array) -> QState:
        if isinstance(state.adam, AdamState):
            g, beta = self._slope_in_factor(ops, f, data, state)
            q, adam = adam_ascent(ops, state.adam, state.q, g, rate)
            state = self.with_residual(ops, f, data, beta, state, rate)
            return state._replace(q=q, adam=adam)
        precision = _precision(ops, state.q.chol)
        g_mean, g_cov, beta = self._slope_in_covariance(ops, f, data, state, precision)
        # 1/v and q both move from the same q: β was computed before either moved
        state = self.with_residual(ops, f, data, beta, state, rate)

        def step(rate: Array) -> MeanCholesky:
            return natural_gradient_step(ops, state.q, precision, g_mean, g_cov, rate)

        # with β ≥ 0 and ρ ≤ 1 no check is needed: S'⁻¹ = (1 − ρ)S⁻¹ + ρ(P₀ + sA diag(β)Aᵀ) is a
        # mean of positive definite matrices
        if not self._damps(data.likelihood):
            return state._replace(q=step(rate))

        def trial(rate: Array) -> tuple[MeanCholesky, Array]:
            q = step(rate)
            return q, q.chol  # NaN where the new precision is not positive definite

        q, halvings = halve_until_positive(ops, trial, rate, extra_halving=data.likelihood.retreats)
        return state._replace(q=q, halvings=state.halvings + halvings)

    def _damps(self, likelihood: Conditional) -> bool:
        """Return True if β < 0 may make a new precision indefinite.

        Autodiff of a sampled V̂ may give such β for any likelihood.
        """
        return likelihood.damps or (self.gradient == "autodiff" and likelihood.sampled)

    def _slope_in_factor(
        self, ops: Ops, f: Factor, data: DataTerm, state: QState
    ) -> tuple[MeanCholesky, Float[Array, "P b"] | tuple[()]]:
        """Compute ∂ELBO/∂(m, L_S), and β."""
        if self.gradient == "autodiff":
            g = self._gradients_by_autodiff(ops, f, data, state)
            return g, self._beta_of_residual(ops, f, data, state)
        g_mean, pull, beta = self._gradients(ops, f, data, state)
        return MeanCholesky(g_mean, _chol_gradient(ops, state.q.chol, pull)), beta

    def _slope_in_covariance(
        self, ops: Ops, f: Factor, data: DataTerm, state: QState, precision: Float[Array, "P M M"]
    ) -> tuple[Float[Array, "P M"], Float[Array, "P M M"], Float[Array, "P b"] | tuple[()]]:
        """Compute ∂ELBO/∂m, ∂ELBO/∂S and β; `precision` is S⁻¹."""
        if self.gradient == "autodiff":
            g = self._gradients_by_autodiff(ops, f, data, state)
            beta = self._beta_of_residual(ops, f, data, state)
            return g.mean, _covariance_gradient(ops, state.q.chol, g.chol), beta
        g_mean, pull, beta = self._gradients(ops, f, data, state)
        return g_mean, 0.5 * (precision - pull), beta

    def _beta_of_residual(
        self, ops: Ops, f: Factor, data: DataTerm, state: QState
    ) -> Float[Array, "P b"] | tuple[()]:
        """Return β, which autodiff does not give, if the residual variance moves; else ()."""
        if not self.residual.moves:
            return ()
        mu, v = self.marginals(ops, f, self.factorise(ops, f, state))
        return self.data_for_bound(ops, f, data, state).likelihood.gradients(ops, data.y, mu, v)[1]

    def _gradients(
        self, ops: Ops, f: Factor, data: DataTerm, state: QState
    ) -> tuple[Float[Array, "P M"], Float[Array, "P M M"], Float[Array, "P b"]]:
        """Compute ∂ELBO/∂m = sAα − P₀m, P₀ + sA diag(β)Aᵀ, and β.

        P₀ is the prior precision, and ∂ELBO/∂S = ½(S⁻¹ − P₀ − sA diag(β)Aᵀ).
        Source: Salimbeni et al. 2018a, Sec. 2; Adam et al. 2021, App. D.
        """
        mu, v = self.marginals(ops, f, self.factorise(ops, f, state))
        term = self.data_for_e_step(ops, f, data, state)
        alpha, beta = term.likelihood.gradients(ops, data.y, mu, v)
        A, P0 = self._projection(ops, f)
        g_mean = data.scale * matvec(A, alpha) - matvec(P0, state.q.mean)
        pull = P0 + symmetric_product(ops, A * (data.scale * beta)[..., None, :], A)
        return g_mean, pull, beta

    def _gradients_by_autodiff(
        self, ops: Ops, f: Factor, data: DataTerm, state: QState
    ) -> MeanCholesky:
        def objective(q: MeanCholesky) -> Float[Array, ""]:
            # entries above the diagonal are no parameters: without `tril` Adam would move them
            lower = MeanCholesky(q.mean, ops.tril(q.chol))
            return self.bound(ops, f, data, state._replace(q=lower))

        gradient: MeanCholesky = ops.value_and_grad(objective)(state.q)[1]
        return gradient

    def _projection(
        self, ops: Ops, f: Factor
    ) -> tuple[Float[Array, "_ M b"], Float[Array, "Q M M"]]:
        """Return A, with μ = Aᵀm, and the prior precision, in the state's own coordinates."""
        identity = ops.broadcast_to(ops.eye(f.L.shape[-1]), f.L.shape)
        if self.whiten:
            return f.W, identity
        half = ops.solve_triangular(f.L, identity)
        return ops.solve_triangular(f.L, f.W, transpose=True), ops.matrix_transpose(half) @ half

    def factorise(self, ops: Ops, blocks: Whitener, state: QState) -> MeanCholesky:
        """Return (m_v, L_v) of the whitened u = Lv."""
        if self.whiten:
            return state.q
        mean = ops.solve_triangular(blocks.L, state.q.mean[..., None])[..., 0]
        return MeanCholesky(mean, ops.solve_triangular(blocks.L, state.q.chol))

    def marginals(self, ops: Ops, f: Factor, q: MeanCholesky) -> tuple[Array, Array]:
        """Compute μ = wᵀm_v, v = κ − wᵀw + ‖L_vᵀw‖² (Hensman et al. 2013, Eq. 5)."""
        mu = ops.sum(f.W * q.mean[..., None], axis=-2)
        # wᵀS_v w as a sum of squares is never below 0, and S_v is not formed
        half = ops.matrix_transpose(q.chol) @ f.W
        v = f.kff - ops.sum(f.W * f.W, axis=-2) + ops.sum(half * half, axis=-2)
        return mu, v

    def kl(self, ops: Ops, f: Factor, q: MeanCholesky) -> Array:
        """Compute ½(tr S_v + m_vᵀm_v − M − log|S_v|)."""
        terms = (
            ops.sum(q.chol * q.chol, axis=(-2, -1))
            + ops.sum(q.mean * q.mean, axis=-1)
            - q.chol.shape[-1]
            - log_determinant(ops, q.chol)
        )
        return 0.5 * ops.sum(terms)

    def adjoint(
        self, ops: Ops, f: Cross, data: DataTerm, q: MeanCholesky, state: QState
    ) -> GramGradient:
        M, b = f.Kuf.shape[-2:]
        if self.whiten and b < M:  # forming S takes 2M³, more than a second product with W
            return grad_fixed_factor(ops, f, data, q.mean, q.chol)
        whitened = Whitened(q.mean, q.chol @ ops.matrix_transpose(q.chol))
        return (grad_fixed_whitened if self.whiten else grad_fixed_posterior)(
            ops, f, data, whitened
        )

    def posterior(self, ops: Ops, blocks: Whitener, q: MeanCholesky) -> tuple[Array, Array]:
        """Return the mean L m_v and covariance L S_v Lᵀ of q(u)."""
        chol = blocks.L @ q.chol
        return matvec(blocks.L, q.mean), chol @ ops.matrix_transpose(chol)

    def refuses_growth(self) -> str:
        return ""

    def grow(self, ops: Ops, p: Prior, state: QState) -> QState:
        mean, chol = state.q
        P, M = mean.shape[0], p.L.shape[-1]
        if self.whiten:
            q = MeanCholesky(zero_pad(ops, mean, (P, M)), extend_by_diagonal(ops, chol, M))
        else:
            q = MeanCholesky(extend_mean(ops, p.L, mean), extend_factor(ops, p.L, chol))
        adam = state.adam
        moments = extend_moments(ops, adam, q) if isinstance(adam, AdamState) else ()
        return state._replace(q=q, adam=moments)


def natural_gradient_step(
    ops: Ops,
    q: MeanCholesky,
    precision: Float[Array, "P M M"],
    g_mean: Float[Array, "P M"],
    g_cov: Float[Array, "P M M"],
    rate: Float[Array, ""],
) -> MeanCholesky:
    """Take the step (S⁻¹m, −½S⁻¹) ← + ρ ∂ELBO/∂(m, S + mmᵀ), from ∂ELBO/∂m and ∂ELBO/∂S.

    Source: Salimbeni et al. 2018a, Eq. 10; Adam et al. 2021, Alg. 1, lines 9–11.
    """
    # with S = μ₂ − μ₁μ₁ᵀ the chain rule gives ∂/∂μ₁ = ∂/∂m − 2(∂/∂S)m and ∂/∂μ₂ = ∂/∂S
    theta1 = matvec(precision, q.mean) + rate * (g_mean - 2.0 * matvec(g_cov, q.mean))
    # −½S'⁻¹ = −½S⁻¹ + ρ∂/∂S, times −2
    chol = cholesky_of_inverse(ops, precision - 2.0 * rate * g_cov)
    return MeanCholesky(matvec(chol, matvec(ops.matrix_transpose(chol), theta1)), chol)


def _precision(ops: Ops, chol: Float[Array, "P M M"]) -> Float[Array, "P M M"]:
    """Compute S⁻¹ from the lower factor of S."""
    half = lower_inverse(ops, chol)
    return ops.matrix_transpose(half) @ half


def _chol_gradient(
    ops: Ops, chol: Float[Array, "P M M"], pull: Float[Array, "P M M"]
) -> Float[Array, "P M M"]:
    """Compute tril(2 ∂_S L_S) = diag(1/L_S) − tril((P₀ + sA diag(β)Aᵀ) L_S), without S⁻¹."""
    # S⁻¹L_S = L_S⁻ᵀ is upper triangular: `tril` leaves its diagonal, so nothing is inverted
    reciprocal = ops.eye(chol.shape[-1]) * (1.0 / ops.diagonal(chol))[..., None]
    return reciprocal - ops.tril(pull @ chol)


def _covariance_gradient(
    ops: Ops, chol: Float[Array, "P M M"], g_chol: Float[Array, "P M M"]
) -> Float[Array, "P M M"]:
    """Compute ∂/∂S from ∂/∂L_S by autodiff through S ↦ chol(S), as today's libraries do."""

    def pairing(S: Float[Array, "P M M"]) -> Float[Array, ""]:
        # its gradient is the vector-Jacobian product of S ↦ chol(S), which `symmetrise` makes
        # symmetric where a backend's Cholesky reads one triangle
        return ops.sum(g_chol * ops.cholesky(symmetrise(ops, S)))

    _, g_cov = ops.value_and_grad(pairing)(chol @ ops.matrix_transpose(chol))
    return g_cov  # symmetric
