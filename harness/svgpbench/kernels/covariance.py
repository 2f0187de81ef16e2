"""The kernel closed over θ: what a method asks for the blocks of its Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from svgpbench.kernels.kernels import Kernel
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Covariance:
    """k(·, ·) at one θ. Arguments are inputs [n, D], or whatever bases the kernel knows."""

    ops: Ops
    kernel: Kernel
    parameters: Any  # KernelParameters, or a compound's tuple of them
    jitter: float

    def cross(self, A: Tree, B: Tree) -> Array:
        """Covariances [Q, n, m] of A and B."""
        return self.kernel.cross(self.ops, self.parameters, A, B)

    def diagonal(self, A: Tree) -> Array:
        """Variances [Q, n] at A."""
        return self.kernel.diagonal(self.ops, self.parameters, A)

    def square(self, A: Tree) -> Array:
        """K(A, A) + jitter·I [Q, n, n]."""
        K = self.cross(A, A)
        return K + self.jitter * self.ops.eye(K.shape[-1])
