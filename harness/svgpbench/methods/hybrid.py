"""HYBRID: ORTH without the projection, m(x) = k_xγa + k_xβK_β⁻¹m_β.

Cheng and Boots 2017, App.; Salimbeni et al. 2018b, Eq. 11. It is ORTH at the mean m_β + K_βγa, so the two
have the same optimum. But here the two parts are coupled through the prior, by aᵀK_γβK_β⁻¹m_β. The coupled
method gets this term as one more linear term of the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from svgpbench.methods.data_term import DataTerm, tilted
from svgpbench.methods.gamma_steps import (
    Factorised,
    TwoPartBlocks,
    TwoPartFactor,
    TwoPartPrior,
    explained,
)
from svgpbench.methods.method import MethodInfo
from svgpbench.methods.orthogonal import OrthogonalSVGP
from svgpbench.numerics.gaussian import Factor, matvec, vecmat
from svgpbench.ops import Array, Ops


@dataclass(frozen=True)
class HybridSVGP(OrthogonalSVGP):
    """A coupled method on β and a part of the mean on γ, not orthogonal to it.

    The options are those of `orth`; γ-steps are adam and newton.
    """

    name: ClassVar[str] = "hybrid"
    version: ClassVar[int] = 1
    gamma_steps: ClassVar[tuple[str, ...]] = ("adam", "newton")
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={
            "salimbeni2018": "HYBRID",
            "cheng2017": "hybrid (App.)",
            "titsias2025": "residual_variance = scalar, diagonal (with Bui et al. 2025)",
        },
        parameters="M_γ + M_β + M_β(M_β+1)/2",
        e_step="O((b + M_β + r)M_γ + bM_β² + M_β³), r = subset or M_γ; newton: M_γ³ more",
        memory="O((b + M_β + r)M_γ + M_β²)",
        variants={
            "adam": {},
            "adam subset": {"subset": 5},
            "natgrad newton": {"coupled": "q-svgp natgrad", "gamma_step": "newton"},
            "natgrad newton scalar": {
                "coupled": "q-svgp natgrad",
                "gamma_step": "newton",
                "residual_variance": "scalar",
            },
        },
    )

    @property
    def has_adjoint(self) -> bool:
        return False

    def _residue(self, ops: Ops, K: Array, V: Array, W: Array) -> Array:
        return K

    def posterior(self, ops: Ops, blocks: TwoPartBlocks, q: Factorised) -> tuple[Array, Array]:
        """Return m_β + K_βγa and S, the mean and covariance of q at β."""
        mean, covariance = super().posterior(ops, blocks, q)
        return mean + matvec(blocks.coupled.L, q.explained), covariance

    def _mean(self, f: TwoPartFactor, a: Array, at_beta: Array) -> Array:
        return vecmat(a, f.K_gx)

    def _mean_at_beta(self, ops: Ops, p: TwoPartPrior, q: Factorised) -> Array:
        return self.part.whitened_mean(ops, p.coupled, q.coupled)

    def _cross_term(self, ops: Ops, f: TwoPartFactor, q: Factorised) -> Array:
        """Compute 2aᵀK_γβK_β⁻¹m_β."""
        return 2.0 * ops.sum(q.explained * self.part.whitened_mean(ops, f.coupled, q.coupled))

    def _through_beta(self, ops: Ops, f: TwoPartFactor, q: Factorised, alpha: Array) -> Array:
        """Return L⁻¹m_β, because ∂_a contains −K_γβK_β⁻¹m_β."""
        return self.part.whitened_mean(ops, f.coupled, q.coupled)

    def coupled_inputs(
        self, ops: Ops, f: TwoPartFactor, data: DataTerm, a: Array
    ) -> tuple[Factor, DataTerm]:
        coupled, term = super().coupled_inputs(ops, f, data, a)
        # the data term is multiplied by s = n/b, and this term belongs to the prior: without 1/s it
        # would count n/b times
        return tilted(ops, coupled, term, -explained(ops, f, a) / data.scale)
