"""The NumPy backend in float64: the reference with which every other backend is compared.

Reverse mode is HIPS autograd, which is independent of the three frameworks. The derivatives of the
batched Cholesky and triangular solve are defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import autograd
import autograd.numpy as anp
import numpy as np
import numpy.typing as npt
from autograd.extend import defvjp, primitive
from autograd.tracer import getval, isbox
from scipy.linalg import lapack
from scipy.special import digamma, erfc, gammaln, zeta

from svgpbench.ops import Array, Capabilities, Tree
from svgpbench.tree import leaves, rebuild

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
_INV_ROOT_PI = 0.56418958354775627928


def _t(x: Array) -> Array:
    return anp.swapaxes(x, -1, -2)


@primitive  # type: ignore[untyped-decorator, unused-ignore]
def _cholesky(a: Array) -> Array:
    out = np.empty_like(a)
    for index in np.ndindex(a.shape[:-2]):
        # LAPACK itself, because np.linalg.cholesky raises for a whole batch if one matrix fails
        factor, info = lapack.dpotrf(a[index], lower=1, clean=1)
        out[index] = np.tril(np.full_like(factor, np.nan)) if info else factor
    return out


def _cholesky_vjp(chol: Array, a: Array) -> Callable[[Array], Array]:
    """Return the symmetric gradient of the factor: Murray (2016), arXiv:1602.07527, Eq. 8."""

    def vjp(g: Array) -> Array:
        # the upper triangle of a factor is the constant 0: a cotangent there has no effect
        phi = anp.tril(_t(chol) @ anp.tril(g))
        phi = phi - 0.5 * phi * anp.eye(chol.shape[-1])
        inner = _solve(chol, phi, True, True)  # L⁻ᵀ φ
        s = _t(_solve(chol, _t(inner), True, True))  # L⁻ᵀ φ L⁻¹
        return 0.5 * (s + _t(s))

    return vjp


@primitive  # type: ignore[untyped-decorator, unused-ignore]
def _solve(a: Array, b: Array, lower: bool, transpose: bool) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, batch + a.shape[-2:])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    out = np.empty(b.shape)
    for index in np.ndindex(batch):
        out[index], info = lapack.dtrtrs(a[index], b[index], lower=lower, trans=int(transpose))
        # dtrtrs returns a positive number for a 0 on the diagonal, and leaves b unsolved
        if info:
            out[index] = np.nan
    return out


def _sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Undo broadcasting: sum x to a shape."""
    x = anp.sum(x, axis=tuple(range(x.ndim - len(shape)))) if x.ndim > len(shape) else x
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)
    return anp.sum(x, axis=axes, keepdims=True) if axes else x


def _solve_vjp_a(x: Array, a: Array, b: Array, lower: bool, transpose: bool) -> Any:
    mask = np.tril if lower else np.triu

    def vjp(g: Array) -> Array:
        b_bar = _solve(a, g, lower, not transpose)
        a_bar = -x @ _t(b_bar) if transpose else -b_bar @ _t(x)
        # the solve reads one triangle, so the other has the gradient 0
        return _sum_to(a_bar * mask(np.ones(a.shape[-2:])), a.shape)

    return vjp


def _solve_vjp_b(x: Array, a: Array, b: Array, lower: bool, transpose: bool) -> Any:
    return lambda g: _sum_to(_solve(a, g, lower, not transpose), b.shape)


def _plain(x: Array) -> Array:
    """Return the numbers of an array, which autograd does not follow."""
    while isbox(x):
        x = getval(x)
    return x


# autograd.scipy has them too, and imports scipy.stats, which takes longer than the rest of this module
_erfc, _gammaln, _digamma = primitive(erfc), primitive(gammaln), primitive(digamma)


def _erfc_vjp(_: Array, x: Array) -> Callable[[Array], Array]:
    return lambda g: -2.0 * g * _INV_ROOT_PI * anp.exp(-(x**2))


