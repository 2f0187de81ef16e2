"""Small tables to fit, and a short training."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

QUICK = {"em_iterations": 4, "e_steps": 1, "m_steps": 3, "m_rate": 0.05, "until": "limit"}


def regression(n: int = 80) -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"left": rng.normal(3.0, 2.0, n), "right": rng.uniform(0.0, 9.0, n)})
    y = pd.Series(40.0 + 5.0 * np.sin(X["left"]) + 0.1 * rng.normal(size=n), name="height")
    return X, y


def classes(n: int = 90) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_]]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    y = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    return X, y
