"""SGPR: Titsias's collapsed bound (2009; also VFE, VSGPR), a function of θ alone.

With Gaussian noise the optimal q(u) is known, so only θ is learned. The bound depends on the data through
a few sums, which add up over batches. With B = I + WWᵀ/σ² and c = Wy/σ², where W = L⁻¹K_uf, it is
−½n log 2πσ² − ½log|B| − ½(yᵀy/σ² − cᵀB⁻¹c) − (Σκ − ‖W‖²_F)/(2σ²). With one residual
variance v_i per datum (Titsias 2025) the last term is −½Σ log(1 + d_i/σ²). This is also a sum over rows,
but each of its terms depends on both θ and σ².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.likelihoods import Conditional, GaussianLikelihood, Likelihood
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.dual import DualPosterior, factorised
from svgpbench.methods.method import MethodInfo
from svgpbench.methods.residual_variance import residual_variance
from svgpbench.methods.tying import DualState
from svgpbench.numerics.gaussian import LOG_2PI, Factor, Prior, log_determinant, matvec
from svgpbench.ops import Array, Ops


def gaussian_noise_only(likelihood: Likelihood) -> str:
    """Return the reason why a method for Gaussian noise refuses a likelihood; empty if it is Gaussian."""
    return "" if isinstance(likelihood, GaussianLikelihood) else "it has Gaussian noise only"


class Sums(NamedTuple):
    """Sums over rows through which the bound depends on the data, whitened; batches add up."""

    WW: Float[Array, "Q M M"]  # Σ w_i w_iᵀ with w_i = L⁻¹k_i
    Wy: Float[Array, "Q M"]  # Σ w_i y_i
    kff: Float[Array, "Q"]  # Σ κ_i
    yy: Float[Array, ""]  # Σ y_i²
    count: Float[Array, ""]  # n
    gain: Float[Array, ""]  # what residual variances v_i add to the bound; 0 without them


@dataclass(frozen=True)
class SGPR(DualPosterior):
    """Sparse regression by Titsias's collapsed bound, with the best q(u) at every θ; Gaussian noise only.

    The state is that q(u) in t-SVGP's parameters, which predict. Option: `residual_variance`, of which
    bound (see `residual_variance.py`), with its best v.
    """

    name: ClassVar[str] = "sgpr"
    version: ClassVar[int] = 1
    collapsed: ClassVar[bool] = True
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={
            "kobe2021": "VFE",
            "cheng2017": "VSGPR",
            "titsias2025": "residual_variance = scalar, diagonal (with Bui et al. 2025)",
        },
        variants={
            "": {},
            "scalar": {"residual_variance": "scalar"},
            "diagonal": {"residual_variance": "diagonal"},
        },
        parameters="none",
        e_step="O(nM² + M³)",
        memory="O(nM + M²); by L-BFGS O(bM + M²)",
    )

    def refuses(self, likelihood: Likelihood) -> str:
        return gaussian_noise_only(likelihood)

    def initial_state(self, ops: Ops, p: Prior, latents: int, n: int) -> DualState:
        M = p.L.shape[-1]
        return DualState(ops.zeros((latents, M)), ops.zeros((latents, M, M)), (), ops.zeros(()))

    def sums(self, ops: Ops, f: Factor, likelihood: Conditional, y: Float[Array, "b"]) -> Sums:
        """Return the sums over the rows of a batch, with y less the prior mean."""
        y = likelihood.residual(y)
        row_gain = self.residual.row_gain
        gain = ops.zeros(())
        if row_gain is not None:
            gain = row_gain(ops, likelihood.site_precision(ops) * residual_variance(ops, f))
        return Sums(
            f.W @ ops.matrix_transpose(f.W),
            matvec(f.W, y[None, ...]),
            ops.sum(f.kff, axis=-1),
            ops.sum(y * y),
            ops.zeros(()) + float(y.shape[-1]),
            gain,
        )

    def best_state(self, ops: Ops, likelihood: Conditional, sums: Sums) -> DualState:
        """Return the optimal q(u) (Titsias 2009, Eq. 10), as (c, B − I)."""
        precision = likelihood.site_precision(ops)
        # Gaussian sites: λ₁ᵢ = y_i/σ² and βᵢ = 1/σ² at every q, so that c = Wy/σ² and C = WWᵀ/σ²
        return DualState(sums.Wy * precision, sums.WW * precision, (), ops.zeros(()))

    def collapsed_bound(self, ops: Ops, likelihood: Conditional, sums: Sums) -> Float[Array, ""]:
        """Return the bound from the sums over all data (Titsias 2009, Eq. 9)."""
        precision = likelihood.site_precision(ops)
        q = factorised(ops, self.best_state(ops, likelihood, sums))
        # tr(K_ff − Q_ff) = Σκ_i − tr WWᵀ: the trace term needs no sums of its own
        residual = ops.sum(sums.kff) - ops.sum(ops.diagonal(sums.WW))
        bound = -0.5 * (
            sums.count * (LOG_2PI - ops.log(precision))
            + ops.sum(log_determinant(ops, q.L_B))
            + precision * sums.yy
            - ops.sum(q.c_half * q.c_half)
            + precision * residual
        )
        if self.residual.mean_gain is not None:
            # ½n[x − log(1 + x)] of the mean x over all data: a function of the sums, not itself a
            # sum over rows
            mean = precision * residual / sums.count
            return bound + sums.count * self.residual.mean_gain(ops, mean)
        return bound + sums.gain

    def upper_bound(self, ops: Ops, likelihood: Conditional, sums: Sums) -> Float[Array, ""]:
        """Return an upper bound on log p(y) from the sums over all data (Titsias 2014).

        It is ½n log σ⁻² − ½log|B| as in the bound, with −½yᵀ(Q + (σ² + t)I)⁻¹y, where t = tr(K − Q) is no
        less than the largest eigenvalue of K − Q.
        """
        precision = likelihood.site_precision(ops)
        residual = ops.sum(sums.kff) - ops.sum(ops.diagonal(sums.WW))
        # 1/(σ² + t); Q ⪯ K bounds the determinant, and K ⪯ Q + tI bounds the quadratic form
        wide = precision / (1.0 + precision * residual)
        q = factorised(ops, self.best_state(ops, likelihood, sums))
        wide_q = factorised(ops, DualState(sums.Wy * wide, sums.WW * wide, (), ops.zeros(())))
        return -0.5 * (
            sums.count * (LOG_2PI - ops.log(precision))
            + ops.sum(log_determinant(ops, q.L_B))
            + wide * sums.yy
            - ops.sum(wide_q.c_half * wide_q.c_half)
        )

    def e_step(
        self, ops: Ops, f: Factor, data: DataTerm, state: DualState, rate: Array
    ) -> DualState:
        """Return the optimal q(u) at θ; state and rate are ignored."""
        return self.best_state(ops, data.likelihood, self.sums(ops, f, data.likelihood, data.y))

    def bound(self, ops: Ops, f: Factor, data: DataTerm, state: DualState) -> Array:
        sums = self.sums(ops, f, data.likelihood, data.y)
        return self.collapsed_bound(ops, data.likelihood, sums)
