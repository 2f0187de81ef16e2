"""Products over P latent functions with Q kernels: Q is P, or 1 if all latents share a kernel."""

from __future__ import annotations

from jaxtyping import Float

from svgpbench.numerics.gaussian import symmetric_product
from svgpbench.ops import Array, Ops


def lower_symmetrised(ops: Ops, H: Float[Array, "Q M M"]) -> Float[Array, "Q M M"]:
    """Compute sym(Φ(H)): half of the lower triangle plus its mirror image, and H/2 on the diagonal."""
    lower = 0.5 * ops.tril(H)
    return lower + ops.matrix_transpose(lower) - 0.5 * ops.eye(H.shape[-1]) * H


def outer(x: Float[Array, "... m"], y: Float[Array, "... n"]) -> Float[Array, "... m n"]:
    """Compute xyᵀ."""
    return x[..., :, None] * y[..., None, :]


def symmetric_outer(x: Float[Array, "... M"], y: Float[Array, "... M"]) -> Float[Array, "... M M"]:
    """Compute xyᵀ + yxᵀ."""
    return outer(x, y) + outer(y, x)


def sum_shared(ops: Ops, bar: Float[Array, "P *rest"], kernels: int) -> Float[Array, "Q *rest"]:
    """Return the sum over latents if they share a kernel, else `bar` itself."""
    return ops.sum(bar, axis=0, keepdims=True) if kernels < bar.shape[0] else bar


def stack_latents(ops: Ops, x: Float[Array, "P k n"], kernels: int) -> Float[Array, "Q P*k//Q n"]:
    """Stack the rows of latents that share a kernel."""
    return ops.reshape(x, (kernels, -1, x.shape[-1]))


def times_shared(
    ops: Ops, A: Float[Array, "P m M"], W: Float[Array, "Q M b"]
) -> Float[Array, "P m b"]:
    """Compute AW, as one product if W is shared."""
    return ops.reshape(stack_latents(ops, A, W.shape[0]) @ W, (*A.shape[:2], W.shape[-1]))


def summed_product(
    ops: Ops, x: Float[Array, "P k m"], y: Float[Array, "P k n"], kernels: int
) -> Float[Array, "Q m n"]:
    """Compute Σ xᵀy over latents that share a kernel."""
    return ops.matrix_transpose(stack_latents(ops, x, kernels)) @ stack_latents(ops, y, kernels)


def summed_square(
    ops: Ops, x: Float[Array, "P k m"], y: Float[Array, "P k m"], kernels: int
) -> Float[Array, "Q m m"]:
    """Compute `summed_product` of x and y if it is symmetric."""
    x_rows, y_rows = (ops.matrix_transpose(stack_latents(ops, z, kernels)) for z in (x, y))
    return symmetric_product(ops, x_rows, y_rows)


def outer_sum(
    ops: Ops, x: Float[Array, "P m"], y: Float[Array, "P n"], kernels: int
) -> Float[Array, "Q m n"]:
    """Compute Σ xyᵀ over latents that share a kernel."""
    if kernels == x.shape[0]:
        return outer(x, y)
    return summed_product(ops, x[:, None, :], y[:, None, :], 1)
