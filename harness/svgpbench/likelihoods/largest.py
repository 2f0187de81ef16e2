"""Probabilities that each of several independent variables is the largest, as integrals over its value.

P(z_c is the largest) = ∫ p_c(z) ∏_{k≠c} F_k(z) dz for densities p and distribution functions F. It is a class
probability of robust-max, where z is the latent f, and of softmax, where z = f + Gumbel noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from svgpbench.likelihoods.centred import gauss_legendre
from svgpbench.likelihoods.quadrature import gauss_hermite
from svgpbench.numerics.normal import squashed_log_ndtr
from svgpbench.ops import Array, Ops

PANEL_NODES = 10

PerClass = Float[Array, "C b"]
Distributions = Callable[[Float[Array, "b S"]], tuple[Float[Array, "C b S"], Float[Array, "C b S"]]]
"""z → log p_c(z) and log F_c(z)."""

NORMAL_EDGES = np.array([-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0])
GUMBEL_EDGES = np.array([-4.0, -2.8, -1.6, -0.6, 0.4, 1.8, 4.0, 9.0, 20.0])
"""Ends of panels for each variable: in standard deviations, and for Gumbel noise with its long right tail."""

MOST_PANELS = 27
"""Number of panels for softmax; all variables are smooth on the scale of 1, so that panels may be joined."""

LEAST = 1e-300

SMOOTH_STEPS = 0.55 * np.arange(42) - 3.5
"""Values of Gumbel noise, for a sum over them: the error of equal steps h is about exp(−π²/h)."""


def of_normal(ops: Ops, mu: PerClass, v: PerClass, squash: float) -> PerClass:
    """Return P(f_c is the largest) for normal f; `squash` ε replaces F by ε + (1 − 2ε) F."""
    mean, sd = mu[..., None], ops.sqrt(v)[..., None]

    def distributions(z: Float[Array, "b S"]) -> tuple[Array, Array]:
        x = (z - mean) / sd
        log_density = -0.5 * x * x - ops.log(sd) - 0.5 * math.log(2.0 * math.pi)
        return log_density, squashed_log_ndtr(ops, x, squash)[0]

    return largest(ops, mean + sd * ops.asarray(NORMAL_EDGES), distributions)


def of_normal_plus_gumbel(ops: Ops, mu: PerClass, v: PerClass) -> PerClass:
    """Return P(f_c + Gumbel noise is the largest) for normal f, which is E softmax(f)_c.

    F(z) is E exp(−exp(f − z)) over f by Gauss–Hermite nodes where √v < 0.8. Where it is larger, the step of
    that function is too narrow, and F(z) is E Φ((z − g − μ)/√v) over the noise g.
    """
    mean, sd = mu[..., None, None], ops.sqrt(v)[..., None, None]  # [C, b, 1, 1]
    narrow = sd[..., 0] < 0.8
    t, w = map(ops.asarray, gauss_hermite(20))
    gumbel = np.exp(-SMOOTH_STEPS - np.exp(-SMOOTH_STEPS))
    g, wg = ops.asarray(SMOOTH_STEPS), ops.asarray(gumbel / gumbel.sum())

    def distributions(z: Float[Array, "b S"]) -> tuple[Array, Array]:
        rate = ops.exp(mean + sd * t - z[..., None])
        weighted = w * ops.exp(-rate)
        u = (z[..., None] - mean - g) / sd
        normal = wg * ops.exp(-0.5 * u * u)
        density = ops.where(
            narrow,
            ops.sum(rate * weighted, axis=-1),
            ops.sum(normal, axis=-1) / (sd[..., 0] * math.sqrt(2.0 * math.pi)),
        )
        phi = 0.5 * ops.erfc(-math.sqrt(0.5) * u)
        below = ops.where(narrow, ops.sum(weighted, axis=-1), ops.sum(wg * phi, axis=-1))
        return ops.log(ops.maximum(density, LEAST)), ops.log(ops.maximum(below, LEAST))

    edges = (mean + sd * ops.asarray(NORMAL_EDGES))[..., 0, :] + ops.asarray(GUMBEL_EDGES)
    return largest(ops, edges, distributions, MOST_PANELS)


def largest(
    ops: Ops, edges: Float[Array, "C b K"], distributions: Distributions, most: int = 10**9
) -> PerClass:
    """Integrate over the panels between the edges of all variables, joined to at most about `most`."""
    classes, rows, each = edges.shape
    flat = ops.concat([edges[c, ...] for c in range(classes)], axis=-1)
    last = classes * each - 1
    kept = np.arange(0, last + 1, -(-last // most))
    ends = ops.take(ops.sort(flat), ops.asarray(np.append(kept[:-1], last)), axis=-1)  # [b, L]
    x, w = map(ops.asarray, gauss_legendre(PANEL_NODES))
    length = (ends[:, 1:] - ends[:, :-1])[..., None]
    nodes = ops.reshape(ends[:, :-1, None] + length * x, (rows, -1))
    weights = ops.reshape(length * w, (rows, -1))

    def add(total: PerClass, node: tuple[Array, Array]) -> PerClass:
        z, weight = node
        log_density, log_below = (x[..., 0] for x in distributions(z[:, None]))
        log_product = ops.sum(log_below, axis=0, keepdims=True) - log_below + log_density
        return total + weight * ops.exp(log_product)

    # one node at a time, because memory for all would be hundreds of times that of the rows
    xs = (ops.matrix_transpose(nodes), ops.matrix_transpose(weights))
    return ops.scan(add, 0.0 * edges[..., 0], xs, length=(len(kept) - 1) * PANEL_NODES)
