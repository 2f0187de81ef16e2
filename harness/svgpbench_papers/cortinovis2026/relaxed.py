"""R-SVGP: diagonal precision without a factorisation (Cortinovis et al. 2026).

The family is L-SVGP's (Panos et al. 2018; `diagonal-precision`): mean Kμ and covariance K − KK̃⁻¹K with
K̃ = K + diag(s). R-SVGP has a matrix T = BBᵀ in the place of K̃⁻¹, and takes products alone:

* v = κ − kᵀ(2T − TK̃T)k, where L-SVGP has κ − kᵀK̃⁻¹k. As 2T − TK̃T = K̃⁻¹ − (T − K̃⁻¹)K̃(T − K̃⁻¹), no variance
  is too small, and a T that is off by ε costs ε².
* log|K̃| ≤ tr(K̃T) − M − log|T|, and −tr(K̃⁻¹K) ≤ −tr((2T − TK̃T)K), so that the divergence is not too small.

Both are exact at T = K̃⁻¹, where B is what natural gradient steps on KL[N(0, BBᵀ) ‖ N(0, K̃⁻¹)] find:
B ← B(I − γΦ) with Φ the lower triangle of BᵀK̃B − I and half its diagonal. At γ = 1 the error squares.

The paper's text was not at hand: formulas are derived here, and settings are those of the authors' code. They
estimate the traces with 256 probes where M is larger; here traces are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.errors import UserError, unknown
from svgpbench.kernels.covariance import Covariance
from svgpbench.likelihoods import Conditional
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import MeanTerm, Method, MethodInfo
from svgpbench.numerics.adam import AdamState, adam_ascent, adam_start
from svgpbench.numerics.gaussian import cholesky_of_inverse, log_determinant, matvec, vecmat
from svgpbench.ops import Array, Ops, Tree

INVERSES = ("natural", "cholesky")
SCHEDULES = ("constant", "log-linear")
FIRST_FACTOR = 1e-3
"""Entries of B at the start, small beside K̃^(-1/2): the steps then grow B from below."""
FIRST_RATE, RISING = 1e-5, 10
"""The log-linear schedule: its first rate, and the number of rates up to 1."""


class RelaxedPrior(NamedTuple):
    """Block that θ determines."""

    K: Float[Array, "Q M M"]  # jitter added


class RelaxedFactor(NamedTuple):
    """Blocks of the inducing inputs and a batch."""

    K: Float[Array, "Q M M"]  # jitter added
    K_f: Float[Array, "Q M b"]
    kff: Float[Array, "Q b"]


class Moved(NamedTuple):
    """The parameters that Adam moves (of the mean, and softplus⁻¹ s), or a gradient in them."""

    a: Float[Array, "P M"]  # K̃μ if preconditioned (at T = K̃⁻¹), else μ
    raw_s: Float[Array, "P M"]


class RelaxedState(NamedTuple):
    """q with Adam's moments, and the number of steps on B since the start."""

    moved: Moved
    adam: AdamState
    B: Float[Array, "P M M"]  # lower triangular
    rounds: Float[Array, ""]


class FactorisedRelaxed(NamedTuple):
    """The state at some blocks, for marginals, divergence and posterior."""

    mu: Float[Array, "P M"]
    s: Float[Array, "P M"]
    B: Float[Array, "P M M"]
    K_s: Float[Array, "P M M"]  # K̃


