"""Stationary kernels: squared exponential and Matérn, isotropic or with one lengthscale per dimension."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float

from svgpbench.config import KernelConfig
from svgpbench.errors import UserError
from svgpbench.kernels.bases import Features, centres, common_centre
from svgpbench.kernels.inducing_functions import function_with_function, function_with_point
from svgpbench.ops import Array, Ops, Tree
from svgpbench.options import with_options
from svgpbench.plugins import KERNELS, load, load_all


class KernelParameters(NamedTuple):
    """Hyperparameters of a stationary kernel, one row per kernel; Q is 1 if all latents share it."""

    variance: Float[Array, "Q"]
    lengthscales: Float[Array, "Q #D"]  # [Q, 1] for an isotropic kernel


def squared_distance(
    ops: Ops, a: Float[Array, "Q n D"], b: Float[Array, "Q m D"]
) -> Float[Array, "Q n m"]:
    """Compute ‖a_i − b_j‖², never below 0. Inputs far from 0 lose digits: see `common_centre`.

    It is one matrix product of (−2a, aᵀa, 1) and (b, 1, bᵀb), which adds no other pass over n × m numbers.
    """
    aa, bb = (ops.sum(x * x, axis=-1, keepdims=True) for x in (a, b))
    rows = ops.concat([-2.0 * a, aa, 0.0 * aa + 1.0], axis=-1)
    columns = ops.concat([b, 0.0 * bb + 1.0, bb], axis=-1)
    # rounding may leave −1e-16 where points coincide, and the Matérn kernels take its root: NaN
    return ops.maximum(rows @ ops.matrix_transpose(columns), 0.0)


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel k(x, x') = variance · shape(‖(x − x')/lengthscales‖²)."""

    name: ClassVar[str]
    has_features: ClassVar[bool] = False  # True if it has the covariances of `Features`

    @abstractmethod
    def shape(self, ops: Ops, d2: Float[Array, "Q n m"]) -> Float[Array, "Q n m"]:
        """Return the correlation at squared scaled distance d2."""

    def shape_and_slope(
        self, ops: Ops, d2: Float[Array, "Q n m"]
    ) -> tuple[Float[Array, "Q n m"], Float[Array, "Q n m"]]:
        """Return the correlation and its derivative in d2; by autodiff unless a kernel overrides this."""
        _, slope = ops.value_and_grad(lambda d: ops.sum(self.shape(ops, d)))(d2)
        return self.shape(ops, d2), slope

    def cross(self, ops: Ops, p: KernelParameters, A: Tree, B: Tree) -> Float[Array, "Q n m"]:
        """Return the covariances of A and B, each of them inputs [n, D] or `Features`.

        Raises `UserError` for `Features` if the kernel does not support them.
        """
        if isinstance(A, Features) or isinstance(B, Features):
            return p.variance[:, None, None] * self.correlation(ops, p, A, B)
        scale = p.lengthscales[:, None, :]
        centre = common_centre(ops, A)  # subtracted first, because quotients are rounded
        a, b = ((x - centre)[None, ...] / scale for x in (A, B))
        d2 = squared_distance(ops, a, b)
        return p.variance[:, None, None] * self.shape(ops, d2)

    def correlation(self, ops: Ops, p: KernelParameters, A: Tree, B: Tree) -> Float[Array, "Q n m"]:
        """Return the correlations if A or B are `Features`; raise `UserError` if not supported."""
        raise self.no_features()

    def diagonal(self, ops: Ops, p: KernelParameters, A: Tree) -> Float[Array, "Q n"]:
        """Return the variances at A [n, D]; raise `UserError` as `cross` does."""
        if isinstance(A, Features) and not self.has_features:
            raise self.no_features()
        # an inducing function is scaled to the variance of a point
        return ops.broadcast_to(p.variance[:, None], (p.variance.shape[0], centres(A).shape[0]))

    def no_features(self) -> UserError:
        """Return the error for inducing functions that the kernel does not support."""
        names = ", ".join(repr(k.name) for k in kernels().values() if k.has_features)
        return UserError(
            f"kernel {self.name!r} has no inducing functions; use kernel {names}, "
            'or inducing.functions = "points"'
        )


