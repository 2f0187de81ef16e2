"""The `Ops` protocol: every operation that a method may use of a framework.

A method is written once, as pure functions over an `Ops`. A backend is one module that implements
this protocol for a framework. An `Ops` instance has its own dtype and device; there is no global state.
There is no random operation: the harness draws every random number with NumPy and passes arrays in.
This gives the same minibatches and initial values on every framework.

Beside these functions, a method uses the operators `+ - * / @ **`, comparisons, `&` of two of them, and
indexing with `...`, `None`, integers and slices, which the arrays of every framework have. An index names
every axis or has `...`, as the Python array API standard asks: `x[0, ...]`, not `x[0]`. Names and signatures
follow the standard where it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Array: TypeAlias = Any
"""An array of the current backend; signatures of the core give shapes as `Float[Array, "P M b"]`."""

Tree: TypeAlias = Any
"""An array, or a (named) tuple of trees. Arguments of a compiled function hold no None or Python number."""

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


@dataclass(frozen=True)
class Capabilities:
    """Modes, dtypes and devices of a backend, default first; no device is needed to read them."""

    modes: tuple[str, ...]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    computes: bool = True  # False: computes shapes only, no numbers
    autodiff: bool = True  # False: `value_and_grad` raises `NoAutodiffError`


@dataclass(frozen=True)
class Framework:
    """The framework of a backend: the entry point of the same name in `svgpbench.frameworks`.

    The module that defines it must not import the framework. A backend without a `Framework` needs none.
    """

    module: str  # name of the Python module
    install: str  # requirement for pip: "svgpbench[torch]"
    distributions: tuple[str, ...] = ()  # packages whose versions a record stores
    environment: Callable[[str, int], dict[str, str]] = lambda device, threads: {}
    """(device, threads) → environment variables of a worker, set before its interpreter starts."""
    cache: Callable[[str], dict[str, str]] = lambda folder: {}
    """Folder → environment variables that make processes share compiled programs in this folder; "" → those
    that make a process compile every program itself."""
    pin: Callable[[Any, int], None] = lambda module, threads: None
    """Function that sets the number of threads of the imported module, before its first operation. By default
    it does nothing: the environment variables of the worker are enough."""
    blas_threads: Callable[[int], int] = lambda threads: threads
    """Function from the threads of a worker to those of each BLAS or LAPACK call."""
    device: Callable[[Any], str] = lambda module: "cpu"
    """Function that returns the best device that the imported module finds."""
    compilations: Callable[[Any, Sequence[Callable[..., Any]]], int] = lambda module, functions: 0
    """(module, results of `Ops.jit`) → number of programs compiled for them so far, in any mode."""
    forget: Callable[[Any], None] = lambda module: None
    """Function that makes the imported module forget the programs that functions of one code share."""
    vmap: Callable[[Any], Callable[..., Any]] | None = None
    """Function that returns the imported module's vmap: it gives a function a leading axis on every array."""
    compiles_slowly: bool = False  # True: its work starts first, in processes of its own
    capabilities: Capabilities | None = None  # of the backend; None: known once it is imported


