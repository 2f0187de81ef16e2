"""A likelihood by quadrature, as docs/add-a-likelihood.md has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from svgpbench.likelihoods.quadrature import QuadratureLikelihood


@dataclass(frozen=True)
class Logistic(QuadratureLikelihood):
    """y = f + logistic noise."""

    rate: float = 2.0
    name: ClassVar[str] = "logistic"
    task: ClassVar[str] = "regression"
    support: ClassVar[str] = "real"

    def log_density(self, ops: Any, p: Any, y: Any, f: Any) -> Any:
        z = self.rate * (y - f)
        value = ops.log(self.rate + 0.0 * z) - z - 2.0 * ops.softplus(-z)
        return value, self.rate * (1.0 - 2.0 * ops.exp(-ops.softplus(z)))

    def predict(self, ops: Any, p: Any, mu: Any, v: Any) -> Any:
        return mu[0, ...]