@dataclass(frozen=True)
class SquaredExponential(Kernel):
    """exp(−d²/2)."""

    name: ClassVar[str] = "se"
    has_features: ClassVar[bool] = True

    def shape(self, ops: Ops, d2: Array) -> Array:
        return ops.exp(-0.5 * d2)

    def shape_and_slope(self, ops: Ops, d2: Array) -> tuple[Array, Array]:
        shape = self.shape(ops, d2)
        return shape, -0.5 * shape

    def correlation(self, ops: Ops, p: KernelParameters, A: Tree, B: Tree) -> Array:
        l2 = p.lengthscales * p.lengthscales
        if isinstance(A, Features) and isinstance(B, Features):
            return function_with_function(ops, l2, A, B)
        if isinstance(A, Features):
            return function_with_point(ops, l2, A, B)
        return ops.matrix_transpose(function_with_point(ops, l2, B, A))


# r = 1e-18 is below half a unit in the last place of 1, so no correlation changes; 1e-36 is a
# normal number in float32 too
SMALLEST_SQUARED_DISTANCE = 1e-36
"""Floor under a square root, whose slope is infinite at 0: autodiff would turn it into NaN."""


@dataclass(frozen=True)
class Matern32(Kernel):
    """(1 + r) e⁻ʳ, r = √3 d."""

    name: ClassVar[str] = "matern32"

    def shape(self, ops: Ops, d2: Array) -> Array:
        r = ops.sqrt(ops.maximum(3.0 * d2, SMALLEST_SQUARED_DISTANCE))
        return (1.0 + r) * ops.exp(-r)

    def shape_and_slope(self, ops: Ops, d2: Array) -> tuple[Array, Array]:
        """Return the correlation and its slope −(3/2) e⁻ʳ, which is finite where points coincide."""
        # d(1 + r)e⁻ʳ/dr = −re⁻ʳ and dr/dd² = 3/(2r): r cancels, so the root needs no floor here
        r = ops.sqrt(3.0 * d2)
        decay = ops.exp(-r)
        return (1.0 + r) * decay, -1.5 * decay


@dataclass(frozen=True)
class Matern52(Kernel):
    """(1 + r + r²/3) e⁻ʳ, r = √5 d."""

    name: ClassVar[str] = "matern52"

    def shape(self, ops: Ops, d2: Array) -> Array:
        r = ops.sqrt(ops.maximum(5.0 * d2, SMALLEST_SQUARED_DISTANCE))
        return (1.0 + r + r * r / 3.0) * ops.exp(-r)

    def shape_and_slope(self, ops: Ops, d2: Array) -> tuple[Array, Array]:
        """Return the correlation and its slope −(5/6)(1 + r) e⁻ʳ."""
        # the slope in r is −(r/3)(1 + r)e⁻ʳ and dr/dd² = 5/(2r): r cancels here too
        r = ops.sqrt(5.0 * d2)
        decay, linear = ops.exp(-r), 1.0 + r
        return (linear + (5.0 / 3.0) * d2) * decay, (-5.0 / 6.0) * (linear * decay)


def kernels() -> dict[str, type[Kernel]]:
    """Return every kernel that is installed and can be loaded, by name."""
    return load_all(KERNELS)


def kernel(name: str, options: Mapping[str, Any] | None = None) -> Kernel:
    """Return a kernel by name; options that are left out have the kernel's defaults.

    Raises `UserError` for an unknown kernel and for an option that it does not have.
    """
    cls: type[Kernel] = load(KERNELS, name)
    return with_options(cls, f"kernel {name!r}", options or {}, KernelConfig.model_fields)


def lengthscale_count(ard: bool, dimensions: int) -> int:
    """Return the number of columns of `KernelParameters.lengthscales`."""
    return dimensions if ard else 1
