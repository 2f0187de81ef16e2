"""The kernel at one θ, from which a method gets the blocks of its Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float

from svgpbench.kernels.kernels import Kernel
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Covariance:
    """The kernel function k(·, ·) at one θ; arguments are inputs [n, D] or bases that the kernel supports."""

    ops: Ops
    kernel: Kernel
    parameters: Any  # KernelParameters, or a compound's tuple of them
    jitter: float

    def cross(self, A: Tree, B: Tree) -> Float[Array, "Q n m"]:
        """Return the covariances of A and B."""
        return self.kernel.cross(self.ops, self.parameters, A, B)

    def diagonal(self, A: Tree) -> Float[Array, "Q n"]:
        """Return the variances at A."""
        return self.kernel.diagonal(self.ops, self.parameters, A)

    def square(self, A: Tree) -> Float[Array, "Q n n"]:
        """Return K(A, A) + jitter·I."""
        K = self.cross(A, A)
        return K + self.jitter * self.ops.eye(K.shape[-1])
