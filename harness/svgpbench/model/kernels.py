"""Stationary kernels: squared exponential and Matérn, isotropic or with a lengthscale a dimension."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from svgpbench.config import KernelConfig
from svgpbench.errors import UserError
from svgpbench.model.bases import Features, centres
from svgpbench.model.inducing_functions import function_with_function, function_with_point
from svgpbench.ops import Array, Ops, Tree
from svgpbench.options import with_options
from svgpbench.plugins import KERNELS, load, whole


class KernelParameters(NamedTuple):
    """Hyperparameters of a stationary kernel, one row a kernel: Q is 1 when all latents share it."""

    variance: Array  # [Q]
    lengthscales: Array  # [Q, D], or [Q, 1] for an isotropic kernel


def squared_distance(ops: Ops, a: Array, b: Array) -> Array:
    """‖a_i − b_j‖² [Q, n, m] of a [Q, n, D] and b [Q, m, D] by one matrix product, never below 0."""
    aa = ops.sum(a * a, axis=-1)[..., :, None]
    bb = ops.sum(b * b, axis=-1)[..., None, :]
    return ops.maximum(aa + bb - 2.0 * (a @ ops.matrix_transpose(b)), 0.0)


@dataclass(frozen=True)
class Kernel(ABC):
    """k(x, x') = variance · shape(‖(x − x')/lengthscales‖²)."""

    name: ClassVar[str]
    has_features: ClassVar[bool] = False  # whether it knows the covariances of `Features`

    @abstractmethod
    def shape(self, ops: Ops, d2: Array) -> Array:
        """Correlation at squared scaled distance d2."""

    def cross(self, ops: Ops, p: KernelParameters, A: Tree, B: Tree) -> Array:
        """Covariances [Q, n, m] of A [n, D] and B [m, D].

        Raises `UserError` for `Features` where the kernel does not know their covariances.
        """
        if isinstance(A, Features) or isinstance(B, Features):
            raise self.no_features()
        scale = p.lengthscales[:, None, :]
        d2 = squared_distance(ops, A[None] / scale, B[None] / scale)
        return p.variance[:, None, None] * self.shape(ops, d2)

    def diagonal(self, ops: Ops, p: KernelParameters, A: Tree) -> Array:
        """Variances [Q, n] at A [n, D]; raises `UserError` as `cross` does."""
        if isinstance(A, Features) and not self.has_features:
            raise self.no_features()
        # an inducing function is scaled to the variance of a point
        return ops.broadcast_to(p.variance[:, None], (p.variance.shape[0], centres(A).shape[0]))

    def no_features(self) -> UserError:
        """The error for inducing functions that the kernel does not know."""
        known = ", ".join(repr(k.name) for k in kernels().values() if k.has_features)
        return UserError(
            f"kernel {self.name!r} has no inducing functions; use kernel {known}, "
            'or inducing.functions = "points"'
        )


@dataclass(frozen=True)
class SquaredExponential(Kernel):
    """exp(−d²/2)."""

    name: ClassVar[str] = "se"
    has_features: ClassVar[bool] = True

    def shape(self, ops: Ops, d2: Array) -> Array:
        return ops.exp(-0.5 * d2)

    def cross(self, ops: Ops, p: KernelParameters, A: Tree, B: Tree) -> Array:
        """Covariances [Q, n, m] of A and B, each of them inputs [n, D] or `Features`."""
        if not isinstance(A, Features) and not isinstance(B, Features):
            return super().cross(ops, p, A, B)
        l2 = p.lengthscales * p.lengthscales
        if isinstance(A, Features) and isinstance(B, Features):
            correlation = function_with_function(ops, l2, A, B)
        elif isinstance(A, Features):
            correlation = function_with_point(ops, l2, A, B)
        else:
            correlation = ops.matrix_transpose(function_with_point(ops, l2, B, A))
        return p.variance[:, None, None] * correlation


# A naive square root has an infinite slope at coincident points, which autodiff turns into NaN.
SMALLEST_SQUARED_DISTANCE = 1e-36


@dataclass(frozen=True)
class Matern32(Kernel):
    """(1 + r) e⁻ʳ, r = √3 d."""

    name: ClassVar[str] = "matern32"

    def shape(self, ops: Ops, d2: Array) -> Array:
        r = ops.sqrt(ops.maximum(3.0 * d2, SMALLEST_SQUARED_DISTANCE))
        return (1.0 + r) * ops.exp(-r)


@dataclass(frozen=True)
class Matern52(Kernel):
    """(1 + r + r²/3) e⁻ʳ, r = √5 d."""

    name: ClassVar[str] = "matern52"

    def shape(self, ops: Ops, d2: Array) -> Array:
        r = ops.sqrt(ops.maximum(5.0 * d2, SMALLEST_SQUARED_DISTANCE))
        return (1.0 + r + r * r / 3.0) * ops.exp(-r)


def kernels() -> dict[str, type[Kernel]]:
    """Every kernel that is installed and can be loaded, by name."""
    return whole(KERNELS)


def kernel(name: str, options: Mapping[str, Any] | None = None) -> Kernel:
    """A kernel by name, at its own default where an option is left out.

    Raises `UserError` for an unknown one and for an option that it does not have.
    """
    cls: type[Kernel] = load(KERNELS, name)
    return with_options(cls, f"kernel {name!r}", options or {}, KernelConfig.model_fields)


def lengthscale_count(ard: bool, dimensions: int) -> int:
    """Columns of `KernelParameters.lengthscales`."""
    return dimensions if ard else 1
