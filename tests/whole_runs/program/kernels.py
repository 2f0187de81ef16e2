"""Covariances from pairwise differences; an inducing function is a pair of centres and widths."""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np

from program.parameters import Table


def _matern32(d2: Any) -> Any:
    r = _distance(3.0 * d2)
    return (1.0 + r) * anp.exp(-r)


def _matern52(d2: Any) -> Any:
    r = _distance(5.0 * d2)
    return (1.0 + r + r**2 / 3.0) * anp.exp(-r)


def _distance(d2: Any) -> Any:
    """Return √d², whose slope is put to 0 at 0, where a Matérn correlation has none."""
    apart = d2 > 0.0
    return anp.where(apart, anp.sqrt(anp.where(apart, d2, 1.0)), 0.0)


SHAPES = {"se": lambda d2: anp.exp(-d2 / 2), "matern32": _matern32, "matern52": _matern52}


class Kernel:
    """k(A, B) at θ for inputs, or centres with widths under the squared exponential."""

    def __init__(self, name: str, jitter: float) -> None:
        self.name, self.jitter = name, jitter

    def cross(self, theta: Table, A: Any, B: Any) -> Any:
        """Return covariances [n, m]."""
        if isinstance(A, tuple) or isinstance(B, tuple):
            return self._of_windows(theta, _window(A), _window(B))
        gaps = (A[:, None, :] - B[None, :, :]) / theta["lengthscales"]
        return theta["variance"] * SHAPES[self.name](anp.sum(gaps**2, axis=-1))

    def square(self, theta: Table, A: Any) -> Any:
        """Return K(A, A) + jitter·I."""
        size = len(A[0]) if isinstance(A, tuple) else len(A)
        return self.cross(theta, A, A) + self.jitter * np.eye(size)

    def _of_windows(self, theta: Table, A: tuple[Any, Any], B: tuple[Any, Any]) -> Any:
        """Return Walder et al. 2008, Sec. 4, normalised to the variance of f: a point has width 0."""
        assert self.name == "se"
        l2 = theta["lengthscales"] ** 2
        a2, b2 = A[1][:, None, :] ** 2, B[1][None, :, :] ** 2
        v = l2 + a2 + b2
        gaps = A[0][:, None, :] - B[0][None, :, :]
        share = anp.sqrt(anp.sqrt(l2 + 2 * a2) * anp.sqrt(l2 + 2 * b2) / v)
        product = anp.prod(share, axis=-1)
        return theta["variance"] * product * anp.exp(-0.5 * anp.sum(gaps**2 / v, axis=-1))


def _window(A: Any) -> tuple[Any, Any]:
    return A if isinstance(A, tuple) else (A, np.zeros(np.shape(A)))
