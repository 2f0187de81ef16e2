"""Every function of the `Ops` protocol, on every backend and dtype, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import scipy.linalg
from finite_differences import gradient

from svgpbench.ops import Array, Ops, eps
from svgpbench.plugins import framework_missing, load_backend

Floats = npt.NDArray[np.float64]

PRECISIONS = [
    ("numpy", "float64"),
    *[(b, d) for b in ("jax", "torch", "tensorflow") for d in ("float64", "float32")],
]


@pytest.fixture(scope="module", params=PRECISIONS, ids=" ".join)
def typed(request: pytest.FixtureRequest) -> Ops:
    """Each backend in each dtype that it offers."""
    name, dtype = request.param
    if missing := framework_missing(name):
        pytest.skip(missing)
    return load_backend(name, dtype=dtype)


def numbers(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def positive_definite(*shape: int) -> Floats:
    x = numbers(*shape)
    return x @ np.swapaxes(x, -1, -2) + 0.5 * np.eye(shape[-1])


def assert_same(ops: Ops, got: Array, wanted: npt.ArrayLike, units: float = 8.0) -> None:
    """Equal to `units` machine epsilons of the largest entry, in the instance's dtype."""
    value, wanted = ops.to_numpy(got), np.asarray(wanted)
    assert value.dtype == np.dtype(ops.dtype)
    assert value.shape == wanted.shape
    scale = max(1.0, float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)))
    np.testing.assert_allclose(value, wanted, rtol=0, atol=units * eps(ops.dtype) * scale)


# --- making and reading arrays ---------------------------------------------------------------------


def test_asarray_gives_floats_the_dtype_and_keeps_integers(typed: Ops) -> None:
    for x in (1.5, np.float32(1.5), [1.5, 2.0], np.ones((2, 3))):
        assert_same(typed, typed.asarray(x), x)
    integers = typed.to_numpy(typed.asarray(np.arange(3)))
    assert integers.dtype.kind == "i"
    np.testing.assert_array_equal(integers, [0, 1, 2])


def test_asarray_copies_floats(typed: Ops) -> None:
    x = np.ones(3, dtype=typed.dtype)
    held = typed.asarray(x)
    x[0] = 9.0
    assert_same(typed, held, np.ones(3))


def test_asarray_accepts_read_only_memory(typed: Ops) -> None:
    x = np.ones(3)
    x.flags.writeable = False
    assert_same(typed, typed.asarray(x), x)


def test_zeros_and_eye(typed: Ops) -> None:
    assert_same(typed, typed.zeros((2, 3)), np.zeros((2, 3)))
    assert_same(typed, typed.zeros(()), np.zeros(()))
    assert_same(typed, typed.eye(3), np.eye(3))


# --- elementwise, shapes and sums ------------------------------------------------------------------

