"""Arrays of the counting backend: a shape and a dtype in counted memory, without numbers.

Every operation reads its arrays and writes its result. Nothing is fused, and an array that is used twice
is read once. Transposes, reshapes, slices, diagonals and broadcasts are views, which move no bytes.
Adjoints consist of operations, so reverse mode is counted by the same rules. It keeps in memory the arrays
to which adjoints refer, as an eager framework does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from svgpbench.errors import UserError
from svgpbench_backends.counting_ledger import Buffer, Kind, Ledger
from svgpbench_backends.counting_tape import Node

Shape: TypeAlias = tuple[int, ...]
Rule: TypeAlias = "Callable[[ShapeArray], ShapeArray]"
BOOL = np.dtype(bool)


class ShapeArray:
    """An array with a shape and a dtype, in its own memory or that of the array it views."""

    __slots__ = ("buffer", "distinct", "dtype", "node", "shape")
    __array_ufunc__ = None  # operators with NumPy scalars are defined by this class
    __iter__ = None

    def __init__(self, shape: Shape, dtype: np.dtype[Any], buffer: Buffer, distinct: int) -> None:
        self.shape, self.dtype, self.buffer = shape, dtype, buffer
        self.distinct = distinct  # stored numbers; a broadcast view has more entries
        self.node: Node | None = None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def entries(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def bytes_moved(self) -> int:
        """Number of bytes moved by one read or write."""
        return self.distinct * self.dtype.itemsize

    @property
    def ledger(self) -> Ledger:
        """Ledger that counts its operations."""
        return self.buffer.ledger

    def __repr__(self) -> str:
        return f"ShapeArray({list(self.shape)}, {self.dtype})"

    def __bool__(self) -> bool:
        raise no_numbers()

    def __float__(self) -> float:
        raise no_numbers()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise no_numbers()

    def __add__(self, other: Any) -> ShapeArray:
        return attach(elementwise(self, other), (self, _same), (other, _same))

    def __sub__(self, other: Any) -> ShapeArray:
        return attach(elementwise(self, other), (self, _same), (other, operator.neg))

    def __rsub__(self, other: Any) -> ShapeArray:
        return attach(elementwise(other, self), (self, operator.neg))

    def __neg__(self) -> ShapeArray:
        return attach(elementwise(self), (self, operator.neg))

    def __mul__(self, other: Any) -> ShapeArray:
        x, y = constant(self), constant(other)
        return attach(elementwise(self, other), (self, lambda g: g * y), (other, lambda g: g * x))

    def __truediv__(self, other: Any) -> ShapeArray:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> ShapeArray:
        return divide(other, self)

    def __pow__(self, power: float) -> ShapeArray:
        if not isinstance(power, Number):
            return NotImplemented
        x = constant(self)
        return attach(elementwise(self), (self, lambda g: g * (power * x ** (power - 1))))

    def __matmul__(self, other: Any) -> ShapeArray:
        return matmul(self, other)

    def __getitem__(self, key: Any) -> ShapeArray:
        shape = indexed(self.shape, key if isinstance(key, tuple) else (key,))
        full = self.shape
        return view(self, shape, lambda g: scattered(g, full))

    def _compare(self, other: Any) -> ShapeArray:
        return elementwise(self, other, dtype=BOOL)

    def __invert__(self) -> ShapeArray:
        return elementwise(self, dtype=BOOL)

    __radd__, __rmul__ = __add__, __mul__
    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = __ne__ = _compare  # type: ignore[assignment]
    __and__ = __rand__ = __or__ = __ror__ = _compare
    __hash__ = object.__hash__


def no_numbers() -> UserError:
    """Return the error for reading a value from a shape."""
    return UserError(
        "backend 'counting' computes shapes only: nothing can be read from them or decided by "
        "them; use a backend that computes"
    )


def constant(x: Any) -> Any:
    """Return an array of the same memory that is not on the tape, or a Python number unchanged."""
    if isinstance(x, ShapeArray):
        return ShapeArray(x.shape, x.dtype, x.buffer, x.distinct)
    return x


def record(
    ledger: Ledger,
    inputs: Iterable[ShapeArray],
    shape: Shape,
    dtype: np.dtype[Any],
    flops: int = 0,
    *,
    kind: Kind = "elementwise",
    read: int | None = None,
) -> ShapeArray:
    """Count one operation and return its result in new memory.

    The bytes read are those of the whole inputs, or `read`.
    """
    distinct = math.prod(shape)
    size = distinct * dtype.itemsize
    out = ShapeArray(shape, dtype, Buffer(ledger, size), distinct)
    if read is None:
        read = sum(x.bytes_moved for x in {id(x): x for x in inputs}.values())
    ledger.operation(flops, read + size, kind)
    return out


def attach(out: ShapeArray, *pairs: tuple[Any, Rule]) -> ShapeArray:
    """Put `out` on the tape, with the rule of each input that is on it, and return it.

    The adjoint sums over broadcast axes.
    """
    on_tape = [(x.node, x.shape, rule) for x, rule in pairs if getattr(x, "node", None) is not None]
    if on_tape:
        nodes, shapes, rules = zip(*on_tape, strict=True)
        out.node = Node(
            nodes, lambda g: [sum_to(rule(g), s) for rule, s in zip(rules, shapes, strict=True)]
        )
    return out


def view(x: ShapeArray, shape: Shape, rule: Rule) -> ShapeArray:
    """Return the memory of x with another shape and the adjoint `rule`."""
    out = ShapeArray(shape, x.dtype, x.buffer, min(x.distinct, math.prod(shape)))
    return attach(out, (x, rule))


def elementwise(*inputs: Any, dtype: np.dtype[Any] | None = None) -> ShapeArray:
    """Count one FLOP per entry of the result, also for transcendental functions, and return it."""
    arrays = [x for x in inputs if isinstance(x, ShapeArray)]
    for x in inputs:
        if not isinstance(x, ShapeArray | Number):
            raise TypeError(f"an array of shapes does not mix with {type(x).__name__}")
    shape = broadcast(*(x.shape for x in arrays))
    if dtype is None:
        dtype = np.result_type(*(x.dtype for x in arrays))
    return record(arrays[0].ledger, arrays, shape, dtype, math.prod(shape))


def divide(x: Any, y: Any) -> ShapeArray:
    """Return x / y; its adjoints are g / y and −(g · x/y) / y."""
    out = elementwise(x, y)
    ratio, divisor = constant(out), constant(y)
    return attach(out, (x, lambda g: g / divisor), (y, lambda g: -(g * ratio) / divisor))


def matmul(a: ShapeArray, b: ShapeArray) -> ShapeArray:
    """Return a product and count 2mnk FLOPs; its adjoint is one product per factor on the tape."""
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"no product of shapes {a.shape} and {b.shape}")
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    flops = 2 * math.prod(batch) * m * n * k
    out = record(a.ledger, (a, b), (*batch, m, n), a.dtype, flops, kind="product")
    A, B = constant(a), constant(b)
    return attach(out, (a, lambda g: g @ transpose(B)), (b, lambda g: transpose(A) @ g))


def transpose(x: ShapeArray) -> ShapeArray:
    """Return a view with the last two axes swapped."""
    return view(x, (*x.shape[:-2], x.shape[-1], x.shape[-2]), transpose)


def reshape(x: ShapeArray, shape: Sequence[int]) -> ShapeArray:
    """Return a view of the same entries in another shape; one length may be −1."""
    product = math.prod(n for n in shape if n != -1)
    full = tuple(x.entries // product if n == -1 else n for n in shape)
    if math.prod(full) != x.entries:
        raise ValueError(f"shape {x.shape} cannot become {tuple(shape)}")
    old = x.shape
    return view(x, full, lambda g: reshape(g, old))


def broadcast_to(x: ShapeArray, shape: Sequence[int]) -> ShapeArray:
    """Return a view that repeats entries; its adjoint sums over the repeats."""
    if broadcast(x.shape, tuple(shape)) != tuple(shape):
        raise ValueError(f"shape {x.shape} does not broadcast to {tuple(shape)}")
    return view(x, tuple(shape), _same)


def total(
    x: ShapeArray, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
) -> ShapeArray:
    """Return a sum and count n − 1 FLOPs for n numbers; its adjoint is a broadcast view."""
    full = x.shape
    with_ones, shape = reduced(full, axis, keepdims=keepdims)
    out = record(x.ledger, (x,), shape, x.dtype, x.entries - math.prod(shape))
    return attach(out, (x, lambda g: broadcast_to(reshape(g, with_ones), full)))


def sum_to(g: ShapeArray, shape: Shape) -> ShapeArray:
    """Undo broadcasting: sum over the axes that `shape` lacks or has with length 1."""
    if g.shape == shape:
        return g
    new = g.ndim - len(shape)
    repeated = [i + new for i, n in enumerate(shape) if n == 1 and g.shape[i + new] != 1]
    return reshape(total(g, (*range(new), *repeated)), shape)


def copied(x: ShapeArray) -> ShapeArray:
    """Return a copy that is not on the tape, for a triangle or another order."""
    return record(x.ledger, (x,), x.shape, x.dtype)


def scattered(g: ShapeArray, shape: Shape) -> ShapeArray:
    """Return the adjoint of a slice or a diagonal: zeros with g in its place."""
    return record(g.ledger, (g,), shape, g.dtype)


def broadcast(*shapes: Shape) -> Shape:
    """Return the common shape; NumPy's own function refuses more than 2⁶³ entries."""
    longest = max(map(len, shapes))
    out = []
    for lengths in zip(*[(1,) * (longest - len(s)) + s for s in shapes], strict=True):
        others = {n for n in lengths if n != 1}
        if len(others) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        out.append(others.pop() if others else 1)
    return tuple(out)


