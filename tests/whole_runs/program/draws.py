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
        """The rows of one batch."""
        n = len(self.data.y)
        return self.rows.choice(n, self.size or n, replace=False)

    def phase(self, steps: int, basis: int) -> list[Batch]:
        """The batches of a phase: all rows of them, then the noise, then the basis points.

        On the full batch every step of the phase has the same draws.
        """
        if self.size is None:
            one = self.batch(np.arange(len(self.data.y)), basis)
            return [one] * steps
        numbers = [self.numbers() for _ in range(steps)]
        noises = [self._noise() for _ in range(steps)]
        columns = [self._columns(basis) for _ in range(steps)]
        return [
            self._of(*one)._replace(columns=sampled)
            for *one, sampled in zip(numbers, noises, columns, strict=True)
        ]

    def batch(self, numbers: Any, basis: int) -> Batch:
        """Given rows with draws of their own."""
        return self._of(numbers, self._noise())._replace(columns=self._columns(basis))

    def all_rows(self) -> Batch:
        """All training rows with the noise of evaluation."""
        return self._of(np.arange(len(self.data.y)), self.kept)

    def test_rows(self) -> Batch:
        """All test rows with the noise of evaluation."""
        d = self.data
        return Batch(d.X_test, d.y_test, np.arange(len(d.y_test)), self.kept)

    def _of(self, numbers: Any, noise: Any) -> Batch:
        return Batch(self.data.X[numbers], self.data.y[numbers], numbers, noise)

    def _noise(self) -> Any:
        return self.noise.standard_normal(self.shape) if self.shape[0] else None

    def _columns(self, basis: int) -> Any:
        if not self.subset:
            return None
        return self.columns.choice(basis, min(self.subset, basis), replace=False)