X = numbers(2, 3, 4)
POSITIVE = np.exp(X)
ELEMENTWISE: dict[str, tuple[Callable[[Ops, Array], Array], Callable[[Floats], Any], Floats]] = {
    "exp": (lambda ops, x: ops.exp(x), np.exp, X),
    "log": (lambda ops, x: ops.log(x), np.log, POSITIVE),
    "log1p": (lambda ops, x: ops.log1p(x), np.log1p, np.array([1e-12, -1e-9, 0.5, 30.0])),
    "sqrt": (lambda ops, x: ops.sqrt(x), np.sqrt, POSITIVE),
    "abs": (lambda ops, x: ops.abs(x), np.abs, X),
    "maximum of a number": (lambda ops, x: ops.maximum(x, 0.25), lambda x: np.maximum(x, 0.25), X),
    "maximum of an array": (
        lambda ops, x: ops.maximum(x, x[:1] * x[:1]),
        lambda x: np.maximum(x, x[:1] ** 2),
        X,
    ),
    "where": (
        lambda ops, x: ops.where(x > 0.0, x, 2.0 * x),
        lambda x: np.where(x > 0, x, 2 * x),
        X,
    ),
    "where, broadcast": (
        lambda ops, x: ops.where(x[..., :1] > 0.0, x, x[:1]),
        lambda x: np.where(x[..., :1] > 0, x, x[:1]),
        X,
    ),
    "softplus": (
        lambda ops, x: ops.softplus(x),
        lambda x: np.logaddexp(x, 0),
        np.linspace(-60, 60, 241),
    ),
    "sum": (lambda ops, x: ops.sum(x), np.sum, X),
    "sum over an axis": (lambda ops, x: ops.sum(x, axis=-2), lambda x: x.sum(-2), X),
    "sum over axes, kept": (
        lambda ops, x: ops.sum(x, axis=(0, -1), keepdims=True),
        lambda x: x.sum((0, -1), keepdims=True),
        X,
    ),
    "reshape": (lambda ops, x: ops.reshape(x, (4, -1)), lambda x: x.reshape(4, -1), X),
    "broadcast_to": (
        lambda ops, x: ops.broadcast_to(x[:, :1], (5, 2, 3, 4)),
        lambda x: np.broadcast_to(x[:, :1], (5, 2, 3, 4)),
        X,
    ),
    "matrix_transpose": (
        lambda ops, x: ops.matrix_transpose(x),
        lambda x: np.swapaxes(x, -1, -2),
        X,
    ),
    "flip": (
        lambda ops, x: ops.flip(x, axis=(-2, -1)),
        lambda x: x[..., ::-1, ::-1],
        X,
    ),
    "tril": (lambda ops, x: ops.tril(x), np.tril, X),
    "take": (
        lambda ops, x: ops.take(x, ops.asarray(np.array([2, 0, 2])), axis=-2),
        lambda x: np.take(x, [2, 0, 2], axis=-2),
        X,
    ),
    "take of the first axis": (
        lambda ops, x: ops.take(x, ops.asarray(np.array([1])), axis=0),
        lambda x: x[[1]],
        X,
    ),
    "diagonal": (
        lambda ops, x: ops.diagonal(x),
        lambda x: np.diagonal(x, axis1=-2, axis2=-1),
        numbers(2, 3, 3),
    ),
    "operators with Python numbers": (
        lambda ops, x: (2.0 * x + 1.0 - x / 3.0) ** 2 - 1.0 / (2.0 + x * x),
        lambda x: (2 * x + 1 - x / 3) ** 2 - 1 / (2 + x * x),
        X,
    ),
    "indexing and matmul": (
        lambda ops, x: (x @ x[..., :1, :, None][..., 0, :, :])[..., 0],
        lambda x: (x @ x[..., :1, :, None][..., 0, :, :])[..., 0],
        X,
    ),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_function_equals_numpy_and_keeps_the_dtype(typed: Ops, name: str) -> None:
    function, reference, x = ELEMENTWISE[name]
    x = x.astype(typed.dtype).astype(np.float64)  # the number that the backend really sees
    assert_same(typed, function(typed, typed.asarray(x)), reference(x), units=32)


def test_softplus_and_log1p_are_accurate_where_they_are_small(typed: Ops) -> None:
    x = np.array([-80.0, -40.0, -20.0]).astype(typed.dtype)
    got = typed.to_numpy(typed.softplus(typed.asarray(x)))
    np.testing.assert_allclose(got, np.exp(np.float64(x)), rtol=1e-8 + 16 * eps(typed.dtype))
    small = np.array([1e-20, -1e-15])
    got = typed.to_numpy(typed.log1p(typed.asarray(small)))
    np.testing.assert_allclose(got, small, rtol=16 * eps(typed.dtype))


def test_log_and_sqrt_outside_their_domain(typed: Ops) -> None:
    x = typed.asarray(np.array([-1.0, 0.0]))
    np.testing.assert_array_equal(typed.to_numpy(typed.log(x)), [np.nan, -np.inf])
    np.testing.assert_array_equal(typed.to_numpy(typed.sqrt(x)), [np.nan, 0.0])


def test_index_add_adds_a_copy(typed: Ops) -> None:
    index = typed.asarray(np.array([3, 1]))
    for shape in ((5,), (2, 5), (2, 3, 5)):
        x, values = numbers(*shape), numbers(*shape[:-1], 2)
        wanted = np.array(x)
        wanted[..., [3, 1]] += values
        held = typed.asarray(x)
        assert_same(typed, typed.index_add(held, index, typed.asarray(values)), wanted)
        assert_same(typed, held, x)


# --- linear algebra --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5), (2, 3, 5, 5)], ids=str)
def test_cholesky_residual(typed: Ops, shape: tuple[int, ...]) -> None:
    A = positive_definite(*shape)
    A = A.astype(typed.dtype).astype(np.float64)
    L = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    assert L.dtype == np.dtype(typed.dtype)
    assert not np.any(np.triu(L, 1))
    L = L.astype(np.float64)
    residual = np.linalg.norm(L @ np.swapaxes(L, -1, -2) - A, axis=(-2, -1))
    bound = 2 * shape[-1] * eps(typed.dtype) * np.linalg.norm(A, axis=(-2, -1))
    assert np.all(residual <= bound)


def test_cholesky_reads_the_lower_triangle_only(typed: Ops) -> None:
    A = positive_definite(3, 5, 5)
    spoiled = np.tril(A) + np.triu(np.full((5, 5), 1e3), 1)
    wanted = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    np.testing.assert_array_equal(typed.to_numpy(typed.cholesky(typed.asarray(spoiled))), wanted)
    spoiled = np.where(np.triu(np.ones((5, 5), dtype=bool), 1), np.nan, A)
    np.testing.assert_array_equal(typed.to_numpy(typed.cholesky(typed.asarray(spoiled))), wanted)


@pytest.mark.parametrize("bad", ["indefinite", "first pivot", "last pivot", "singular"])
def test_cholesky_of_a_matrix_that_is_not_positive_definite_is_nan(typed: Ops, bad: str) -> None:
    A = positive_definite(3, 4, 4)
    wanted = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    A[1] = {
        "indefinite": np.eye(4) - 0.9 * np.ones((4, 4)),
        "first pivot": np.diag([-1.0, 1.0, 1.0, 1.0]),
        "last pivot": np.diag([1.0, 1.0, 1.0, -1.0]),
        "singular": np.diag([1.0, 0.0, 1.0, 1.0]),
    }[bad]
    got = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    assert np.all(np.isnan(got[1][np.tril_indices(4)]))
    np.testing.assert_array_equal(got[[0, 2]], wanted[[0, 2]])
    compiled = typed.to_numpy(typed.jit(typed.cholesky)(typed.asarray(A)))
    np.testing.assert_array_equal(np.isnan(np.tril(compiled)), np.isnan(np.tril(got)))


def test_cholesky_of_nan_is_not_finite_and_does_not_raise(typed: Ops) -> None:
    A = positive_definite(3, 4, 4)
    A[1, 3, 2] = A[1, 2, 3] = np.nan
    got = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    assert np.any(np.isnan(got[1]))
    assert np.all(np.isfinite(got[[0, 2]]))


def test_solve_against_a_failed_factor_is_nan_and_does_not_raise(typed: Ops) -> None:
    L = np.stack([np.eye(3), np.tril(np.full((3, 3), np.nan))])
    got = typed.to_numpy(
        typed.solve_triangular(typed.asarray(L), typed.asarray(np.ones((2, 3, 1))))
    )
    assert np.all(np.isnan(got[1]))
    np.testing.assert_array_equal(got[0], np.ones((3, 1)))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [True, False])
