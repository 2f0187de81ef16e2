"""The TensorFlow backend: `tf.function` by default, XLA (`jit_compile`) as a named mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from svgpbench.errors import UserError
from svgpbench.ops import Array, Capabilities, Tree
from svgpbench.tree import leaves, rebuild, tree_map
from svgpbench_backends.frameworks import TENSORFLOW_OFFERS

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


class TensorFlowOps:
    """TensorFlow on the CPU or one GPU."""

    capabilities: ClassVar[Capabilities] = TENSORFLOW_OFFERS
    name = "tensorflow"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        if device == "cuda" and not tf.config.list_physical_devices("GPU"):
            raise UserError(
                "backend 'tensorflow' has no device 'cuda' here; see `svgpbench doctor`"
            )
        # this would merge sums into one whose order depends on when buffers become free
        tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
        self.mode, self.dtype, self.device = mode, dtype, device
        self._dtype = getattr(tf, dtype)
        self._place = "/GPU:0" if device == "cuda" else "/CPU:0"

    def asarray(self, x: npt.ArrayLike) -> Array:
        x = np.asarray(x)
        with tf.device(self._place):
            return tf.constant(x.astype(self.dtype) if x.dtype.kind == "f" else x)

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        return np.asarray(x)

    def zeros(self, shape: Sequence[int]) -> Array:
        return tf.zeros(shape, self._dtype)

    def eye(self, n: int) -> Array:
        return tf.eye(n, dtype=self._dtype)

    exp = staticmethod(tf.exp)
    log = staticmethod(tf.math.log)
    log1p = staticmethod(tf.math.log1p)
    sqrt = staticmethod(tf.sqrt)
    abs = staticmethod(tf.abs)
    maximum = staticmethod(tf.maximum)
    where = staticmethod(tf.where)
    reshape = staticmethod(tf.reshape)
    broadcast_to = staticmethod(tf.broadcast_to)
    matrix_transpose = staticmethod(tf.linalg.matrix_transpose)
    softplus = staticmethod(tf.math.softplus)
    erfc = staticmethod(tf.math.erfc)
    lgamma = staticmethod(tf.math.lgamma)
    digamma = staticmethod(tf.math.digamma)
    sin = staticmethod(tf.sin)
    cos = staticmethod(tf.cos)
    sum = staticmethod(tf.reduce_sum)
    max = staticmethod(tf.reduce_max)
    sort = staticmethod(tf.sort)
    flip = staticmethod(tf.reverse)
    take = staticmethod(tf.gather)
    diagonal = staticmethod(tf.linalg.diag_part)

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        return tf.concat(list(xs), axis=axis)

    def tril(self, x: Array) -> Array:
        return tf.linalg.band_part(x, -1, 0)

    def cholesky(self, a: Array) -> Array:
        # the upper triangle is uninitialised memory if a matrix is not positive definite
        return tf.linalg.band_part(tf.linalg.cholesky(a), -1, 0)

    def solve_triangular(
        self, a: Array, b: Array, *, lower: bool = True, transpose: bool = False
    ) -> Array:
        return tf.linalg.triangular_solve(a, b, lower=lower, adjoint=transpose)

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        transposed = tf.transpose(x)  # tensor_scatter indexes the first axis
        transposed = tf.tensor_scatter_nd_add(transposed, indices[:, None], tf.transpose(values))
        return tf.transpose(transposed)

    def stop_gradient(self, x: Tree) -> Tree:
        return tree_map(tf.stop_gradient, x)

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        def call(tree: Tree, *args: Tree) -> tuple[Array, Tree]:
            # new tensors: one that stands at two leaves, or in `args` too, would get the gradient
            # of all its uses at each
            flat, zero = [tf.identity(x) for x in leaves(tree)], tf.UnconnectedGradients.ZERO
            if tf.executing_eagerly():
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(flat)
                    value = f(rebuild(tree, iter(flat)), *args)
                grads = tape.gradient(value, flat, unconnected_gradients=zero)
            else:
                value = f(rebuild(tree, iter(flat)), *args)
                # by default, the order of a sum in a graph depends on when buffers become free
                by_two = tf.AggregationMethod.EXPERIMENTAL_TREE
                grads = tf.gradients(
                    value, flat, aggregation_method=by_two, unconnected_gradients=zero
                )
            return value, rebuild(tree, iter(grads))

        return call

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        if self.mode == "eager":
            for i in range(length):
                carry = step(carry, tree_map(lambda leaf, i=i: leaf[i], xs))
            return carry

        # the loop carries flat tensors: tf.while_loop refuses empty NamedTuples
        def body(i: Array, *flat: Array) -> tuple[Array, ...]:
            state = rebuild(carry, iter(flat))
            return (i + 1, *leaves(step(state, tree_map(lambda leaf: leaf[i], xs))))

        _, *out = tf.while_loop(
            lambda i, *_: i < length,
            body,
            (tf.constant(0), *leaves(carry)),
            parallel_iterations=1,
            maximum_iterations=length,
        )
        return rebuild(carry, iter(out))  # type: ignore[no-any-return, unused-ignore]

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        if self.mode == "eager":
            while condition(carry):
                carry = step(carry)
            return carry
        out = tf.while_loop(
            lambda *flat: condition(rebuild(carry, iter(flat))),
            lambda *flat: tuple(leaves(step(rebuild(carry, iter(flat))))),
            tuple(leaves(carry)),
            parallel_iterations=1,
        )
        return rebuild(carry, iter(out))  # type: ignore[no-any-return, unused-ignore]

    def jit(self, f: F) -> F:
        if self.mode == "eager":
            return f
        # loops and branches on values go through `Ops`: AutoGraph would find nothing to rewrite
        return tf.function(  # type: ignore[no-any-return, unused-ignore]
            f, autograph=False, jit_compile=self.mode == "xla"
        )

    def sync(self, x: Tree) -> None:
        if self.device == "cuda":
            tf.test.experimental.sync_devices()

    def peak_memory(self) -> int | None:
        if self.device == "cpu":
            return None
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