@runtime_checkable
class Ops(Protocol):
    """Linear algebra, elementwise functions, autodiff and compilation of one framework."""

    capabilities: ClassVar[Capabilities]
    name: str  # "numpy", "jax", "torch", "tensorflow"
    mode: str  # how steps run: "eager", "jit", "compile", "function", "xla"
    dtype: str  # "float64" or "float32"
    device: str  # "cpu" or "cuda"

    def __hash__(self) -> int:
        """Hash by identity: compiled steps are cached for each instance."""

    # --- making and reading arrays -------------------------------------------------------------
    def asarray(self, x: npt.ArrayLike) -> Array:
        """Convert numbers to a device array; floats get the instance's dtype, integers stay integers."""

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        """Return an array on the host with the same dtype; it may share memory, so do not write to it."""

    def zeros(self, shape: Sequence[int]) -> Array:
        """Return zeros of the instance's dtype."""

    def eye(self, n: int) -> Array:
        """Return the identity matrix [n, n]."""

    # --- elementwise, array-API names ----------------------------------------------------------
    def exp(self, x: Array) -> Array:
        """Return e**x."""

    def log(self, x: Array) -> Array:
        """Return the natural logarithm; NaN below 0, -inf at 0."""

    def log1p(self, x: Array) -> Array:
        """Return log(1 + x), accurate near 0."""

    def sqrt(self, x: Array) -> Array:
        """Return the square root; NaN below 0."""

    def abs(self, x: Array) -> Array:
        """Return the absolute value."""

    def maximum(self, x: Array, y: Array | float) -> Array:
        """Return the elementwise maximum; no step may depend on the derivative at a tie."""

    def where(self, condition: Array, x: Array, y: Array) -> Array:
        """Return `x` where `condition` is true, else `y`."""

    def erfc(self, x: Array) -> Array:
        """Return 1 − erf(x), with a small relative error as long as the result is a normal number."""

    def sin(self, x: Array) -> Array:
        """Return the sine of x in radians."""

    def cos(self, x: Array) -> Array:
        """Return the cosine of x in radians."""

    def lgamma(self, x: Array) -> Array:
        """Return log Γ(x) for x > 0; its derivative is `digamma`."""

    def digamma(self, x: Array) -> Array:
        """Return the derivative of log Γ at x > 0. Differentiable."""

    # --- shapes and sums, array-API names ------------------------------------------------------
    def sum(
        self, x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
    ) -> Array:
        """Sum over `axis`, or over all axes."""

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the maximum along `axis`. Not differentiated."""

    def sort(self, x: Array, *, axis: int = -1) -> Array:
        """Return the numbers along `axis` in ascending order. Not differentiated."""

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        """Join arrays along an existing axis."""

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """Return the same numbers in another shape."""

    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        """Repeat along new or length-1 axes."""

    def matrix_transpose(self, x: Array) -> Array:
        """Swap the last two axes."""

    def flip(self, x: Array, *, axis: tuple[int, ...]) -> Array:
        """Reverse the order along `axis`."""

    def tril(self, x: Array) -> Array:
        """Return the lower triangle of the last two axes; the rest is zero."""

    def take(self, x: Array, indices: Array, *, axis: int) -> Array:
        """Pick `indices` along `axis`."""

    # --- linear algebra ------------------------------------------------------------------------
    def diagonal(self, x: Array) -> Array:
        """Return the diagonal [..., n] of the last two axes."""

    def cholesky(self, a: Array) -> Array:
        """Return the lower Cholesky factor [..., n, n]; only the lower triangle is read.

        A matrix that is not positive definite gives NaN in its whole lower triangle, never an
        exception. The other matrices of the batch are not affected. An input with NaN gives some NaN.
        Differentiable; a caller that needs a symmetric gradient must symmetrise the input.
        """

    # --- extensions ----------------------------------------------------------------------------
    def solve_triangular(
        self, a: Array, b: Array, *, lower: bool = True, transpose: bool = False
    ) -> Array:
        """Solve a x = b (or aᵀ x = b) for triangular a [..., n, n] and b [..., n, k].

        Leading axes broadcast. Reads only the triangle named by `lower`. Differentiable in both.
        """

    def softplus(self, x: Array) -> Array:
        """Return log(1 + eˣ), accurate for large |x|. Differentiable."""

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        """Return x [..., n] with values [..., k] added at distinct indices [k]. Not differentiated."""

    def stop_gradient(self, x: Tree) -> Tree:
        """Return the same value as a constant for `value_and_grad`."""

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        """Return a function for the value and gradient of scalar `f(tree, *rest)` in every leaf of `tree`.

        The gradient has the structure of `tree`; a leaf that f does not use gets zeros. Raises
        `NoAutodiffError` on a backend without autodiff (see `Capabilities`).
        """

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        """Fold `carry = step(carry, xs[i])` for i = 0 … length−1 and return the last carry.

        Every leaf of `xs` has a leading axis of `length`; `xs` may be the empty tuple. In a compiled
        function, it is one loop in the framework's graph. Not differentiated.
        """

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        """Repeat `carry = step(carry)` while `condition(carry)` [] is true. Not differentiated."""

    def jit(self, f: F) -> F:
        """Compile `f` (trees in, trees out) in the instance's mode; return `f` itself in eager mode."""

    # --- measuring -----------------------------------------------------------------------------
    def sync(self, x: Tree) -> None:
        """Wait until every array of the tree is computed."""

    def peak_memory(self) -> int | None:
        """Return the peak bytes allocated on the accelerator so far; None on the CPU."""


def eps(dtype: str) -> float:
    """Return the machine epsilon of a dtype, given by name."""
    return float(np.finfo(dtype).eps)
