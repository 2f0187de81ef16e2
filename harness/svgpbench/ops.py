"""The `Ops` protocol: everything a method may ask of a framework, frozen in one file.

A method is written once, as pure functions over an `Ops`. A backend is one module that implements
this protocol for a framework. An `Ops` is an instance that carries its dtype and device; nothing is
global. There is no random operation: the harness draws every random number with NumPy and hands
arrays in, which is the only way to get the same minibatches and starts on every framework.

Beyond these functions a method uses the operators `+ - * / @ **`, comparisons, `&` of two of them, and
indexing with `...`, `None` and slices, which every framework's arrays have. Names and signatures follow
the Python array API standard where it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Array: TypeAlias = Any
"""An array of the backend at hand; shapes stand beside each name as `# [P, M, b]`."""

Tree: TypeAlias = Any
"""An array, or a (named) tuple of trees. No None and no Python number enters a compiled function."""

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


@dataclass(frozen=True)
class Capabilities:
    """What a backend offers, readable without a device: modes, dtypes and devices, default first."""

    modes: tuple[str, ...]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    computes: bool = True  # False: shapes without numbers
    autodiff: bool = True  # False: `value_and_grad` raises `NoAutodiffError`


def _no_variables(device: str, threads: int) -> dict[str, str]:
    return {}


def _no_cache(folder: str) -> dict[str, str]:
    return {}


def _no_threads(module: Any, threads: int) -> None:
    """What the environment says is enough."""


def _nothing_compiled(module: Any, functions: Sequence[Callable[..., Any]]) -> int:
    return 0


@dataclass(frozen=True)
class Framework:
    """What a backend stands on: the entry point of the same name under `svgpbench.frameworks`.

    The module that holds it imports nothing heavy; a backend without one imports no framework.
    """

    module: str  # what Python imports
    install: str  # what pip is to install for it: "svgpbench[torch]"
    distributions: tuple[str, ...] = ()  # whose versions a record notes
    environment: Callable[[str, int], dict[str, str]] = _no_variables
    """(device, threads) → variables of a worker, set before its interpreter starts."""
    cache: Callable[[str], dict[str, str]] = _no_cache
    """Folder → variables with which processes share there what they compiled."""
    pin: Callable[[Any, int], None] = _no_threads
    """Sets the threads of the imported module, before its first work."""
    device: Callable[[Any], str] = lambda module: "cpu"
    """The best device that the imported module finds."""
    compilations: Callable[[Any, Sequence[Callable[..., Any]]], int] = _nothing_compiled
    """(module, what `Ops.jit` gave) → programs that were compiled for it so far, in any mode."""
    compiles_slowly: bool = False  # so its work starts first, in processes of its own


@runtime_checkable
class Ops(Protocol):
    """Linear algebra, elementwise functions, autodiff and compilation of one framework."""

    capabilities: ClassVar[Capabilities]
    name: str  # "numpy", "jax", "torch", "tensorflow"
    mode: str  # how steps run: "eager", "jit", "compile", "function", "xla"
    dtype: str  # "float64" or "float32"
    device: str  # "cpu" or "cuda"

    def __hash__(self) -> int:
        """By identity: compiled steps are kept for each instance."""

    # --- making and reading arrays -------------------------------------------------------------
    def asarray(self, x: npt.ArrayLike) -> Array:
        """Numbers on the device; floats take the instance's dtype, integers stay integers."""

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        """An array on the host, dtype kept; it may share memory, so it is read only."""

    def zeros(self, shape: Sequence[int]) -> Array:
        """Zeros of the instance's dtype."""

    def eye(self, n: int) -> Array:
        """Identity [n, n]."""

    # --- elementwise, array-API names ----------------------------------------------------------
    def exp(self, x: Array) -> Array:
        """e**x."""

    def log(self, x: Array) -> Array:
        """Natural logarithm; NaN below 0, -inf at 0."""

    def log1p(self, x: Array) -> Array:
        """log(1 + x), accurate near 0."""

    def sqrt(self, x: Array) -> Array:
        """Square root; NaN below 0."""

    def abs(self, x: Array) -> Array:
        """Absolute value."""

    def maximum(self, x: Array, y: Array | float) -> Array:
        """Elementwise maximum; the derivative at a tie is not specified, so no step may rest on it."""

    def where(self, condition: Array, x: Array, y: Array) -> Array:
        """`x` where `condition`, else `y`."""

    def erfc(self, x: Array) -> Array:
        """1 − erf(x), accurate relative to itself while it is a normal number."""

    def lgamma(self, x: Array) -> Array:
        """Log Γ(x) for x > 0. Not differentiated."""

    # --- shapes and sums, array-API names ------------------------------------------------------
    def sum(
        self, x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
    ) -> Array:
        """Sum over `axis`, or over everything."""

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Largest along `axis`. Not differentiated."""

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        """Arrays joined along an axis that they have."""

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """The same numbers in another shape."""

    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        """Repeat along new or length-1 axes."""

    def matrix_transpose(self, x: Array) -> Array:
        """Swap the last two axes."""

    def flip(self, x: Array, *, axis: tuple[int, ...]) -> Array:
        """Reverse the order along `axis`."""

    def tril(self, x: Array) -> Array:
        """Lower triangle of the last two axes, the rest zero."""

    def take(self, x: Array, indices: Array, *, axis: int) -> Array:
        """Pick `indices` along `axis`."""

    # --- linear algebra ------------------------------------------------------------------------
    def diagonal(self, x: Array) -> Array:
        """Diagonal of the last two axes, [..., n]."""

    def cholesky(self, a: Array) -> Array:
        """Lower Cholesky factor [..., n, n]; reads the lower triangle only.

        A matrix that is not positive definite gives NaN in its whole lower triangle, never an
        exception; other matrices of the batch are untouched. An input with NaN gives some NaN.
        Differentiable; a caller that needs a
        symmetric gradient symmetrises the input itself.
        """

    # --- extensions ----------------------------------------------------------------------------
    def solve_triangular(
        self, a: Array, b: Array, *, lower: bool = True, transpose: bool = False
    ) -> Array:
        """Solve a x = b (or aᵀ x = b) for triangular a [..., n, n] and b [..., n, k].

        Leading axes broadcast. Reads only the triangle named by `lower`. Differentiable in both.
        """

    def softplus(self, x: Array) -> Array:
        """log(1 + eˣ), accurate at both ends. Differentiable."""

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        """A copy of x [..., n] with values [..., k] added at distinct indices [k]. Not differentiated."""

    def stop_gradient(self, x: Tree) -> Tree:
        """The same value, a constant for `value_and_grad`."""

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        """Value and gradient of scalar `f(tree, *rest)` with respect to every leaf of `tree`.

        The gradient has the structure of `tree`; a leaf that f does not use gets zeros. Raises
        `NoAutodiffError` on a backend whose capabilities say that it has no autodiff.
        """

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        """Fold `carry = step(carry, xs[i])` for i = 0 … length−1 and return the last carry.

        Every leaf of `xs` has a leading axis of `length`; `xs` may be the empty tuple. Compiled, it
        is one loop in the framework's graph. Not differentiated through.
        """

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        """Repeat `carry = step(carry)` while `condition(carry)` [] holds. Not differentiated through."""

    def jit(self, f: F) -> F:
        """Compile `f` (trees in, trees out) in the instance's mode; identity where that is eager."""

    # --- measuring -----------------------------------------------------------------------------
    def sync(self, x: Tree) -> None:
        """Wait until every array of the tree has been computed."""

    def peak_memory(self) -> int | None:
        """Peak bytes allocated on the accelerator so far, None on the CPU."""


def eps(dtype: str) -> float:
    """Machine epsilon of a dtype's name."""
    return float(np.finfo(dtype).eps)
