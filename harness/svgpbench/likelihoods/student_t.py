"""Student-t noise: regression that is robust to outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from jaxtyping import Float
from pydantic import Field

from svgpbench.config import Positive
from svgpbench.errors import UserError
from svgpbench.likelihoods.likelihood import Support
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.ops import Array, Ops, Tree


class StudentTParameters(NamedTuple):
    """Parameters of Student-t noise."""

    scale: Float[Array, ""] | float


@dataclass(frozen=True)
class StudentT(QuadratureLikelihood):
    """y = f + scale · t_df; the scale is learned, the degrees of freedom `df` are constant.

    Not log-concave: beyond |y − f| = scale · √df the log density curves upwards, so β may be negative.
    """

    scale: Positive = 1.0
    df: Annotated[float, Field(gt=1)] = 3.0
    name: ClassVar[str] = "student-t"
    task: ClassVar[Literal["regression", "classification"]] = "regression"
    support: ClassVar[Support] = "real"
    mean_is_f: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.df > 1.0:
            raise UserError(f"likelihood 'student-t' has no mean with df {self.df}; give df > 1")

    @property
    def log_concave(self) -> bool:
        return False

    def initial_parameters(self) -> Tree:
        return StudentTParameters(self.scale)

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        half = 0.5 * (self.df + 1.0)
        constant = math.lgamma(half) - math.lgamma(0.5 * self.df)
        constant -= 0.5 * math.log(math.pi * self.df)
        spread = self.df * p.scale * p.scale
        error = y - f
        square = error * error
        value = constant - ops.log(p.scale) - half * ops.log1p(square / spread)
        return value, 2.0 * half * error / (spread + square)

    def bend(self, ops: Ops, p: Tree, y: Array) -> tuple[Array, Array]:
        return y, 0.0 * y + math.sqrt(self.df) * p.scale

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return mu[0, ...]

    def predictive_sd(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        if self.df <= 2.0:
            return 0.0 * v[0, ...] + math.inf
        return ops.sqrt(v[0, ...] + p.scale * p.scale * (self.df / (self.df - 2.0)))
