"""Sums and products of kernels; their parameters are the tuple of their parts' parameters.

A gradient `bar` in a block of the compound gives a gradient in each part's block: bar itself for a sum, and
bar∘∏ of the other parts' blocks for a product. So a compound uses the closed-form gradients of its parts.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float

from svgpbench.config import KernelConfig
from svgpbench.kernels.kernels import Kernel, kernel
from svgpbench.kernels.pullback import BlockGradient, DifferentiableCovariance, total
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Compound(Kernel):
    """A kernel made of other kernels, which may be compounds too; it has no inducing functions."""

    parts: tuple[Kernel, ...]

    @abstractmethod
    def joined(self, blocks: list[Float[Array, "*block"]]) -> Float[Array, "*block"]:
        """Return the block of the compound from the blocks of its parts."""

    @abstractmethod
    def shares(
        self, blocks: list[Float[Array, "*block"]], bar: Float[Array, "*block"]
    ) -> list[Float[Array, "*block"]]:
        """Return the gradient in each part's block from the gradient in the compound's block."""

    def shape(self, ops: Ops, d2: Array) -> Array:
        raise NotImplementedError(f"kernel {self.name!r} is no function of one distance")

    def cross(self, ops: Ops, p: Any, A: Tree, B: Tree) -> Array:
        pairs = zip(self.parts, p, strict=True)
        return self.joined([part.cross(ops, parameters, A, B) for part, parameters in pairs])

    def diagonal(self, ops: Ops, p: Any, A: Tree) -> Array:
        pairs = zip(self.parts, p, strict=True)
        return self.joined([part.diagonal(ops, parameters, A) for part, parameters in pairs])


@dataclass(frozen=True)
class Sum(Compound):
    """k(x, x') = Σ of the parts."""

    name: ClassVar[str] = "sum"

    def joined(self, blocks: list[Array]) -> Array:
        return functools.reduce(lambda x, y: x + y, blocks)

    def shares(self, blocks: list[Array], bar: Array) -> list[Array]:
        return [bar for _ in blocks]


@dataclass(frozen=True)
class Product(Compound):
    """k(x, x') = ∏ of the parts."""

    name: ClassVar[str] = "product"

    def joined(self, blocks: list[Array]) -> Array:
        return functools.reduce(lambda x, y: x * y, blocks)

    def shares(self, blocks: list[Array], bar: Array) -> list[Array]:
        # products without a part, not K divided by it: a part that underflows to 0 would give 0/0
        other_blocks = [blocks[:i] + blocks[i + 1 :] for i in range(len(blocks))]
        return [functools.reduce(lambda x, y: x * y, others, bar) for others in other_blocks]


COMPOUNDS: dict[str, type[Compound]] = {"sum": Sum, "product": Product}


def build_kernel(config: KernelConfig) -> Kernel:
    """Return the kernel of a configuration; raise `UserError` for an unknown name or option."""
    if config.parts:
        return COMPOUNDS[config.name](tuple(map(build_kernel, config.parts)))
    return kernel(config.name, config.options)


@dataclass(frozen=True)
class DifferentiableCompound(DifferentiableCovariance):
    """A compound at one θ; its parts cache their blocks and pull back their own gradients."""

    @functools.cached_property
    def parts(self) -> list[DifferentiableCovariance]:
        """The parts, each at its own parameters."""
        assert isinstance(self.kernel, Compound)
        pairs = zip(self.kernel.parts, self.parameters, strict=True)
        return [
            differentiable(self.ops, part, parameters, self.jitter) for part, parameters in pairs
        ]

    def cross(self, A: Tree, B: Tree) -> Array:
        return self._compound.joined([part.cross(A, B) for part in self.parts])

    def pull_cross(self, A: Tree, B: Tree, bar: Array) -> BlockGradient:
        shares = self._compound.shares([part.cross(A, B) for part in self.parts], bar)
        pairs = zip(self.parts, shares, strict=True)
        return self._combine([part.pull_cross(A, B, share) for part, share in pairs])

    def pull_square(self, A: Tree, bar: Array) -> BlockGradient:
        shares = self._compound.shares([part.cross(A, A) for part in self.parts], bar)
        pairs = zip(self.parts, shares, strict=True)
        return self._combine([part.pull_square(A, share) for part, share in pairs])

    def pull_diagonal(self, X: Tree, bar: Array) -> Any:
        shares = self._compound.shares([part.diagonal(X) for part in self.parts], bar)
        pairs = zip(self.parts, shares, strict=True)
        return tuple(part.pull_diagonal(X, share) for part, share in pairs)

    @property
    def _compound(self) -> Compound:
        assert isinstance(self.kernel, Compound)
        return self.kernel

    def _combine(self, gradients: list[BlockGradient]) -> BlockGradient:
        parameters = tuple(gradient.parameters for gradient in gradients)
        return BlockGradient(
            parameters, total(self.ops, *(gradient.basis for gradient in gradients))
        )


def differentiable(
    ops: Ops, kernel: Kernel, parameters: Any, jitter: float
) -> DifferentiableCovariance:
    """Return a kernel at its parameters, with the gradients of its blocks."""
    cls = DifferentiableCompound if isinstance(kernel, Compound) else DifferentiableCovariance
    return cls(ops, kernel, parameters, jitter)