@dataclass(frozen=True)
class RelaxedSVGP(Method[RelaxedPrior, RelaxedFactor, RelaxedState, FactorisedRelaxed]):
    """R-SVGP; with `inverse` = cholesky it is L-SVGP, which finds T by factorisation.

    An E-step finds T at the current θ and s, and then takes one step of Adam on the mean's parameters and s.

    Options: `inverse` (natural: steps on B; cholesky); `precondition`: Adam moves a of μ = (2T − TK̃T)a, or μ
    itself; `tolerance` of ‖BᵀK̃B − I‖ / √M, at which steps on B end; `most_rounds`, the most of them in an
    E-step; `schedule` of their rate, constant 1 or log-linear from 1e-5 to 1 in ten steps; `initial_s`, every
    entry of s at the start. A variance is a difference of terms near κ, so that float32 keeps few digits of
    one as small as the default s. `scaled` (ours): before a step B is divided so that no eigenvalue of BᵀK̃B
    is above 2, whence steps of rate 1 may diverge.
    """

    inverse: str = "natural"
    precondition: bool = True
    tolerance: float = 1e-3
    most_rounds: int = 100
    schedule: str = "constant"
    initial_s: float = 1e-4
    scaled: bool = False
    name: ClassVar[str] = "r-svgp"
    version: ClassVar[int] = 1
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={"cortinovis2026": "R-SVGP (natural), L-SVGP (cholesky)"},
        parameters="2M + M(M+1)/2",
        e_step="O(bM² + kM³), k steps on B",
        memory="O(bM + M²)",
        variants={
            "natural": {"inverse": "natural", "initial_s": 0.1},
            "natural log-linear": {"schedule": "log-linear", "initial_s": 0.1},
            "natural plain": {"precondition": False, "initial_s": 0.1},
            "cholesky": {"inverse": "cholesky", "initial_s": 0.1},
        },
    )

    def __post_init__(self) -> None:
        if self.inverse not in INVERSES:
            raise unknown(f"inverse of {self.name}", self.inverse, INVERSES)
        if self.schedule not in SCHEDULES:
            raise unknown(f"schedule of {self.name}", self.schedule, SCHEDULES)
        if self.tolerance <= 0.0:
            raise UserError(f"option 'tolerance' of method {self.name!r} must be above 0")
        if self.initial_s <= 0.0:
            raise UserError(f"option 'initial_s' of method {self.name!r} must be above 0")
        if self.most_rounds < 1:
            raise UserError(f"option 'most_rounds' of method {self.name!r} must be 1 or more")

    @property
    def first_order(self) -> bool:
        return True

    @property
    def starts_at_prior(self) -> bool:
        return False

    def prior(self, ops: Ops, cov: Covariance, inducing: Tree) -> RelaxedPrior:
        return RelaxedPrior(cov.square(inducing))

    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Tree,
        p: RelaxedPrior,
        X: Array,
        basis_points: Array | tuple[()],
    ) -> RelaxedFactor:
        return RelaxedFactor(p.K, cov.cross(inducing, X), cov.diagonal(X))

    def initial_state(self, ops: Ops, p: RelaxedPrior, latents: int, n: int) -> RelaxedState:
        M = p.K.shape[-1]
        raw_s = ops.zeros((latents, M)) + math.log(math.expm1(self.initial_s))
        moved = Moved(ops.zeros((latents, M)), raw_s)
        B = ops.broadcast_to(FIRST_FACTOR * ops.eye(M), (latents, M, M))
        start = RelaxedState(moved, adam_start(ops, moved), B, ops.zeros(()))
        return self.with_inverse(ops, p, start)

    def with_inverse(
        self, ops: Ops, blocks: RelaxedPrior | RelaxedFactor, state: RelaxedState
    ) -> RelaxedState:
        """Return the state whose T is K̃⁻¹ at these blocks, within the tolerance."""
        K_s = _plus_diagonal(ops, blocks.K, ops.softplus(state.moved.raw_s))
        if self.inverse == "cholesky":
            return state._replace(B=cholesky_of_inverse(ops, K_s))
        M = K_s.shape[-1]
        eye = ops.eye(M)

        def product(B: Array) -> Array:
            return ops.matrix_transpose(B) @ (K_s @ B)

        def unfinished(carry: tuple[Array, Array, Array]) -> Array:
            _, G, rounds = carry
            # the largest of the latents'; a NaN ends the loop
            gap = ops.max(ops.sum((G - eye) * (G - eye), axis=(-2, -1)), axis=0)
            return (gap > M * self.tolerance**2) & (rounds < self.most_rounds)

        def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            B, G, rounds = carry
            if self.scaled:
                B, G = scaled_down(ops, B, G)
            B = B - self.rate_on_factor(ops, rounds) * (B @ half_lower(ops, G))
            return B, product(B), rounds + 1.0

        start = (state.B, product(state.B), 0.0 * state.rounds)
        B, _, rounds = ops.while_loop(unfinished, step, start)
        return state._replace(B=B, rounds=state.rounds + rounds)

    def invariant(
        self, ops: Ops, p: RelaxedPrior, likelihood: Conditional, state: RelaxedState
    ) -> RelaxedState:
        """Return the state with T found at the θ from which the M-step starts, where it takes its slope."""
        return self.with_inverse(ops, p, state)

    def rate_on_factor(self, ops: Ops, rounds: Float[Array, ""]) -> Float[Array, ""]:
        """Return the rate of a step on B after `rounds` of them in this E-step."""
        if self.schedule == "constant":
            return 0.0 * rounds + 1.0
        left = ops.maximum(1.0 - rounds / (RISING - 1.0), 0.0)
        return ops.exp(math.log(FIRST_RATE) * left)

    def e_step(
        self, ops: Ops, f: RelaxedFactor, data: DataTerm, state: RelaxedState, rate: Array
    ) -> RelaxedState:
        """Find T at the current θ and s, then move the mean's parameters and s by Adam at this T."""
        state = self.with_inverse(ops, f, state)
        slope = self.gradients(ops, f, data, state)
        moved, adam = adam_ascent(ops, state.adam, state.moved, slope, rate)
        return state._replace(moved=moved, adam=adam)

    def gradients(self, ops: Ops, f: RelaxedFactor, data: DataTerm, state: RelaxedState) -> Moved:
        """Compute the bound's gradient in a and softplus⁻¹ s at fixed T, in closed form.

        With g = sK_f α − Kμ, the gradient in μ: ∂_a = (2T − TK̃T)g. With t = Tk of a row and K̃ = K + diag(s):
        2∂_s = 1/s − diag(T + TKT) − Σ sβ t∘t − 2(Ta)∘(Tg), the last where μ depends on s.
        """
        q = self.factorise(ops, f, state)
        alpha, beta = data.likelihood.gradients(ops, data.y, *self.marginals(ops, f, q))
        g = data.scale * matvec(f.K_f, alpha) - matvec(f.K, q.mu)
        Bt = ops.matrix_transpose(q.B)
        T, t = q.B @ Bt, q.B @ (Bt @ f.K_f)
        of_s = (
            1.0 / q.s
            - ops.diagonal(T)
            - ops.sum((T @ f.K) * T, axis=-1)
            - matvec(t * t, data.scale * beta)
        )
        if self.precondition:
            of_s = of_s - 2.0 * matvec(T, state.moved.a) * matvec(T, g)
            g = _near_inverse(ops, q.B, q.K_s, g)
        # softplus has slope 1 − exp(−s)
        return Moved(g, 0.5 * of_s * (1.0 - ops.exp(-q.s)))

    def factorise(
        self, ops: Ops, blocks: RelaxedPrior | RelaxedFactor, state: RelaxedState
    ) -> FactorisedRelaxed:
        """Compute s, K̃ and μ. Nothing is factorised."""
        s = ops.softplus(state.moved.raw_s)
        K_s = _plus_diagonal(ops, blocks.K, s)
        a = state.moved.a
        mu = _near_inverse(ops, state.B, K_s, a) if self.precondition else a
        return FactorisedRelaxed(mu, s, state.B, K_s)

    def marginals(self, ops: Ops, f: RelaxedFactor, q: FactorisedRelaxed) -> tuple[Array, Array]:
        """Compute kᵀμ and κ − kᵀ(2T − TK̃T)k."""
        t = q.B @ (ops.matrix_transpose(q.B) @ f.K_f)  # [P, M, b]
        return vecmat(q.mu, f.K_f), f.kff + ops.sum(t * (q.K_s @ t - 2.0 * f.K_f), axis=-2)

    def kl(self, ops: Ops, f: RelaxedFactor, q: FactorisedRelaxed) -> Array:
        """Compute ½(μᵀKμ − tr((2T − TK̃T)K) + tr(K̃T) − M − log|T| − log|diag s|).

        It is at least the divergence of q from the prior, and equal to it at T = K̃⁻¹.
        """
        T = q.B @ ops.matrix_transpose(q.B)
        TK, TK_s = T @ f.K, T @ q.K_s
        M = TK.shape[-1]
        terms = (
            ops.sum(q.mu * matvec(f.K, q.mu), axis=-1)
            + ops.sum(ops.matrix_transpose(TK_s) * TK, axis=(-2, -1))
            - 2.0 * ops.sum(ops.diagonal(TK), axis=-1)
            + ops.sum(ops.diagonal(TK_s), axis=-1)
            - M
            - log_determinant(ops, q.B)
            - ops.sum(ops.log(q.s), axis=-1)
        )
        return 0.5 * ops.sum(terms)

    def posterior(
        self, ops: Ops, blocks: RelaxedPrior | RelaxedFactor, q: FactorisedRelaxed
    ) -> tuple[Array, Array]:
        """Return Kμ and K − K(2T − TK̃T)K."""
        TK = q.B @ (ops.matrix_transpose(q.B) @ blocks.K)
        covariance = blocks.K - ops.matrix_transpose(TK) @ (2.0 * blocks.K - q.K_s @ TK)
        return matvec(blocks.K, q.mu), covariance

    def mean_terms(
        self, ops: Ops, inducing: Tree, p: RelaxedPrior, q: FactorisedRelaxed
    ) -> tuple[MeanTerm, ...]:
        return (MeanTerm(inducing, q.mu),)


