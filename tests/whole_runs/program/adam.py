"""Adam (Kingma and Ba 2015, Algorithm 1) up a gradient; every entry has an age of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from program.parameters import Table

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Moments of named arrays; a step leaves other arrays as they are."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.mean = {name: np.zeros(np.shape(x)) for name, x in arrays.items()}
        self.square = {name: np.zeros(np.shape(x)) for name, x in arrays.items()}
        self.age = {name: np.zeros(np.shape(x)) for name, x in arrays.items()}

    def step(self, arrays: Mapping[str, Any], gradient: Mapping[str, Any], rate: float) -> Table:
        """Return the arrays after one step."""
        moved = dict(arrays)
        for name in self.age:
            g = gradient[name]
            self.age[name] = self.age[name] + 1
            self.mean[name] = BETA1 * self.mean[name] + (1 - BETA1) * g
            self.square[name] = BETA2 * self.square[name] + (1 - BETA2) * g**2
            mean = self.mean[name] / (1 - BETA1 ** self.age[name])
            square = self.square[name] / (1 - BETA2 ** self.age[name])
            moved[name] = arrays[name] + rate * mean / (np.sqrt(square) + EPSILON)
        return moved

    def grow(self, arrays: Mapping[str, Any]) -> None:
        """Let new entries start as at a first step."""
        for table in (self.mean, self.square, self.age):
            for name, x in arrays.items():
                larger = np.zeros(np.shape(x))
                larger[tuple(slice(0, size) for size in np.shape(table[name]))] = table[name]
                table[name] = larger
