"""Settings and minibatches that the steps of every library share with svgpbench's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

Batch = TypeVar("Batch")

HELD_STEPS = 8
"""Number of E-steps per call of `e_step_held`."""

CACHED_ROWS = {f"predict_cached_{rows}": rows for rows in (1, 100, 10_000)}
"""Number of rows per call of each step that predicts from factors computed once."""

SMALLEST_POSITIVE = 1e-6
"""Floor of a positive parameter: θ = floor + softplus(raw)."""

# always passed, as defaults differ: 1e-7 in Keras, 1e-8 in torch and optax
ADAM_EPSILON = 1e-8


def timed_batches(p: Mapping[str, Any], rows: Callable[[Any, Any], Batch]) -> list[Batch]:
    """Return the minibatches of a timed problem, as `rows` converts X and y.

    All steps but `em_step` use the first. An EM iteration takes its M-step on the last and an E-step on each
    of the others.
    """
    later = zip(p["X_later"], p["y_later"], strict=True)
    return [rows(p["X"], p["y"]), *(rows(X, y) for X, y in later)]


def rows_to_predict(X_new: Any, y_new: Any, count: int) -> tuple[Any, Any]:
    """Return `count` rows to predict, X [count, D] and y [count]; rows are repeated if there are fewer."""
    return np.resize(X_new, (count, X_new.shape[1])), np.resize(y_new, count)