def test_solve_triangular_residual_and_triangle(typed: Ops, lower: bool, transpose: bool) -> None:
    """Leading axes broadcast, and the other triangle may hold anything."""
    mask = np.tri(4, dtype=bool) if lower else np.tri(4, dtype=bool).T
    for a_shape, b_shape in (((4, 4), (4, 2)), ((3, 4, 4), (4, 2)), ((1, 4, 4), (3, 4, 2))):
        A = (numbers(*a_shape) + 4.0 * np.eye(4)).astype(typed.dtype).astype(np.float64)
        b = numbers(*b_shape).astype(typed.dtype).astype(np.float64)
        for filler in (0.0, np.nan):
            x = typed.solve_triangular(
                typed.asarray(np.where(mask, A, filler)),
                typed.asarray(b),
                lower=lower,
                transpose=transpose,
            )
            T = np.where(mask, A, 0.0)
            T = np.swapaxes(T, -1, -2) if transpose else T
            value = typed.to_numpy(x)
            assert value.dtype == np.dtype(typed.dtype)
            assert value.shape == (*np.broadcast_shapes(a_shape[:-2], b_shape[:-2]), 4, 2)
            bound = 16 * eps(typed.dtype) * np.linalg.norm(T) * np.linalg.norm(value)
            assert np.linalg.norm(T @ value.astype(np.float64) - b) <= bound


def test_solve_triangular_equals_scipy(ops: Ops) -> None:
    A, b = np.tril(numbers(4, 4)) + 4.0 * np.eye(4), numbers(4, 3)
    got = ops.solve_triangular(ops.asarray(A), ops.asarray(b), transpose=True)
    wanted = scipy.linalg.solve_triangular(A, b, lower=True, trans=1)
    assert_same(ops, got, wanted, units=32)


# --- derivatives -----------------------------------------------------------------------------------


def solve_case(lower: bool, transpose: bool) -> Callable[..., Array]:
    return lambda ops, a, b: ops.solve_triangular(a, b, lower=lower, transpose=transpose)


def symmetric_cholesky(ops: Ops, a: Array) -> Array:
    return ops.cholesky(0.5 * (a + ops.matrix_transpose(a)))


