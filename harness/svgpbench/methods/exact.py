"""Exact GP regression (Rasmussen and Williams 2006, Sec. 2.2 and Alg. 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float

from svgpbench.likelihoods import Likelihood
from svgpbench.methods.collapsed import gaussian_noise_only
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.full import FullFactor, SitePosterior
from svgpbench.methods.method import MethodInfo
from svgpbench.methods.tying import Sites
from svgpbench.numerics.gaussian import LOG_2PI, log_determinant
from svgpbench.ops import Array, Ops


@dataclass(frozen=True)
class GPR(SitePosterior):
    """Exact regression: the log marginal likelihood log N(y | 0, K_ff + σ²I), Gaussian noise only.

    The state is every datum's site, (y/σ², 1/σ²), with which t-VGP's code predicts exactly.
    """

    name: ClassVar[str] = "gpr"
    version: ClassVar[int] = 1
    collapsed: ClassVar[bool] = True
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={"adam2021": "GPR", "cheng2017": "GPR"},
        parameters="none",
        e_step="O(n)",
        memory="O(n²)",
    )

    def refuses(self, likelihood: Likelihood) -> str:
        return gaussian_noise_only(likelihood)

    def e_step(self, ops: Ops, f: FullFactor, data: DataTerm, state: Sites, rate: Array) -> Sites:
        """Return the sites of the likelihood itself; the rate and the values in the state are ignored."""
        anywhere = 0.0 * state.lambda1, 0.0 * state.beta
        alpha, beta = data.likelihood.gradients(ops, data.y, *anywhere)
        return Sites(alpha, beta)  # with Gaussian noise they are the same at every q

    def bound(self, ops: Ops, f: FullFactor, data: DataTerm, state: Sites) -> Float[Array, ""]:
        """Return log N(y | m₀, K_ff + σ²I); y is in the order of the basis."""
        y = data.likelihood.residual(data.y)
        n = y.shape[-1]
        chol = ops.cholesky(f.Kff + ops.eye(n) / data.likelihood.site_precision(ops))
        half = ops.solve_triangular(chol, y[None, :, None])
        return -0.5 * (ops.sum(half * half) + ops.sum(log_determinant(ops, chol)) + n * LOG_2PI)
