"""The backend `slate`: array-api-strict in float64, one step after another, no autodiff.

array-api-strict refuses what the array API standard does not promise: implicit conversion of an array of a
device to NumPy, missing axes of an index, mixed dtypes. A method that leans on NumPy's leniency fails here.
"""

from __future__ import annotations

from typing import Any, ClassVar

import array_api_strict as xp
import numpy as np
import scipy.linalg
import scipy.special

from svgpbench.errors import NoAutodiffError
from svgpbench.ops import Capabilities
from svgpbench.tree import leaves, rebuild

DEVICE = xp.Device("device1")  # not the host: NumPy cannot see its arrays


def on_device(x: Any) -> Any:
    """Return an array of the device."""
    return xp.asarray(x, device=DEVICE)


def on_host(x: Any) -> Any:
    """Return a copy of an array of the device as a NumPy array."""
    return np.array(x.to_device(xp.Device("CPU_DEVICE")))


def through_host(function: Any) -> Any:
    """Return a function of NumPy or SciPy for arrays of the device."""

    def apply(*arrays: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return on_device(function(*map(on_host, arrays), **options))

    return apply


def quiet(function: Any) -> Any:
    """Return a function without NumPy's warnings."""

    def apply(*arguments: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments, **options)

    return apply


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


def _index_add(x: Any, indices: Any, values: Any) -> Any:
    x[..., indices] += values
    return x


class SlateOps:
    """Arrays of another memory, in float64."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        modes=("eager",), dtypes=("float64",), devices=("cpu",), autodiff=False
    )
    name = "slate"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        self.mode, self.dtype, self.device = mode, dtype, device

    def asarray(self, x: Any) -> Any:
        if isinstance(x, type(DEVICE_ARRAY)):
            return x
        x = np.asarray(x)
        return on_device(x.astype(self.dtype) if x.dtype.kind == "f" else x)

    def zeros(self, shape: Any) -> Any:
        return xp.zeros(tuple(shape), device=DEVICE)

    def eye(self, n: int) -> Any:
        return xp.eye(n, device=DEVICE)

    to_numpy = staticmethod(on_host)
    exp = staticmethod(quiet(xp.exp))
    log = staticmethod(quiet(xp.log))
    log1p = staticmethod(quiet(xp.log1p))
    sqrt = staticmethod(quiet(xp.sqrt))
    abs = staticmethod(xp.abs)
    maximum = staticmethod(xp.maximum)
    where = staticmethod(xp.where)
    sum = staticmethod(xp.sum)
    max = staticmethod(xp.max)
    concat = staticmethod(xp.concat)
    reshape = staticmethod(xp.reshape)
    broadcast_to = staticmethod(xp.broadcast_to)
    matrix_transpose = staticmethod(xp.matrix_transpose)
    flip = staticmethod(xp.flip)
    tril = staticmethod(xp.tril)
    take = staticmethod(xp.take)
    diagonal = staticmethod(xp.linalg.diagonal)
    erfc = staticmethod(through_host(scipy.special.erfc))
    lgamma = staticmethod(through_host(scipy.special.gammaln))
    digamma = staticmethod(through_host(scipy.special.digamma))
    sin = staticmethod(xp.sin)
    cos = staticmethod(xp.cos)
    sort = staticmethod(xp.sort)
    softplus = staticmethod(through_host(lambda x: np.logaddexp(x, 0.0)))
    cholesky = staticmethod(through_host(_cholesky))
    index_add = staticmethod(through_host(_index_add))

    def solve_triangular(
        self, a: Any, b: Any, *, lower: bool = True, transpose: bool = False
    ) -> Any:
        return through_host(_solve)(a, b, lower=lower, transpose=transpose)

    def stop_gradient(self, x: Any) -> Any:
        return x

    def value_and_grad(self, f: Any) -> Any:
        raise NoAutodiffError(self.name)

    def scan(self, step: Any, carry: Any, xs: Any, *, length: int) -> Any:
        for i in range(length):
            carry = step(carry, rebuild(xs, iter([leaf[i, ...] for leaf in leaves(xs)])))
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


DEVICE_ARRAY = on_device(0.0)