def reduced(
    shape: Shape, axis: int | tuple[int, ...] | None, *, keepdims: bool
) -> tuple[Shape, Shape]:
    """Return the shape with `axis` of length 1, and the shape of the result."""
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    summed = {range(len(shape))[a] for a in axes}
    with_ones = tuple(1 if i in summed else n for i, n in enumerate(shape))
    if keepdims:
        return with_ones, with_ones
    return with_ones, tuple(n for i, n in enumerate(shape) if i not in summed)


def indexed(shape: Shape, key: tuple[Any, ...]) -> Shape:
    """Return the shape after indexing with integers, slices, None and one ellipsis."""
    used = sum(k is not None and k is not Ellipsis for k in key)
    if used > len(shape):
        raise IndexError(f"{used} indices for shape {shape}")
    ellipsis = next((i for i, k in enumerate(key) if k is Ellipsis), len(key))
    key = (*key[:ellipsis], *[slice(None)] * (len(shape) - used), *key[ellipsis + 1 :])
    lengths, out = iter(shape), []
    for k in key:
        if k is None:
            out.append(1)
        elif isinstance(k, slice):
            start, stop, step = k.indices(next(lengths))
            out.append(max(0, -((start - stop) // step)))  # len(range(...)) fails from 2⁶³
        elif isinstance(k, int | np.integer):
            range(next(lengths))[k]  # raises if out of range
        else:
            raise TypeError(f"an array of shapes is not indexed by {type(k).__name__}; use take")
    return tuple(out)


def _same(g: ShapeArray) -> ShapeArray:
    return g
