"""Random streams: a NumPy generator for each kind of draw, so that no draw depends on another kind."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """Kinds of draws. The numbers are part of every record: another number is another run."""

    INDUCING_INPUTS = 1
    BATCHES = 2  # rows; (BATCHES, 1) noise of the likelihood; (BATCHES, 2) basis points
    PERTURBATION = 3  # of inputs, which shows how far rounding moves a run
    EVALUATION_NOISE = 4  # of a likelihood that samples, in trace points and predictions
    MEDIAN_ROWS = 5  # rows from which the median lengthscale is computed
    TWO_BASES = 6  # which of the inducing inputs go to each basis
    STABILITY = 7  # minibatches and noise of stability runs
    TIME_TO_TARGET = 8  # minibatches and noise of runs to a target
    TRAINING_ROWS = 9  # rows that a cell trains on, if not on all
    EVALUATED_ROWS = 10  # rows on which a run is evaluated, if not on all

    def generator(self, seed: int, *part: int) -> np.random.Generator:
        """Return the generator of this stream, or of a part of it, at the start."""
        # NumPy hashes the whole list, so that neighbouring seeds and streams give unrelated draws
        return np.random.default_rng([seed, int(self), *part])
