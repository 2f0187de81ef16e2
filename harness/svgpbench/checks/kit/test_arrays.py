"""Creation and reading of arrays, and attributes of an `Ops`, on every backend and dtype."""

from __future__ import annotations

import numpy as np

from svgpbench.checks.kit.numbers import assert_same
from svgpbench.ops import Ops


def test_asarray_gives_floats_the_dtype_and_keeps_integers(typed: Ops) -> None:
    for x in (1.5, np.float32(1.5), [1.5, 2.0], np.ones((2, 3))):
        assert_same(typed, typed.asarray(x), x)
    integers = typed.to_numpy(typed.asarray(np.arange(3)))
    assert integers.dtype.kind == "i"
    np.testing.assert_array_equal(integers, [0, 1, 2])


def test_asarray_copies_floats(typed: Ops) -> None:
    # torch.from_numpy shares NumPy's memory, and jax.numpy.asarray may share it on the CPU
    x = np.ones(3, dtype=typed.dtype)
    array = typed.asarray(x)
    x[0] = 9.0
    assert_same(typed, array, np.ones(3))


def test_asarray_accepts_read_only_memory(typed: Ops) -> None:
    x = np.ones(3)
    # torch.from_numpy warns of such an array
    x.flags.writeable = False
    assert_same(typed, typed.asarray(x), x)


def test_zeros_and_eye(typed: Ops) -> None:
    assert_same(typed, typed.zeros((2, 3)), np.zeros((2, 3)))
    assert_same(typed, typed.zeros(()), np.zeros(()))
    assert_same(typed, typed.eye(3), np.eye(3))


def test_instance_is_hashable_and_tells_what_it_is(typed: Ops) -> None:
    assert isinstance(typed, Ops)
    assert {typed: 1}[typed] == 1
    assert typed.mode in typed.capabilities.modes
    assert typed.dtype in typed.capabilities.dtypes
    assert typed.device in typed.capabilities.devices
    assert (typed.peak_memory() is None) == (typed.device == "cpu")
    typed.sync((typed.zeros((2,)), ((), typed.zeros(()))))