def half_lower(ops: Ops, G: Float[Array, "P M M"]) -> Float[Array, "P M M"]:
    """Return Φ: the lower triangle of G − I with half its diagonal, for which Φ + Φᵀ = G − I."""
    eye = ops.eye(G.shape[-1])
    return ops.tril(G) - 0.5 * (G * eye + eye)


def scaled_down(
    ops: Ops, B: Float[Array, "P M M"], G: Float[Array, "P M M"]
) -> tuple[Float[Array, "P M M"], Float[Array, "P M M"]]:
    """Return B and BᵀK̃B with eigenvalues of at most 1 where a row of G sums to more than 2.

    The largest sum of absolute values of a row is at least the largest eigenvalue, and takes no product.
    """
    largest = ops.max(ops.sum(ops.abs(G), axis=-1), axis=-1)[..., None, None]
    size = ops.where(largest > 2.0, largest, 0.0 * largest + 1.0)
    return B / ops.sqrt(size), G / size


def _plus_diagonal(
    ops: Ops, K: Float[Array, "Q M M"], s: Float[Array, "P M"]
) -> Float[Array, "P M M"]:
    return K + s[..., None] * ops.eye(K.shape[-1])


def _near_inverse(
    ops: Ops, B: Float[Array, "P M M"], K_s: Float[Array, "P M M"], x: Float[Array, "P M"]
) -> Float[Array, "P M"]:
    """Return (2T − TK̃T)x, a step of iterative refinement from Tx."""

    def times_t(x: Array) -> Array:
        return matvec(B, matvec(ops.matrix_transpose(B), x))

    first = times_t(x)
    return first + times_t(x - matvec(K_s, first))
