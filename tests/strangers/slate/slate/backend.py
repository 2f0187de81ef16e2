"""The backend `slate`: float64, one step after another, no autodiff."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.special

from slate.device import DeviceArray, on_device
from svgpbench.errors import NoAutodiffError
from svgpbench.ops import Capabilities
from svgpbench.tree import leaves, rebuild


def _cholesky(a: Any) -> Any:
    out = np.empty_like(a)
    for index in np.ndindex(a.shape[:-2]):
        factor, info = scipy.linalg.lapack.dpotrf(a[index], lower=1, clean=1)
        out[index] = np.tril(np.full_like(factor, np.nan)) if info else factor
    return out


def _solve(a: Any, b: Any, *, lower: bool, transpose: bool) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
    out = np.empty(b.shape)
    for index in np.ndindex(batch):
        x, info = scipy.linalg.lapack.dtrtrs(a[index], b[index], lower=lower, trans=int(transpose))
        out[index] = np.nan if info else x
    return out


class SlateOps:
    """Arrays of another memory, in float64."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        modes=("eager",), dtypes=("float64",), devices=("cpu",), autodiff=False
    )
    name = "slate"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        self.mode, self.dtype, self.device = mode, dtype, device

    def asarray(self, x: Any) -> Any:
        if isinstance(x, DeviceArray):
            return x
        x = np.array(x)
        return DeviceArray(x.astype(self.dtype) if x.dtype.kind == "f" else x)

    def to_numpy(self, x: Any) -> Any:
        return x.get()

    def zeros(self, shape: Any) -> Any:
        return DeviceArray(np.zeros(shape))

    def eye(self, n: int) -> Any:
        return DeviceArray(np.eye(n))

    exp = staticmethod(on_device(np.exp))
    log = staticmethod(on_device(np.log))
    log1p = staticmethod(on_device(np.log1p))
    sqrt = staticmethod(on_device(np.sqrt))
    abs = staticmethod(on_device(np.abs))
    maximum = staticmethod(on_device(np.maximum))
    where = staticmethod(on_device(np.where))
    erfc = staticmethod(on_device(scipy.special.erfc))
    lgamma = staticmethod(on_device(scipy.special.gammaln))
    softplus = staticmethod(on_device(lambda x: np.logaddexp(x, 0.0)))
    sum = staticmethod(on_device(np.sum))
    max = staticmethod(on_device(np.max))
    reshape = staticmethod(on_device(np.reshape))
    broadcast_to = staticmethod(on_device(np.broadcast_to))
    matrix_transpose = staticmethod(on_device(lambda x: np.swapaxes(x, -1, -2)))
    flip = staticmethod(on_device(np.flip))
    tril = staticmethod(on_device(np.tril))
    take = staticmethod(on_device(np.take))
    diagonal = staticmethod(on_device(lambda x: np.diagonal(x, axis1=-2, axis2=-1)))
    cholesky = staticmethod(on_device(_cholesky))

    def concat(self, xs: Any, *, axis: int) -> Any:
        return on_device(lambda *parts: np.concatenate(parts, axis=axis))(*xs)

    def solve_triangular(
        self, a: Any, b: Any, *, lower: bool = True, transpose: bool = False
    ) -> Any:
        return on_device(_solve)(a, b, lower=lower, transpose=transpose)

    def index_add(self, x: Any, indices: Any, values: Any) -> Any:
        out = x.get()
        out[..., indices.get()] += values.get()
        return DeviceArray(out)

    def stop_gradient(self, x: Any) -> Any:
        return x

    def value_and_grad(self, f: Any) -> Any:
        raise NoAutodiffError(self.name)

    def scan(self, step: Any, carry: Any, xs: Any, *, length: int) -> Any:
        for i in range(length):
            carry = step(carry, rebuild(xs, iter([leaf[i] for leaf in leaves(xs)])))
        return carry

    def while_loop(self, condition: Any, step: Any, carry: Any) -> Any:
        while condition(carry):
            carry = step(carry)
        return carry

    def jit(self, f: Any) -> Any:
        return f

    def sync(self, x: Any) -> None:
        """Nothing is computed later."""

    def peak_memory(self) -> int | None:
        return None