defvjp(_cholesky, _cholesky_vjp)
defvjp(_solve, _solve_vjp_a, _solve_vjp_b)
defvjp(_erfc, _erfc_vjp)
defvjp(_gammaln, lambda _, x: lambda g: g * _digamma(x))
defvjp(_digamma, lambda _, x: lambda g: g * zeta(2.0, x))


class NumpyOps:
    """NumPy in float64 on the CPU, eager: the reference."""

    capabilities: ClassVar[Capabilities] = Capabilities(("eager",), ("float64",), ("cpu",))
    name = "numpy"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        self.mode, self.dtype, self.device = mode, dtype, device

    def asarray(self, x: npt.ArrayLike) -> Array:
        x = np.asarray(x)
        return x.astype(self.dtype) if x.dtype.kind == "f" else x

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        return np.asarray(x)

    def zeros(self, shape: Sequence[int]) -> Array:
        return np.zeros(shape)

    def eye(self, n: int) -> Array:
        return np.eye(n)

    exp = staticmethod(anp.exp)
    log1p = staticmethod(anp.log1p)
    sin = staticmethod(anp.sin)
    cos = staticmethod(anp.cos)
    abs = staticmethod(anp.abs)
    maximum = staticmethod(anp.maximum)
    where = staticmethod(anp.where)
    reshape = staticmethod(anp.reshape)
    tril = staticmethod(anp.tril)
    matrix_transpose = staticmethod(_t)
    cholesky = staticmethod(_cholesky)
    erfc = staticmethod(_erfc)
    lgamma = staticmethod(_gammaln)
    digamma = staticmethod(_digamma)
    sum = staticmethod(anp.sum)
    max = staticmethod(anp.max)
    sort = staticmethod(anp.sort)

    def log(self, x: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return anp.log(x)

    def sqrt(self, x: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return anp.sqrt(x)

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        return anp.concatenate(list(xs), axis=axis)

    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        # autograd does not support new leading axes
        return anp.broadcast_to(anp.reshape(x, (1,) * (len(shape) - x.ndim) + x.shape), shape)

    def flip(self, x: Array, *, axis: tuple[int, ...]) -> Array:
        axes = {a % x.ndim for a in axis}  # autograd has no VJP for flip
        return x[tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim))]

    def take(self, x: Array, indices: Array, *, axis: int) -> Array:
        return x[(slice(None),) * (axis % x.ndim) + (indices,)]  # autograd has no VJP for take

    def diagonal(self, x: Array) -> Array:
        return anp.diagonal(x, axis1=-1, axis2=-2)  # the order that autograd can undo

    def solve_triangular(
        self, a: Array, b: Array, *, lower: bool = True, transpose: bool = False
    ) -> Array:
        return _solve(a, b, lower, transpose)

    def softplus(self, x: Array) -> Array:
        return anp.logaddexp(x, 0.0)

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        out = np.array(x)
        # a repeated index would be added once only; the contract has distinct ones
        out[..., indices] += values
        return out

    def stop_gradient(self, x: Tree) -> Tree:
        return rebuild(x, iter([_plain(leaf) for leaf in leaves(x)]))

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        def call(tree: Tree, *args: Tree) -> tuple[Array, Tree]:
            flat = [np.asarray(leaf) for leaf in leaves(tree)]
            value, grads = autograd.value_and_grad(lambda xs: f(rebuild(tree, iter(xs)), *args))(
                flat
            )
            return np.asarray(value), rebuild(tree, iter(grads))

        return call

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        for i in range(length):
            carry = step(carry, rebuild(xs, iter([leaf[i] for leaf in leaves(xs)])))
        return carry

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        while condition(carry):
            carry = step(carry)
        return carry

    def jit(self, f: F) -> F:
        return f

    def sync(self, x: Tree) -> None:
        """Do nothing: NumPy has computed everything when it returns."""

    def peak_memory(self) -> int | None:
        return None
