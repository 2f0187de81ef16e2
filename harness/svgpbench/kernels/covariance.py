"""The kernel at one θ, from which a method gets the blocks of its Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from svgpbench.kernels.kernels import Kernel
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Covariance:
    """The kernel function k(·, ·) at one θ; arguments are inputs [n, D] or bases that the kernel supports."""

    ops: Ops
    kernel: Kernel
    parameters: Any  # KernelParameters, or a compound's tuple of them
    jitter: float

    def cross(self, A: Tree, B: Tree) -> Array:
        """Return the covariances [Q, n, m] of A and B."""
        return self.kernel.cross(self.ops, self.parameters, A, B)

    def diagonal(self, A: Tree) -> Array:
        """Return the variances [Q, n] at A."""
        return self.kernel.diagonal(self.ops, self.parameters, A)

    def square(self, A: Tree) -> Array:
        """Return K(A, A) + jitter·I [Q, n, n]."""
        K = self.cross(A, A)
        return K + self.jitter * self.ops.eye(K.shape[-1])
