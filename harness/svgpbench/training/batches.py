"""Batches and all random numbers of a run, drawn with NumPy, so they are the same on every backend.

A batch holds rows of the data, noise for a likelihood that samples, and the basis points that a method
samples for a quadratic form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.kernels import Model
from svgpbench.methods.method import AnyMethod
from svgpbench.numerics.streams import Stream
from svgpbench.ops import Ops
from svgpbench.training.blocks import Batch
from svgpbench.tree import leaves
from svgpbench_datasets import StandardisedRows

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
EVALUATION_ROWS = 8192
"""Most rows per chunk if training is by minibatch or by sums over data; EVALUATION_ENTRIES may lower it."""
EVALUATION_ENTRIES = 2**24
"""Most covariances between rows and basis points per chunk: 128 MiB in float64."""


@dataclass(frozen=True)
class TrainingData:
    """Standardised data; `y_scale` turns errors back into original units.

    Inputs may be `StandardisedRows`, which are standardised on access. Only full-batch training copies all
    of them.
    """

    X: Floats | StandardisedRows  # [n, D]
    y: Floats  # [n]
    X_test: Floats | StandardisedRows  # [t, D]
    y_test: Floats  # [t]
    y_scale: float = 1.0


def chosen_rows(count: int, most: int | None) -> Rows | None:
    """Return `most` of `count` rows [most], the same for every method and seed; None if all are taken."""
    if most is None or most >= count:
        return None
    return np.sort(Stream.EVALUATED_ROWS.generator(0).choice(count, most, replace=False))


class Batches:
    """Batches of one run; evaluation has its own noise, the same at every trace point."""

    def __init__(
        self,
        ops: Ops,
        model: Model,
        method: AnyMethod,
        data: TrainingData,
        size: int | None,
        seed: int,
        evaluated_rows: int | None = None,
    ) -> None:
        self._evaluated = chosen_rows(len(data.y), evaluated_rows)
        self.ops, self.model, self.method, self.data, self.size = ops, model, method, data, size
        # one stream per kind of draw: the rows do not depend on the other draws
        self._row_draws = Stream.BATCHES.generator(seed)
        self._noise_draws = Stream.BATCHES.generator(seed, 1)
        self._basis_draws = Stream.BATCHES.generator(seed, 2)
        self._evaluation_noise = self._noise(Stream.EVALUATION_NOISE.generator(seed))

    @cached_property
    def _full(self) -> Batch:
        """All rows; only full-batch training uses it."""
        return self._training_batch(np.arange(len(self.data.y)), self._evaluation_noise)

    @cached_property
    def _test(self) -> Batch:
        return self._test_batch(np.arange(len(self.data.y_test)))

    @property
    def scale(self) -> float:
        """The factor n/b of a drawn batch."""
        return len(self.data.y) / (self.size or len(self.data.y))

    def rng_states(self) -> tuple[Any, ...]:
        """Return the states of the random streams."""
        return tuple(stream.bit_generator.state for stream in self._streams)

    def restore(self, rng_states: tuple[Any, ...]) -> None:
        """Set the random streams to these states."""
        for stream, state in zip(self._streams, rng_states, strict=True):
            stream.bit_generator.state = state

    @property
    def _streams(self) -> tuple[np.random.Generator, ...]:
        return self._row_draws, self._noise_draws, self._basis_draws

    def full(self, inducing: Any) -> Batch:
        """Return all rows, with fresh draws if the likelihood or the method samples."""
        batch = self._full
        if self.model.likelihood.samples:
            batch = batch._replace(noise=self._noise(self._noise_draws))
        if self.method.sampled_points:
            batch = batch._replace(basis_points=self.ops.asarray(self._sampled(inducing)))
        return batch

    def sample(self) -> Rows:
        """Draw the row numbers of one batch in random order; all rows if training is full batch."""
        n = len(self.data.y)
        # without replacement in a batch, independent between batches: n/b times its sum is unbiased
        return self._row_draws.choice(n, self.size or n, replace=False)

    def batch(self, rows: Rows, inducing: Any) -> Batch:
        """Return rows [b] with fresh draws if the likelihood or the method samples."""
        batch = self._training_batch(rows, self._noise(self._noise_draws))
        if self.method.sampled_points:
            batch = batch._replace(basis_points=self.ops.asarray(self._sampled(inducing)))
        return batch

    def minibatches(self, count: int, inducing: Any) -> Batch:
        """Draw `count` batches, each without replacement, stacked on a leading axis."""
        rows = np.stack([self.sample() for _ in range(count)])
        batches = self._training_batch(rows, self._noise(self._noise_draws, count))
        if self.method.sampled_points:
            # fresh points for every step: the error of one set would push the whole phase one way
            sampled = np.stack([self._sampled(inducing) for _ in range(count)])
            batches = batches._replace(basis_points=self.ops.asarray(sampled))
        return batches

    def evaluation(self, inducing: Any = ()) -> Iterator[Batch]:
        """Yield the rows that are evaluated with the evaluation's noise; all rows, or a fixed sample.

        They come in chunks if training is by minibatch, or if they are a sample.
        """
        if self._evaluated is not None:
            for part in self._chunks(len(self._evaluated), inducing):
                yield self._training_batch(self._evaluated[part], self._evaluation_noise)
        elif self.size is None:
            yield self._full
        else:
            yield from self.chunks(inducing)

    def chunks(self, inducing: Any = ()) -> Iterator[Batch]:
        """Yield all training rows in chunks, with the evaluation's noise."""
        for rows in self._chunks(len(self.data.y), inducing):
            yield self._training_batch(rows, self._evaluation_noise)

    def test(self) -> Batch:
        """Return all test rows, with the evaluation's noise."""
        return self._test

    def test_chunks(self, inducing: Any) -> Iterator[Batch]:
        """Yield the test rows, in chunks if training is by minibatch."""
        count = len(self.data.y_test)
        chunks = list(self._chunks(count, inducing))
        if self.size is None or len(chunks) == 1:
            yield self._test
            return
        for rows in chunks:
            yield self._test_batch(rows)

    def partition(self, inducing: Any) -> Iterator[tuple[float, Any]]:
        """Yield (share, points) over chunks that cover all basis points.

        The estimates from the chunks, weighted by their shares, sum to the exact value.
        """
        size = self.method.sampled_points
        if not size:
            yield 1.0, ()
            return
        count = self._basis_size(inducing)
        for i in range(0, count, size):
            points = np.arange(i, min(i + size, count))
            yield len(points) / count, self.ops.asarray(points)

    def _chunks(self, count: int, inducing: Any) -> Iterator[Rows]:
        # both bases of a method have covariances with the chunk, so their points add up
        points = sum(int(basis.shape[0]) for basis in leaves(inducing))
        size = max(1, min(EVALUATION_ROWS, EVALUATION_ENTRIES // max(points, 1)))
        for i in range(0, count, size):
            yield np.arange(i, min(i + size, count))

    def _training_batch(self, rows: Rows, noise: Any) -> Batch:
        ops, d = self.ops, self.data
        return Batch(ops.asarray(d.X[rows]), ops.asarray(d.y[rows]), ops.asarray(rows), noise)

    def _test_batch(self, rows: Rows) -> Batch:
        ops, X, y = self.ops, self.data.X_test[rows], self.data.y_test[rows]
        return Batch(ops.asarray(X), ops.asarray(y), ops.asarray(rows), self._evaluation_noise)

    def _noise(self, rng: np.random.Generator, count: int = 0) -> Any:
        shape = (self.model.likelihood.samples, self.model.latents)
        if not shape[0]:
            return ()
        return self.ops.asarray(rng.standard_normal((count, *shape) if count else shape))

    def _sampled(self, inducing: Any) -> npt.NDArray[np.int64]:
        count = self._basis_size(inducing)
        # a basis that still grows may have fewer points than the sample
        return self._basis_draws.choice(
            count, min(self.method.sampled_points, count), replace=False
        )

    def _basis_size(self, inducing: Any) -> int:
        return int(leaves(self.method.sampled_basis(inducing))[0].shape[0])
