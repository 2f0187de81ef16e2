"""Gradients in θ and the bases, from gradients in blocks of the Gram matrix.

A method only provides a scalar's gradient K̄ in a block K = k(A, B); the kernel does the rest. For a
stationary kernel, one evaluation of shape and slope gives K and K̄∘∂k/∂d². The gradients in inputs and
lengthscales are thin products with these, so autodiff sees no n × m array. Inducing functions, and kernels
with their own `cross`, use autodiff.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jaxtyping import Float

from svgpbench.kernels.bases import Features, common_centre
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.kernels import Kernel, KernelParameters, squared_distance
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map


class BlockGradient(NamedTuple):
    """The gradient in the arguments of a block of the Gram matrix."""

    parameters: Any  # KernelParameters, or a compound's tuple of them
    basis: Tree  # structured as the block's first argument


class Shapes(NamedTuple):
    """A stationary block and the arrays that its gradient needs."""

    K: Float[Array, "Q n m"]
    a: Float[Array, "Q n D"]  # A less a centre common with B, in units of the lengthscales
    b: Float[Array, "Q m D"]
    shape: Float[Array, "Q n m"]  # correlations
    slope: Float[Array, "Q n m"]  # their derivatives in d²


@dataclass(frozen=True)
class DifferentiableCovariance(Covariance):
    """The kernel at one θ, with gradients of its blocks.

    A block that was computed is cached with its slopes, so that its gradient computes nothing twice.
    """

    cached: list[tuple[Array, Array, Shapes]] = field(default_factory=list, compare=False)

    def cross(self, A: Tree, B: Tree) -> Float[Array, "Q n m"]:
        """Return the covariances of A and B."""
        if not self._stationary(A, B):
            return super().cross(A, B)
        shapes = self._cached_shapes(A, B)
        if shapes is None:
            shapes = self._shapes(A, B)
            # the list keeps A and B alive, so that `is` cannot meet a later array in their place
            self.cached.append((A, B, shapes))
        return shapes.K

    def pull_cross(self, A: Tree, B: Tree, bar: Float[Array, "Q n m"]) -> BlockGradient:
        """Return the gradient of ⟨bar, k(A, B)⟩ in the parameters and in A; B is held."""
        if self._stationary(A, B):
            return self._pull_stationary(A, B, bar)

        def inner_product(block: BlockGradient) -> Array:
            return self.ops.sum(bar * self.kernel.cross(self.ops, block.parameters, block.basis, B))

        return self._by_autodiff(inner_product, A)

    def pull_square(self, A: Tree, bar: Float[Array, "Q n n"]) -> BlockGradient:
        """Return the gradient of ⟨bar, k(A, A)⟩ for a symmetric bar."""
        if self._stationary(A, A):
            gradient = self._pull_stationary(A, A, bar)
            return gradient._replace(basis=2.0 * gradient.basis)  # A enters twice

        def inner_product(block: BlockGradient) -> Array:
            K = self.kernel.cross(self.ops, block.parameters, block.basis, block.basis)
            return self.ops.sum(bar * K)

        return self._by_autodiff(inner_product, A)

    def pull_diagonal(self, X: Tree, bar: Float[Array, "Q n"]) -> Any:
        """Return the gradient of ⟨bar, k(x_i, x_i)⟩ in the parameters; X is held."""
        if type(self.kernel).diagonal is Kernel.diagonal:
            zeros = self.ops.zeros(self.parameters.lengthscales.shape)
            return KernelParameters(self.ops.sum(bar, axis=-1), zeros)

        def inner_product(parameters: KernelParameters) -> Array:
            return self.ops.sum(bar * self.kernel.diagonal(self.ops, parameters, X))

        gradient: KernelParameters = self.ops.value_and_grad(inner_product)(self.parameters)[1]
        return gradient

    def _stationary(self, A: Tree, B: Tree) -> bool:
        """Return True if k(A, B) is variance · shape(d²).

        It is not for inducing functions, nor for a kernel with its own `cross`.
        """
        own_cross = type(self.kernel).cross is not Kernel.cross
        return not (own_cross or isinstance(A, Features) or isinstance(B, Features))

    def _cached_shapes(
        self, A: Float[Array, "n D"], B: Float[Array, "m D"], *, forget: bool = False
    ) -> Shapes | None:
        """Return the cached block of these array objects.

        They are compared by `is`: with `id`, torch.compile would compile a program for each value.
        """
        for i, (a, b, shapes) in enumerate(self.cached):
            if a is A and b is B:
                if forget:
                    del self.cached[i]
                return shapes
        return None

    def _shapes(self, A: Float[Array, "n D"], B: Float[Array, "m D"]) -> Shapes:
        scale = self.parameters.lengthscales[:, None, :]
        centre = common_centre(self.ops, A)
        a, b = ((x - centre)[None, ...] / scale for x in (A, B))
        d2 = squared_distance(self.ops, a, b)
        shape, slope = self.kernel.shape_and_slope(self.ops, d2)
        return Shapes(self.parameters.variance[:, None, None] * shape, a, b, shape, slope)

    def _pull_stationary(
        self, A: Float[Array, "n D"], B: Float[Array, "m D"], bar: Float[Array, "Q n m"]
    ) -> BlockGradient:
        """Return the gradient in closed form.

        With G = bar∘∂k/∂d² and a = A/ℓ, Ā = 2 Σ_j G_ij (a_i − b_j)/ℓ and ℓ̄ = −2 Σ_ij G_ij (a_i − b_j)²/ℓ.
        """
        ops, (variance, lengthscales) = self.ops, self.parameters
        # a block is pulled back once: forgetting it frees its n × m arrays, and a second pull
        # computes it again
        _, a, b, shape, slope = self._cached_shapes(A, B, forget=True) or self._shapes(A, B)
        G = bar * slope
        rows, columns = ops.sum(G, axis=-1)[..., None], ops.sum(G, axis=-2)[..., None]
        Gb = G @ b  # [Q, n, D]
        slope_a = rows * a - Gb
        # Σ_ij G_ij(a_i − b_j)² with its square expanded, so that no array is n × m × D; far from 0
        # it would cancel, so a and b come centred
        spread = ops.sum(a * (slope_a - Gb), axis=-2) + ops.sum(columns * b * b, axis=-2)  # [Q, D]
        if lengthscales.shape[-1] == 1:
            spread = ops.sum(spread, axis=-1, keepdims=True)
        twice = 2.0 * variance
        parameters = KernelParameters(
            ops.sum(bar * shape, axis=(-2, -1)), -twice[:, None] * spread / lengthscales
        )
        return BlockGradient(
            parameters, ops.sum(twice[:, None, None] * slope_a / lengthscales[:, None, :], axis=0)
        )

    def _by_autodiff(
        self, inner_product: Callable[[BlockGradient], Array], A: Tree
    ) -> BlockGradient:
        block = BlockGradient(self.parameters, A)
        gradient: BlockGradient = self.ops.value_and_grad(inner_product)(block)[1]
        return gradient


def total(ops: Ops, *gradients: Tree) -> Tree:
    """Return the sum of trees."""
    first, *others = gradients
    for gradient in others:
        first = tree_map(lambda x, y: x + y, first, gradient)
    return first
