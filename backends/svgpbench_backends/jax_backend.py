"""The JAX backend: `jit` by default. float64 needs JAX_ENABLE_X64=1 before JAX is imported."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from svgpbench.errors import UserError
from svgpbench.ops import Array, Capabilities, Tree
from svgpbench.tree import leaves
from svgpbench_backends.frameworks import JAX_OFFERS

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")

UNROLLED = 32
"""Number of matrices up to which a batch becomes one LAPACK call per matrix, in one program."""

LEAST_COLUMNS = 128
"""Number of right-hand sides per thread from which a triangular solve is shared between threads."""


class JaxOps:
    """JAX on the CPU or one GPU."""

    capabilities: ClassVar[Capabilities] = JAX_OFFERS
    name = "jax"

    def __init__(self, mode: str, dtype: str, device: str) -> None:
        if dtype == "float64" and not jax.config.read("jax_enable_x64"):
            raise UserError("backend 'jax' in float64 needs JAX_ENABLE_X64=1 in the environment")
        self.mode, self.dtype, self.device = mode, dtype, device
        self._threads = _xla_threads()
        try:
            self._device = jax.devices(device)[0]
        except (RuntimeError, AssertionError) as error:  # the latter by a jaxlib without CUDA
            raise UserError(
                f"backend 'jax' has no device {device!r} here; see `svgpbench doctor`"
            ) from error

    def asarray(self, x: npt.ArrayLike) -> Array:
        x = np.asarray(x)
        x = x.astype(self.dtype) if x.dtype.kind == "f" else x
        return jax.device_put(x, self._device)

    def to_numpy(self, x: Array) -> npt.NDArray[Any]:
        return np.asarray(x)

    def zeros(self, shape: Sequence[int]) -> Array:
        return jnp.zeros(shape, self.dtype, device=self._device)

    def eye(self, n: int) -> Array:
        return jnp.eye(n, dtype=self.dtype, device=self._device)

    exp = staticmethod(jnp.exp)
    log = staticmethod(jnp.log)
    log1p = staticmethod(jnp.log1p)
    sqrt = staticmethod(jnp.sqrt)
    abs = staticmethod(jnp.abs)
    maximum = staticmethod(jnp.maximum)
    where = staticmethod(jnp.where)
    reshape = staticmethod(jnp.reshape)
    broadcast_to = staticmethod(jnp.broadcast_to)
    flip = staticmethod(jnp.flip)
    tril = staticmethod(jnp.tril)
    matrix_transpose = staticmethod(jnp.matrix_transpose)
    softplus = staticmethod(jax.nn.softplus)
    erfc = staticmethod(lax.erfc)
    lgamma = staticmethod(lax.lgamma)
    digamma = staticmethod(lax.digamma)
    sin = staticmethod(jnp.sin)
    cos = staticmethod(jnp.cos)
    sum = staticmethod(jnp.sum)
    max = staticmethod(jnp.max)
    sort = staticmethod(jnp.sort)
    take = staticmethod(jnp.take)

    def concat(self, xs: Sequence[Array], *, axis: int) -> Array:
        return jnp.concatenate(list(xs), axis=axis)

    def diagonal(self, x: Array) -> Array:
        return jnp.diagonal(x, axis1=-2, axis2=-1)

    def cholesky(self, a: Array) -> Array:
        # no symmetrisation: the contract reads the lower triangle only, as LAPACK does
        return self._call_per_matrix(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), a)

    def solve_triangular(
        self, a: Array, b: Array, *, lower: bool = True, transpose: bool = False
    ) -> Array:
        batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = jnp.broadcast_to(a, batch + a.shape[-2:])
        b = jnp.broadcast_to(b, batch + b.shape[-2:])
        # xᵀaᵀ = bᵀ: the same solve, without copies into LAPACK's layout and back
        aT, bT = jnp.matrix_transpose(a), jnp.matrix_transpose(b)

        def solve(aT: Array, bT: Array) -> Array:
            return lax.linalg.triangular_solve(
                aT, bT, left_side=False, lower=not lower, transpose_a=transpose
            )

        # a LAPACK call has one thread here: a single large solve is shared by right-hand sides, a
        # batch of matrices is several calls already
        parts = min(self._threads, bT.shape[-2] // LEAST_COLUMNS)
        if self.device != "cpu" or math.prod(batch) > 1 or parts < 2:
            return jnp.matrix_transpose(self._call_per_matrix(solve, aT, bT))
        shares = jnp.array_split(bT, parts, axis=-2)
        return jnp.matrix_transpose(jnp.concatenate([solve(aT, x) for x in shares], axis=-2))

    def _call_per_matrix(self, f: Callable[..., Array], *batches: Array) -> Array:
        """Apply a LAPACK function to batches [..., m, n] of matrices; on the CPU, by one call per matrix.

        XLA runs these calls on its threads at the same time. With 2 or 4 threads, a program that has four
        of jaxlib 0.10.2's own calls for a batch does not end.
        """
        batch = batches[0].shape[:-2]
        if self.device != "cpu" or math.prod(batch) <= 1:
            return f(*batches)
        flat = [x.reshape(-1, *x.shape[-2:]) for x in batches]
        if len(flat[0]) > UNROLLED:
            result = lax.map(lambda matrices: f(*matrices), flat)
        else:
            result = jnp.stack([f(*matrices) for matrices in zip(*flat, strict=True)])
        return result.reshape(*batch, *result.shape[-2:])

    def index_add(self, x: Array, indices: Array, values: Array) -> Array:
        # the contract has distinct indices, so that any order of these additions gives the same
        # bits
        return x.at[..., indices].add(values, unique_indices=True)

    def stop_gradient(self, x: Tree) -> Tree:
        return lax.stop_gradient(x)

    def value_and_grad(self, f: Callable[..., Array]) -> Callable[..., tuple[Array, Tree]]:
        return jax.value_and_grad(f)  # type: ignore[no-any-return, unused-ignore]

    def scan(self, step: Callable[[S, Tree], S], carry: S, xs: Tree, *, length: int) -> S:
        if self.mode == "eager":
            for i in range(length):
                carry = step(carry, jax.tree.map(lambda leaf, i=i: leaf[i], xs))
            return carry
        out, _ = lax.scan(lambda c, x: (step(c, x), None), carry, xs, length=length)
        return out  # type: ignore[no-any-return, unused-ignore]

    def while_loop(self, condition: Callable[[S], Array], step: Callable[[S], S], carry: S) -> S:
        if self.mode == "eager":
            while condition(carry):
                carry = step(carry)
            return carry
        return lax.while_loop(condition, step, carry)  # type: ignore[no-any-return, unused-ignore]

    def jit(self, f: F) -> F:
        return jax.jit(f) if self.mode == "jit" else f

    def sync(self, x: Tree) -> None:
        jax.block_until_ready(leaves(x))

    def peak_memory(self) -> int | None:
        stats = self._device.memory_stats() if self.device != "cpu" else None
        return int(stats["peak_bytes_in_use"]) if stats else None


def _xla_threads() -> int:
    """Return the number of threads of XLA's pool on the CPU: NPROC, or that of the cores it may use."""
    if setting := os.environ.get("NPROC"):
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