TRIANGULAR = numbers(2, 3, 3) + 3.0 * np.eye(3)
SMALL = numbers(2, 3)
DIFFERENTIABLE: dict[str, tuple[Callable[..., Array], list[Floats]]] = {
    "cholesky": (symmetric_cholesky, [positive_definite(2, 3, 3)]),
    "cholesky of one matrix": (symmetric_cholesky, [positive_definite(3, 3)]),
    **{
        f"solve, {'lower' if lower else 'upper'}{', transposed' if transpose else ''}": (
            solve_case(lower, transpose),
            [TRIANGULAR, numbers(2, 3, 2)],
        )
        for lower in (True, False)
        for transpose in (True, False)
    },
    "solve, factor broadcast": (solve_case(True, False), [TRIANGULAR[:1], numbers(2, 3, 2)]),
    "solve, right side broadcast": (solve_case(True, True), [TRIANGULAR, numbers(3, 2)]),
    "diagonal": (lambda ops, x: ops.diagonal(x), [numbers(2, 3, 3)]),
    "tril": (lambda ops, x: ops.tril(x) * x, [numbers(2, 3, 3)]),
    "flip": (lambda ops, x: ops.flip(x, axis=(-2, -1)) * x, [numbers(2, 3, 3)]),
    "take": (lambda ops, x: ops.take(x, ops.asarray(np.array([2, 0, 2])), axis=1) ** 2, [SMALL]),
    "where": (lambda ops, x: ops.where(x > 0.0, x * x, -3.0 * x), [SMALL]),
    "maximum": (lambda ops, x: ops.maximum(x * x, 0.05), [SMALL]),
    "abs": (lambda ops, x: ops.abs(x) * x, [SMALL]),
    "exp, log, sqrt, log1p": (
        lambda ops, x: ops.exp(-x) + ops.log(x) * ops.sqrt(x) + ops.log1p(x),
        [np.exp(SMALL)],
    ),
    "softplus": (lambda ops, x: ops.softplus(3.0 * x), [SMALL]),
    "sum": (lambda ops, x: ops.sum(x * x, axis=(0, 1), keepdims=True) * x, [SMALL]),
    "reshape and broadcast": (
        lambda ops, x: ops.broadcast_to(ops.reshape(x * x, (3, 2)), (4, 3, 2)),
        [SMALL],
    ),
    "matmul": (
        lambda ops, a, b: ops.matrix_transpose(a) @ (a @ b[..., None])[..., 0][..., None],
        [numbers(2, 3, 3), SMALL],
    ),
    "indexing": (lambda ops, x: x[:, None, 1:] * x[..., :1, None], [SMALL]),
}


