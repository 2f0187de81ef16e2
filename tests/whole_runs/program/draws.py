"""Every random number of a run: a NumPy stream a kind of draw, seeded by the run's seed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from program.parameters import Floats


class Data(NamedTuple):
    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats
    y_scale: float


class Batch(NamedTuple):
    """Rows, their numbers, the likelihood's noise, and the basis points sampled (None: all of them)."""

    X: Floats
    y: Floats
    index: Any
    noise: Any = None
    columns: Any = None


class Draws:
    """Rows from the stream [seed, 2], noise from [seed, 2, 1], basis points from [seed, 2, 2].

    The noise of evaluation comes from [seed, 4] and stays.
    """

    def __init__(
        self, data: Data, size: int | None, seed: int, noise: tuple[int, int], subset: int
    ) -> None:
        self.data, self.size, self.shape, self.subset = data, size, noise, subset
        self.rows = np.random.default_rng([seed, 2])
        self.noise = np.random.default_rng([seed, 2, 1])
        self.columns = np.random.default_rng([seed, 2, 2])
        self.kept = np.random.default_rng([seed, 4]).standard_normal(noise) if noise[0] else None

    def numbers(self) -> Any:
        """Return the row numbers of one batch."""
        n = len(self.data.y)
        return self.rows.choice(n, self.size or n, replace=False)

    def phase(self, steps: int, basis: int) -> list[Batch]:
        """Return the batches of a phase; on the full batch every step has the same draws."""
        if self.size is None:
            return [self.batch(np.arange(len(self.data.y)), basis)] * steps
        return [self.batch(self.numbers(), basis) for _ in range(steps)]

    def batch(self, numbers: Any, basis: int) -> Batch:
        """Return rows with draws of their own."""
        noise = self.noise.standard_normal(self.shape) if self.shape[0] else None
        columns = None
        if self.subset:
            columns = self.columns.choice(basis, min(self.subset, basis), replace=False)
        return Batch(self.data.X[numbers], self.data.y[numbers], numbers, noise, columns)

    def all_rows(self) -> Batch:
        """Return all training rows with the noise of evaluation."""
        d = self.data
        return Batch(d.X, d.y, np.arange(len(d.y)), self.kept)

    def test_rows(self) -> Batch:
        """Return all test rows with the noise of evaluation."""
        d = self.data
        return Batch(d.X_test, d.y_test, np.arange(len(d.y_test)), self.kept)
