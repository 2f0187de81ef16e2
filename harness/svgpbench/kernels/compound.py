"""Sums and products of kernels: their parameters are the tuple of their parts' own.

A gradient bar in a block K of the compound is a gradient in each part's block: bar itself for a sum, and
bar∘∏ of the other parts' blocks for a product. So the closed forms of the parts are those of the whole.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from svgpbench.config import KernelConfig
from svgpbench.kernels.kernels import Kernel, kernel
from svgpbench.kernels.pullback import BlockGradient, DifferentiableCovariance, total
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Compound(Kernel):
    """A kernel that is made of others, which may be compounds too; no part has inducing functions."""

    parts: tuple[Kernel, ...]

    @abstractmethod
    def joined(self, blocks: list[Array]) -> Array:
        """The block of the whole from those of the parts."""

    @abstractmethod
    def shares(self, blocks: list[Array], bar: Array) -> list[Array]:
        """The gradient in each part's block from that in the whole's."""

    def shape(self, ops: Ops, d2: Array) -> Array:
        raise NotImplementedError(f"kernel {self.name!r} is no function of one distance")

    def cross(self, ops: Ops, p: Any, A: Tree, B: Tree) -> Array:
        pairs = zip(self.parts, p, strict=True)
        return self.joined([part.cross(ops, own, A, B) for part, own in pairs])

    def diagonal(self, ops: Ops, p: Any, A: Tree) -> Array:
        pairs = zip(self.parts, p, strict=True)
        return self.joined([part.diagonal(ops, own, A) for part, own in pairs])


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
        others = [blocks[:i] + blocks[i + 1 :] for i in range(len(blocks))]
        return [functools.reduce(lambda x, y: x * y, rest, bar) for rest in others]


COMPOUNDS: dict[str, type[Compound]] = {"sum": Sum, "product": Product}


def build_kernel(config: KernelConfig) -> Kernel:
    """The kernel that a configuration names; raises `UserError` for a name or an option that there is not."""
    if config.parts:
        return COMPOUNDS[config.name](tuple(map(build_kernel, config.parts)))
    return kernel(config.name, config.options)


@dataclass(frozen=True)
class DifferentiableCompound(DifferentiableCovariance):
    """A compound at one θ; its parts remember what they gave, and pull back what is theirs."""

    @functools.cached_property
    def parts(self) -> list[DifferentiableCovariance]:
        """Each part at its own parameters."""
        assert isinstance(self.kernel, Compound)
        pairs = zip(self.kernel.parts, self.parameters, strict=True)
        return [differentiable(self.ops, part, own, self.jitter) for part, own in pairs]

    def cross(self, A: Tree, B: Tree) -> Array:
        return self._whole.joined([part.cross(A, B) for part in self.parts])

    def pull_cross(self, A: Tree, B: Tree, bar: Array) -> BlockGradient:
        shares = self._whole.shares([part.cross(A, B) for part in self.parts], bar)
        pairs = zip(self.parts, shares, strict=True)
        return self._gathered([part.pull_cross(A, B, share) for part, share in pairs])

    def pull_square(self, A: Tree, bar: Array) -> BlockGradient:
        shares = self._whole.shares([part.cross(A, A) for part in self.parts], bar)
        pairs = zip(self.parts, shares, strict=True)
        return self._gathered([part.pull_square(A, share) for part, share in pairs])

    def pull_diagonal(self, X: Tree, bar: Array) -> Any:
        shares = self._whole.shares([part.diagonal(X) for part in self.parts], bar)
        pairs = zip(self.parts, shares, strict=True)
        return tuple(part.pull_diagonal(X, share) for part, share in pairs)

    @property
    def _whole(self) -> Compound:
        assert isinstance(self.kernel, Compound)
        return self.kernel

    def _gathered(self, gradients: list[BlockGradient]) -> BlockGradient:
        own = tuple(one.parameters for one in gradients)
        return BlockGradient(own, total(self.ops, *(one.basis for one in gradients)))


def differentiable(
    ops: Ops, kernel: Kernel, parameters: Any, jitter: float
) -> DifferentiableCovariance:
    """A kernel at its parameters, with the gradients of its blocks."""
    made = DifferentiableCompound if isinstance(kernel, Compound) else DifferentiableCovariance
    return made(ops, kernel, parameters, jitter)