def scalar(ops: Ops, name: str) -> Callable[[Any], Array]:
    """A weighted sum of the function's entries, so that no symmetry hides a wrong one."""
    function, arguments = DIFFERENTIABLE[name]
    shape = ops.to_numpy(function(ops, *[ops.asarray(x) for x in arguments])).shape
    weights = ops.asarray(np.cos(1.0 + np.arange(np.prod(shape))).reshape(shape))
    return lambda tree: ops.sum(weights * function(ops, *tree))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_numpy_gradient_equals_finite_differences(name: str) -> None:
    ops = load_backend("numpy")
    _, arguments = DIFFERENTIABLE[name]
    f = scalar(ops, name)
    _, got = ops.value_and_grad(f)(tuple(arguments))
    wanted = gradient(lambda *xs: float(f(xs)), arguments)
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape
        # fourth order with h = 1e-3: truncation and rounding both near 1e-11
        np.testing.assert_allclose(g, w, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_equals_the_numpy_reference(typed: Ops, name: str) -> None:
    reference = load_backend("numpy")
    _, arguments = DIFFERENTIABLE[name]
    f, units = scalar(reference, name), 512.0
    _, wanted = reference.value_and_grad(f)(tuple(arguments))
    inputs = tuple(typed.asarray(x) for x in arguments)
    value, got = typed.jit(typed.value_and_grad(scalar(typed, name)))(inputs)
    assert_same(typed, value, f(tuple(arguments)), units=256)
    for g, w in zip(got, wanted, strict=True):
        assert_same(typed, g, w, units=units)


class Parts(NamedTuple):
    used: Any
    unused: Any
    nested: Any


def test_gradient_has_the_trees_structure_and_zeros_for_an_unused_leaf(typed: Ops) -> None:
    x = typed.asarray(np.array([1.0, 2.0]))
    tree = Parts(x, typed.zeros((2, 2)) + 1.0, (x * 3.0, ()))

    def f(t: Parts, factor: Array) -> Array:
        return factor * (typed.sum(t.used * t.used) + typed.sum(t.nested[0]))

    value, g = typed.value_and_grad(f)(tree, typed.asarray(2.0))
    assert_same(typed, value, 2.0 * (5.0 + 9.0))
    assert isinstance(g, Parts)
    assert_same(typed, g.used, [4.0, 8.0])
    assert_same(typed, g.unused, np.zeros((2, 2)))
    assert_same(typed, g.nested[0], [2.0, 2.0])
    assert g.nested[1] == ()


def test_gradient_of_a_function_that_uses_nothing_is_zero(ops: Ops) -> None:
    x, constant = ops.asarray(np.ones(2)), ops.asarray(3.0)
    value, (g, empty) = ops.value_and_grad(lambda t: constant * 2.0)((x, ()))
    assert_same(ops, value, 6.0)
    assert_same(ops, g, np.zeros(2))
    assert empty == ()
    value, g = ops.value_and_grad(lambda t: constant * 2.0)(((),))
    assert_same(ops, value, 6.0)
    assert g == ((),)


def test_stop_gradient_keeps_the_value_of_a_tree_and_hides_it(typed: Ops) -> None:
    x = typed.asarray(np.array([1.0, 2.0]))

    def f(t: Any) -> Array:
        held = typed.stop_gradient(Parts(t, t, (t, ())))
        return typed.sum(t * held.used * held.nested[0])

    value, g = typed.value_and_grad(f)(x)
    assert_same(typed, value, 9.0)
    assert_same(typed, g, [1.0, 4.0])


def test_gradient_of_a_failed_cholesky_is_not_finite(ops: Ops) -> None:
    bad = ops.asarray(np.array([[1.0, 2.0], [2.0, 1.0]]))
    value, g = ops.value_and_grad(lambda a: ops.sum(ops.tril(ops.cholesky(a))))(bad)
    assert np.isnan(ops.to_numpy(value))
    assert not np.all(np.isfinite(ops.to_numpy(g)))


# --- loops and compilation -------------------------------------------------------------------------


def test_scan_equals_a_loop_with_and_without_xs(typed: Ops) -> None:
    start = (typed.asarray(np.array([1.0, 2.0])), (typed.zeros(()), ()))
    rows, shifts = numbers(5, 2), numbers(5)

    def with_xs(carry: Any, x: Any) -> Any:
        a, (total, empty) = carry
        row, shift = x
        return 0.5 * a + row, (total + shift * typed.sum(a), empty)

    def without(carry: Any, _: Any) -> Any:
        a, (total, empty) = carry
        return 0.5 * a, (total + typed.sum(a), empty)

    a, total, b, plain = np.array([1.0, 2.0]), 0.0, np.array([1.0, 2.0]), 0.0
    for row, shift in zip(rows, shifts, strict=True):
        a, total = 0.5 * a + row, total + shift * a.sum()
        b, plain = 0.5 * b, plain + b.sum()
    xs = (typed.asarray(rows), typed.asarray(shifts))
    for wrap in (typed.jit, lambda f: f):
        got, (got_total, empty) = wrap(lambda c, x: typed.scan(with_xs, c, x, length=5))(start, xs)
        assert_same(typed, got, a, units=64)
        assert_same(typed, got_total, total, units=64)
        assert empty == ()
        got, (got_total, _) = wrap(lambda c: typed.scan(without, c, (), length=5))(start)
        assert_same(typed, got, b, units=64)
        assert_same(typed, got_total, plain, units=64)


def test_second_call_with_the_same_shape_does_not_trace_again(ops: Ops) -> None:
    if ops.mode not in ("jit", "function"):
        pytest.skip(f"{ops.name} runs eagerly")
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


def test_compiled_and_plain_functions_agree(typed: Ops) -> None:
    A = typed.asarray(positive_definite(2, 4, 4))

    def f(a: Array) -> tuple[Array, Array]:
        L = typed.cholesky(a)
        return L, typed.solve_triangular(L, a)

    for plain, compiled in zip(f(A), typed.jit(f)(A), strict=True):
        assert_same(typed, compiled, typed.to_numpy(plain).astype(np.float64), units=64)


def test_instance_is_hashable_and_tells_what_it_is(typed: Ops) -> None:
    assert isinstance(typed, Ops)
    assert {typed: 1}[typed] == 1
    assert typed.mode in typed.capabilities.modes
    assert typed.dtype in typed.capabilities.dtypes
    assert typed.device == "cpu"
    assert typed.peak_memory() is None
    typed.sync((typed.zeros((2,)), ((), typed.zeros(()))))
