"""Families with q(f) on all n data: the inputs X themselves are the basis.

t-VGP keeps a Gaussian site (λ₁ᵢ, βᵢ) for every datum (Adam et al. 2021, Sec. 3; Opper and Archambeau
2009). With K = K_ff, to which no jitter is added, D = diag β and B = I + D^½KD^½,
S = K − KD^½B⁻¹D^½K and m = Sλ₁. q-VGP is its mean–Cholesky counterpart.

A likelihood that is not log-concave may give β < 0, which has no square root. Such sites are withdrawn
after the others have been added. With D = D₊ − D₋ and S₊ the covariance by D₊ alone,
S = S₊ + S₊D₋^½C⁻¹D₋^½S₊ for C = I − D₋^½S₊D₋^½. q exists if and only if C has a Cholesky factor, which the
step control checks. This takes a few times as long, so it is an option.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.kernels.covariance import Covariance
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.mean_covariance import MeanCholeskySVGP
from svgpbench.methods.method import MeanTerm, Method, MethodInfo
from svgpbench.methods.step_control import halve_until_positive
from svgpbench.methods.tying import Sites, at_precision, per_unit_precision, step_sites
from svgpbench.numerics.gaussian import (
    LOG_2PI,
    cholesky_solve,
    log_determinant,
    lower_inverse,
    matvec,
)
from svgpbench.ops import Array, Ops, Tree


class FullPrior(NamedTuple):
    """p(f) = N(0, K) at all data."""

    Kff: Float[Array, "Q n n"]  # no jitter


class FullFactor(NamedTuple):
    """p(f) at all data, and its covariances with a batch."""

    Kff: Float[Array, "Q n n"]
    Kfb: Float[Array, "Q n b"]
    kbb: Float[Array, "Q b"]


class Withdrawn(NamedTuple):
    """The sites with negative β, factorised."""

    root: Float[Array, "P n"]  # D₋^½
    half: Float[Array, "P n n"]  # L_B⁻¹D₊^½K, so that S₊ = K − halfᵀhalf
    L_C: Float[Array, "P n n"]  # Cholesky factor of C = I − D₋^½S₊D₋^½


class FactorisedSites(NamedTuple):
    """q(f), factorised."""

    root: Float[Array, "P n"]  # D^½, or D₊^½ if negative sites are allowed
    L_B: Float[Array, "P n n"]  # Cholesky factor of B, or of B₊
    mean: Float[Array, "P n"]  # m
    weights: Float[Array, "P n"]  # a = K⁻¹m = λ₁ − β∘m
    withdrawn: Any  # Withdrawn, or () if no site may be negative


@dataclass(frozen=True)
class SitePosterior(Method[FullPrior, FullFactor, Sites, FactorisedSites]):
    """Base class of methods with one site per datum: q(f) ∝ p(f) Π t_i(f_i)."""

    basis: ClassVar[str] = "data"

    @property
    def indefinite(self) -> bool:
        """Return True if β may be negative; if not, a negative β makes q NaN."""
        return False

    def prior(self, ops: Ops, cov: Covariance, inducing: Tree) -> FullPrior:
        return FullPrior(cov.cross(inducing, inducing))

    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Tree,
        p: FullPrior,
        X: Array,
        basis_points: Array | tuple[()],
    ) -> FullFactor:
        return FullFactor(p.Kff, cov.cross(inducing, X), cov.diagonal(X))

    def initial_state(self, ops: Ops, p: FullPrior, latents: int, n: int) -> Sites:
        return Sites(ops.zeros((latents, n)), ops.zeros((latents, n)))

    def factorise(self, ops: Ops, blocks: FullPrior | FullFactor, state: Sites) -> FactorisedSites:
        K, beta = blocks.Kff, state.beta
        zero = 0.0 * beta
        root = _root(ops, ops.where(beta > 0.0, beta, zero) if self.indefinite else beta)
        scaled = root[..., None] * K  # D^½K [P, n, n]
        # eigenvalues of B are at least 1, so that it has a factor where K has none (Rasmussen and
        # Williams 2006, Sec. 3.4.3); K itself is neither factorised nor inverted
        L_B = ops.cholesky(ops.eye(K.shape[-1]) + scaled * root[..., None, :])

        def weigh(x: Array) -> Array:  # K⁻¹(K⁻¹ + D)⁻¹x = x − D^½B⁻¹D^½Kx
            return x - root * cholesky_solve(ops, L_B, matvec(scaled, x))

        weights = weigh(state.lambda1)
        if not self.indefinite:
            return FactorisedSites(root, L_B, matvec(K, weights), weights, ())
        negative = _root(ops, ops.where(beta < 0.0, -beta, zero))  # D₋^½
        half = ops.solve_triangular(L_B, scaled)
        S = K - ops.matrix_transpose(half) @ half
        C = ops.eye(K.shape[-1]) - negative[..., None] * S * negative[..., None, :]
        withdrawn = Withdrawn(negative, half, ops.cholesky(C))
        # Sλ₁ = S₊x with x = λ₁ + D₋^½C⁻¹D₋^½S₊λ₁
        inner = cholesky_solve(ops, withdrawn.L_C, withdrawn.root * matvec(K, weights))
        weights = weigh(state.lambda1 + withdrawn.root * inner)
        return FactorisedSites(root, L_B, matvec(K, weights), weights, withdrawn)

    def marginals(self, ops: Ops, f: FullFactor, q: FactorisedSites) -> tuple[Array, Array]:
        """Compute μ = k_fiᵀa, v = κ − ‖L_B⁻¹D^½k_fi‖² (Rasmussen and Williams 2006, Alg. 3.2)."""
        mu = ops.sum(f.Kfb * q.weights[..., None], axis=-2)
        half = ops.solve_triangular(q.L_B, q.root[..., None] * f.Kfb)  # [P, n, b]
        v = f.kbb - ops.sum(half * half, axis=-2)
        if self.indefinite:
            S = f.Kfb - ops.matrix_transpose(q.withdrawn.half) @ half  # S₊ at (f, b)
            more = ops.solve_triangular(q.withdrawn.L_C, q.withdrawn.root[..., None] * S)
            v = v + ops.sum(more * more, axis=-2)
        return mu, v

    def mean_terms(
        self, ops: Ops, inducing: Tree, p: FullPrior, q: FactorisedSites
    ) -> tuple[MeanTerm, ...]:
        return (MeanTerm(inducing, q.weights),)

    def kl(self, ops: Ops, f: FullFactor, q: FactorisedSites) -> Array:
        """Compute ½(tr B⁻¹ − n + mᵀ(λ₁ − β∘m) + log|B|); for withdrawn sites, B₊ and C replace B."""
        # tr K⁻¹S = n − tr B⁻¹(B − I) = tr B⁻¹ and |K|/|S| = |B|: no inverse of K
        inverse = lower_inverse(ops, q.L_B)
        terms = (
            ops.sum(inverse * inverse, axis=(-2, -1))
            - q.L_B.shape[-1]
            + ops.sum(q.mean * q.weights, axis=-1)
            + log_determinant(ops, q.L_B)
        )
        if self.indefinite:
            withdrawn = q.withdrawn
            S = f.Kff - ops.matrix_transpose(withdrawn.half) @ withdrawn.half
            inverse = lower_inverse(ops, withdrawn.L_C)
            cross = inverse @ (withdrawn.root[..., None] * S * q.root[..., None, :])
            # tr K⁻¹S = tr B₊⁻¹ + tr C⁻¹ − n − ‖L_C⁻¹D₋^½S₊D₊^½‖²
            terms = (
                terms
                + ops.sum(inverse * inverse, axis=(-2, -1))
                - withdrawn.L_C.shape[-1]
                - ops.sum(cross * cross, axis=(-2, -1))
                + log_determinant(ops, withdrawn.L_C)
            )
        return 0.5 * ops.sum(terms)

    def posterior(
        self, ops: Ops, blocks: FullPrior | FullFactor, q: FactorisedSites
    ) -> tuple[Array, Array]:
        """Return the mean and covariance of q(f) at all data."""
        half = ops.solve_triangular(q.L_B, q.root[..., None] * blocks.Kff)
        S = blocks.Kff - ops.matrix_transpose(half) @ half
        if self.indefinite:
            more = ops.solve_triangular(q.withdrawn.L_C, q.withdrawn.root[..., None] * S)
            S = S + ops.matrix_transpose(more) @ more
        return q.mean, S

    def invariant(self, ops: Ops, p: FullPrior, likelihood: Conditional, state: Sites) -> Sites:
        """Return the sites per unit precision: the `untied` M-step (Adam et al. 2021, Eq. 15)."""
        return per_unit_precision(ops, likelihood, state)

    def state_at(
        self, ops: Ops, blocks: FullPrior | FullFactor, likelihood: Conditional, invariant: Sites
    ) -> Sites:
        return at_precision(ops, likelihood, invariant)


@dataclass(frozen=True)
class DualVGP(SitePosterior):
    """t-VGP: a Gaussian site for every datum; its E-step is the dual update of t-SVGP, untied.

    `negative_sites` lets β be negative (a likelihood that is not log-concave, β not clipped).
    """

    negative_sites: bool = False
    name: ClassVar[str] = "t-vgp"
    version: ClassVar[int] = 1
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={"adam2021": "t-VGP (Sec. 3)"},
        parameters="2n",
        e_step="O(n³)",
        memory="O(n²)",
        variants={"": {}, "negative sites": {"negative_sites": True}},
    )

    @property
    def indefinite(self) -> bool:
        return self.negative_sites

    @property
    def exact_with_gaussian_noise(self) -> bool:
        return True

    def refuses(self, likelihood: Likelihood) -> str:
        if self.negative_sites or likelihood.log_concave or likelihood.negative_beta == "clip":
            return ""
        return "its β may be negative; set the option negative_sites"

    def e_step(self, ops: Ops, f: FullFactor, data: DataTerm, state: Sites, rate: Array) -> Sites:
        """Return the sites after one natural-gradient step: all decay, and the batch's are added.

        Source: Adam et al. 2021, Eqs. 12–13.
        """
        mu, v = self.marginals(ops, f, self.factorise(ops, f, state))
        alpha, beta = data.likelihood.gradients(ops, data.y, mu, v)  # [P, b]
        lambda1 = beta * mu + alpha

        def trial(rate: Array) -> tuple[Sites, Array]:
            stepped = step_sites(ops, state, data, lambda1, beta, rate)
            # B₊ has eigenvalues of at least 1: C alone can fail to have a factor
            return stepped, self.factorise(ops, f, stepped).withdrawn.L_C

        if self.negative_sites and data.likelihood.damps:
            extra_halving = data.likelihood.retreats
            return halve_until_positive(ops, trial, rate, extra_halving=extra_halving)[0]
        return step_sites(ops, state, data, lambda1, beta, rate)

    def bound_by_log_partition(
        self, ops: Ops, f: FullFactor, data: DataTerm, state: Sites
    ) -> Float[Array, ""]:
        """Return the bound as log Z + c on all data; it equals ΣV − KL if every β > 0.

        Z = ∫ p(f) Π N(ỹ_i; f_i, 1/β_i) df = N(ỹ; 0, K + D⁻¹) with ỹ = λ₁/β, and c = Σ E[log p(y_i | f_i)
        − log N(ỹ_i; f_i, 1/β_i)]. Source: Adam et al. 2021, Eqs. 16–17, with normalised sites.
        """
        q = self.factorise(ops, f, state)
        mu, v = self.marginals(ops, f, q)
        n, target = data.y.shape[-1], state.lambda1 / state.beta
        # |K + D⁻¹| = |B|/|D| and ỹᵀ(K + D⁻¹)⁻¹ỹ = ‖L_B⁻¹D^½ỹ‖², by the factor that q has already
        fit = ops.solve_triangular(q.L_B, (q.root * target)[..., None])
        log_precisions = ops.sum(ops.log(state.beta))
        log_Z = -0.5 * (
            n * state.beta.shape[0] * LOG_2PI
            + ops.sum(log_determinant(ops, q.L_B))
            - log_precisions
            + ops.sum(fit * fit)
        )
        error = target - mu
        V = data.likelihood.variational_expectations(ops, data.y, mu, v)
        log_t = 0.5 * (ops.log(state.beta) - LOG_2PI - state.beta * (error * error + v))
        return log_Z + ops.sum(V) - ops.sum(log_t)


@dataclass(frozen=True)
class MeanCholeskyVGP(MeanCholeskySVGP):
    """q-VGP: mean and Cholesky factor of q(f) on all data, which is q-SVGP with Z = X.

    Its options are q-svgp's. Unlike t-VGP it needs a Cholesky factor of K_ff, and so its jitter. Adam
    wants the full batch: away from a minibatch's rows W is zero but for rounding, which Adam scales up.
    """

    name: ClassVar[str] = "q-vgp"
    version: ClassVar[int] = 1
    basis: ClassVar[str] = "data"
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={"adam2021": "q-VGP (Sec. 2)"},
        parameters="n + n(n+1)/2",
        e_step="O(n³)",
        memory="O(n²)",
        variants={
            "natgrad": {"whiten": True},
            "natgrad unwhitened": {"whiten": False},
        },
    )


def _root(ops: Ops, x: Float[Array, "P n"]) -> Float[Array, "P n"]:
    """Return √x, NaN below 0; its derivative at 0 is set to 0, so that autodiff ignores sites with β = 0."""
    # √ must not see 0 at all: an outer `where` alone has the gradient 0 · ∞ = NaN there
    is_zero = x == 0.0
    return ops.where(is_zero, 0.0 * x, ops.sqrt(ops.where(is_zero, 0.0 * x + 1.0, x)))
