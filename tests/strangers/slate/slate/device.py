"""Arrays as CuPy has them: NumPy's ways over a memory that NumPy cannot see, and nothing copied unasked."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class DeviceArray:
    """Numbers of the device; only `get` brings them to the host."""

    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def get(self) -> Any:
        """A copy on the host."""
        return self._values.copy()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed; use .get()")

    shape = property(lambda self: self._values.shape)
    ndim = property(lambda self: self._values.ndim)
    dtype = property(lambda self: self._values.dtype)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __getitem__(self, index: Any) -> DeviceArray:
        parts = index if isinstance(index, tuple) else (index,)
        return DeviceArray(self._values[tuple(map(_inner, parts))])

    def __neg__(self) -> DeviceArray:
        return DeviceArray(-self._values)


def _inner(x: Any) -> Any:
    if isinstance(x, DeviceArray):
        return x._values
    if isinstance(x, np.ndarray) and x.ndim:
        raise TypeError("a NumPy array among arrays of the device")
    return x


def _operator(apply: Any, *, turned: bool = False) -> Any:
    def between(self: DeviceArray, other: Any) -> DeviceArray:
        pair = (self._values, _inner(other))
        with np.errstate(all="ignore"):
            return DeviceArray(apply(*reversed(pair)) if turned else apply(*pair))

    return between


_APPLY = vars(operator) | {"and": operator.and_}
for _name in ("add", "sub", "mul", "truediv", "matmul", "pow", "and"):
    setattr(DeviceArray, f"__{_name}__", _operator(_APPLY[_name]))
    setattr(DeviceArray, f"__r{_name}__", _operator(_APPLY[_name], turned=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(DeviceArray, f"__{_name}__", _operator(getattr(operator, _name)))
DeviceArray.__hash__ = object.__hash__  # type: ignore[method-assign]


def on_device(function: Any) -> Any:
    """A function of NumPy's or SciPy's on arrays of the device."""

    def apply(*arrays: Any, **words: Any) -> DeviceArray:
        with np.errstate(all="ignore"):
            return DeviceArray(function(*map(_inner, arrays), **words))

    return apply
