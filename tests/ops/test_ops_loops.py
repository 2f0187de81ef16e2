"""Loops of the kit in every mode, and what is compiled anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svgpbench.backends import framework_missing, load_backend
from svgpbench.checks.kit.numbers import Parts, numbers
from svgpbench.checks.kit.test_loops import *  # noqa: F403 - its tests, in the modes below
from svgpbench.ops import Array, Ops

MODES: list[Any] = [
    "numpy:eager",
    "jax:jit",
    "jax:eager",
    "torch:eager",
    pytest.param("torch:compile", marks=pytest.mark.slow),
    "tensorflow:function",
    "tensorflow:xla",
    "tensorflow:eager",
]


@pytest.fixture(params=MODES)
def moded(request: pytest.FixtureRequest) -> Ops:
    """Each backend in each of its modes."""
    name, _, mode = request.param.partition(":")
    if missing := framework_missing(name):
        pytest.skip(missing)
    return load_backend(name, mode)


@pytest.mark.parametrize("ops", ["jax", "tensorflow"], indirect=True)
def test_second_call_with_the_same_shape_does_not_trace_again(ops: Ops) -> None:
    assert ops.mode in ("jit", "function")
    traces = []

    def f(t: Parts, rate: Array) -> Parts:
        traces.append(1)
        return Parts(t.used * rate, t.unused, t.nested)

    compiled = ops.jit(f)
    for k in range(3):
        tree = Parts(ops.asarray(numbers(2, seed=k)), (), (ops.asarray(numbers(3, seed=k)),))
        out = compiled(tree, ops.asarray(np.float64(k)))
    assert isinstance(out, Parts)
    assert len(traces) == 1
    tree = tree._replace(used=ops.zeros((4,)))
    compiled(tree, ops.asarray(np.float64(1.0)))
    assert len(traces) == 2


@pytest.mark.parametrize("start", ["zeros", "eye"])
def test_a_state_is_compiled_once_be_it_the_first_or_the_next(start: str) -> None:
    """JAX compiles anew where an array is on no device in particular, as its own zeros are."""
    if missing := framework_missing("jax"):
        pytest.skip(missing)
    ops = load_backend("jax", "jit")
    state = ops.zeros((3, 3)) if start == "zeros" else ops.eye(3)
    step: Any = ops.jit(lambda state, X: state @ X)
    X = ops.asarray(numbers(3, 3))
    step(step(state, X), X)
    assert step._cache_size() == 1
