"""Products over P latent functions with Q kernels: Q is P, or 1 if all latents share a kernel."""

from __future__ import annotations

from svgpbench.numerics.gaussian import symmetric_product
from svgpbench.ops import Array, Ops


def lower_symmetrised(ops: Ops, H: Array) -> Array:
    """Compute sym(Φ(H)): half of the lower triangle plus its mirror image, and H/2 on the diagonal."""
    lower = 0.5 * ops.tril(H)
    return lower + ops.matrix_transpose(lower) - 0.5 * ops.eye(H.shape[-1]) * H


def outer(x: Array, y: Array) -> Array:
    """Compute xyᵀ [..., m, n] of x [..., m] and y [..., n]."""
    return x[..., :, None] * y[..., None, :]


def symmetric_outer(x: Array, y: Array) -> Array:
    """Compute xyᵀ + yxᵀ [..., M, M] of x and y [..., M]."""
    return outer(x, y) + outer(y, x)


def sum_shared(ops: Ops, bar: Array, kernels: int) -> Array:
    """Return the sum over latents [1, ...] if they share a kernel, else `bar` itself."""
    return ops.sum(bar, axis=0, keepdims=True) if kernels < bar.shape[0] else bar


def stack_latents(ops: Ops, x: Array, kernels: int) -> Array:
    """Reshape [P, k, n] to [Q, Pk/Q, n], which stacks the rows of latents that share a kernel."""
    return ops.reshape(x, (kernels, -1, x.shape[-1]))


def times_shared(ops: Ops, A: Array, W: Array) -> Array:
    """Compute AW [P, m, b] of A [P, m, M] and W [Q, M, b], as one product if W is shared."""
    return ops.reshape(stack_latents(ops, A, W.shape[0]) @ W, (*A.shape[:2], W.shape[-1]))


def summed_product(ops: Ops, x: Array, y: Array, kernels: int) -> Array:
    """Compute Σ xᵀy [Q, m, n] of x [P, k, m] and y [P, k, n] over latents that share a kernel."""
    return ops.matrix_transpose(stack_latents(ops, x, kernels)) @ stack_latents(ops, y, kernels)


def summed_square(ops: Ops, x: Array, y: Array, kernels: int) -> Array:
    """Compute `summed_product` of x and y if it is symmetric."""
    x_rows, y_rows = (ops.matrix_transpose(stack_latents(ops, z, kernels)) for z in (x, y))
    return symmetric_product(ops, x_rows, y_rows)


def outer_sum(ops: Ops, x: Array, y: Array, kernels: int) -> Array:
    """Compute Σ xyᵀ [Q, m, n] of x [P, m] and y [P, n] over latents that share a kernel."""
    if kernels == x.shape[0]:
        return outer(x, y)
    return summed_product(ops, x[:, None, :], y[:, None, :], 1)
