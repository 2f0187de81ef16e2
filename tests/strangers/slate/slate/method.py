"""The method `mean-field`: whitened inducing variables that are independent of one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from svgpbench.methods.method import CoupledMethod, MethodInfo
from svgpbench.numerics.gaussian import matvec, vecmat


class Independent(NamedTuple):
    """q(v) = N(c, diag(1/d)), u = Lv."""

    c: Any  # [P, M]
    d: Any  # [P, M]


@dataclass(frozen=True)
class MeanField(CoupledMethod):
    """q(u) = N(Lc, L diag(1/d) Lᵀ), by natural-gradient steps in closed form."""

    name: ClassVar[str] = "mean-field"
    version: ClassVar[int] = 1
    info: ClassVar[MethodInfo] = MethodInfo(
        aliases={}, parameters="2M", e_step="O(bM)", memory="O(bM + M²)", variants={"": {}}
    )

    def refuses(self, likelihood: Any) -> str:
        return "" if likelihood.log_concave else "its precisions need a log-concave likelihood"

    def initial_state(self, ops: Any, p: Any, latents: int, n: int) -> Any:
        zeros = ops.zeros((latents, p.L.shape[-1]))
        return Independent(zeros, zeros + 1.0)

    def e_step(self, ops: Any, f: Any, data: Any, state: Any, rate: Any) -> Any:
        mu, v = self.marginals(ops, f, state)
        alpha, beta = data.likelihood.gradients(ops, data.y, mu, v)
        slope = data.scale * matvec(f.W, alpha)
        curvature = data.scale * matvec(f.W * f.W, beta)
        linear = state.d * state.c + rate * (slope + (curvature - state.d) * state.c)
        d = (1.0 - rate) * state.d + rate * (1.0 + curvature)
        return Independent(linear / d, d)

    def factorise(self, ops: Any, blocks: Any, state: Any) -> Any:
        return state

    def marginals(self, ops: Any, f: Any, q: Any) -> Any:
        return vecmat(q.c, f.W), f.kff + vecmat(1.0 / q.d - 1.0, f.W * f.W)

    def kl(self, ops: Any, f: Any, q: Any) -> Any:
        return 0.5 * ops.sum(1.0 / q.d + q.c * q.c - 1.0 + ops.log(q.d))

    def posterior(self, ops: Any, blocks: Any, q: Any) -> Any:
        scaled = blocks.L / q.d[..., None, :]
        return matvec(blocks.L, q.c), scaled @ ops.matrix_transpose(blocks.L)
