"""The PyTorch backend: eager by default, `torch.compile` as a named mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from svgpbench.errors import UserError
from svgpbench.ops import Array, Capabilities, Tree
from svgpbench.tree import leaves, rebuild, tree_map
from svgpbench_backends.frameworks import TORCH_OFFERS

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


class TorchOps:
    """PyTorch on the CPU or one CUDA GPU."""

    capabilities: ClassVar[Capabilities] = TORCH_OFFERS
    name = "torch"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        if device == "cuda" and not torch.cuda.is_available():
            raise UserError("backend 'torch' has no device 'cuda' here; see `svgpbench doctor`")
        self.mode, self.dtype, self.device = mode, dtype, device
        self._dtype = getattr(torch, dtype)

    def asarray(self, x: npt.ArrayLike) -> Array:
        x = np.asarray(x)
        x = x.astype(self.dtype) if x.dtype.kind == "f" else x
        return torch.tensor(x, device=self.device)  # a copy: NumPy's memory may be read-only

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        return x.detach().cpu().numpy()  # type: ignore[no-any-return, unused-ignore]

    def zeros(self, shape: Sequence[int]) -> Array:
        return torch.zeros(tuple(shape), dtype=self._dtype, device=self.device)

    def eye(self, n: int) -> Array:
        return torch.eye(n, dtype=self._dtype, device=self.device)

    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    log1p = staticmethod(torch.log1p)
    sqrt = staticmethod(torch.sqrt)
    abs = staticmethod(torch.abs)
    where = staticmethod(torch.where)
    tril = staticmethod(torch.tril)
    erfc = staticmethod(torch.erfc)
    lgamma = staticmethod(torch.lgamma)
    sin = staticmethod(torch.sin)
    cos = staticmethod(torch.cos)

    def digamma(self, x: Array) -> Array:
        # the slope of torch's own digamma is off by 5e-10 near 1; ζ(2, x) is the same function
        fixed = x.detach()
        slope = torch.special.zeta(torch.full_like(fixed, 2.0), fixed)
        return torch.digamma(fixed) + slope * (x - fixed)

    def maximum(self, x: Array, y: Array | float) -> Array:
        # torch.maximum takes no Python number
        return torch.clamp_min(x, y) if isinstance(y, float) else torch.maximum(x, y)

    def sum(
        self, x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
    ) -> Array:
        return torch.sum(x, dim=axis, keepdim=keepdims) if axis is not None else torch.sum(x)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        return torch.amax(x, dim=axis, keepdim=keepdims)

    def sort(self, x: Array, *, axis: int = -1) -> Array:
        return torch.sort(x, dim=axis).values

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        return torch.cat(list(xs), dim=axis)

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        return torch.reshape(x, tuple(shape))

    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        return torch.broadcast_to(x, tuple(shape))

    def matrix_transpose(self, x: Array) -> Array:
        return x.mT

    def flip(self, x: Array, *, axis: tuple[int, ...]) -> Array:
        return torch.flip(x, axis)

    def take(self, x: Array, indices: Array, *, axis: int) -> Array:
        return torch.index_select(x, axis, indices)

    def diagonal(self, x: Array) -> Array:
        return torch.diagonal(x, dim1=-2, dim2=-1)

    def cholesky(self, a: Array) -> Array:
        # `cholesky` raises where a factor does not exist, and has to wait for the GPU to know it
        factor, info = torch.linalg.cholesky_ex(a)
        # NaN by a product, not by `where`, so that the gradient of a failed factor is NaN too
        unit = torch.ones((), dtype=factor.dtype, device=factor.device)
        return factor * torch.where(info == 0, unit, torch.nan)[..., None, None]

    def solve_triangular(
        self, a: Array, b: Array, *, lower: bool = True, transpose: bool = False
    ) -> Array:
        if not transpose:
            a, lower = a.mT, not lower
        # xᵀaᵀ = bᵀ: the same solve, without copies into LAPACK's layout and with rows for a result
        return torch.linalg.solve_triangular(a, b.mT, upper=not lower, left=False).mT

    def softplus(self, x: Array) -> Array:
        # torch's own softplus turns linear at 20, where it is still off by 2e-9
        return torch.logaddexp(x, torch.zeros((), dtype=x.dtype, device=x.device))

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        return torch.index_add(x, -1, indices, values)

    def stop_gradient(self, x: Tree) -> Tree:
        return tree_map(lambda leaf: leaf.detach(), x)

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        def call(tree: Tree, *args: Tree) -> tuple[Array, Tree]:
            with torch.enable_grad():
                flat = [leaf.detach().requires_grad_() for leaf in leaves(tree)]
                value = f(rebuild(tree, iter(flat)), *args)
            if not flat or not value.requires_grad:  # autograd raises if no leaf is used
                return value.detach(), tree_map(torch.zeros_like, tree)
            grads = torch.autograd.grad(value, flat, allow_unused=True)
            filled = [
                torch.zeros_like(x) if g is None else g for x, g in zip(flat, grads, strict=True)
            ]
            return value.detach(), rebuild(tree, iter(filled))

        return call

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        for i in range(length):
            carry = step(carry, tree_map(lambda leaf, i=i: leaf[i], xs))
        return carry

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        while condition(carry):  # waits for the device; a compiled graph ends here and resumes
            carry = step(carry)
        return carry

    def jit(self, f: F) -> F:
        inner = torch.compile(f) if self.mode == "compile" else f

        def call(*args: Any) -> Any:
            with torch.no_grad():  # value_and_grad enables gradients itself
                return inner(*args)

        return call  # type: ignore[return-value, unused-ignore]

    def sync(self, x: Tree) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def peak_memory(self) -> int | None:
        return int(torch.cuda.max_memory_allocated()) if self.device == "cuda" else None
