"""The small problems that both programs run on: inputs in two dimensions, targets of every kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

N, TESTS, SEED, JITTER, Y_SCALE = 40, 12, 3, 1e-4, 2.5
CLASSES, SAMPLES = 3, 11
NOISE_VARIANCE, STUDENT_T_SCALE = 0.3, 0.4
VARIANCE, LENGTHSCALES, LENGTHSCALE = 1.4, (0.9, 1.3), 1.1


class Problem(NamedTuple):
    """Data, and two bases that share no point."""

    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats
    Z: Floats
    gamma: Floats


def problem(targets: str) -> Problem:
    """Targets: real, heavy (real with outliers), binary, counts or classes."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-2.0, 2.0, (N + TESTS, 2))
    f = np.stack([np.sin(1.7 * X[:, 0]) + 0.4 * X[:, 1], np.cos(X[:, 1]), 0.5 * X[:, 0] * X[:, 1]])
    noise = rng.standard_normal(N + TESTS)
    made: dict[str, Any] = {
        "real": f[0] + 0.5 * noise,
        "heavy": f[0] + 0.2 * noise + 4.0 * (rng.uniform(size=N + TESTS) < 0.2),
        "binary": (f[0] + 0.4 * noise > 0.0).astype(float),
        "counts": rng.poisson(np.exp(0.7 * f[0])).astype(float),
        "classes": np.argmax(f, axis=0).astype(float),
    }
    y = made[targets]
    grid = np.stack(np.meshgrid([-1.6, -0.4, 0.6, 1.6], [-1.5, -0.5, 0.6, 1.4]), axis=-1)
    points = (grid.reshape(-1, 2) + rng.uniform(-0.2, 0.2, (16, 2)))[rng.permutation(16)]
    return Problem(X[:N], y[:N], X[N:], y[N:], points[:6], points[6:13])
