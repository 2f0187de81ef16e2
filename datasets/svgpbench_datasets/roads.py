"""Substitute for UCI's 3D road network, drawn from a seed: points along roads over a sampled terrain.

The roads of the real data set lie in North Jutland, at altitudes between 0 and 135 m. Here a road starts at a
random point of the box and advances by steps of 10 to 50 m. Its heading is a random walk, and it is reflected
at the edges of the box. No real roads or altitudes are used.

The terrain is a draw from a GP with a Matérn-3/2 kernel by random Fourier features (Rahimi and Recht 2007):
f(p) = m + s Σ_j r_j cos(ω_j·p + b_j) / √F. The b_j are uniform on [0, 2π], and r_j is the length of a vector
of two standard normals, so that f is a Gaussian process given the ω_j. The ω_j are drawn from the spectral
density of the kernel in the plane, a bivariate t with 3 degrees of freedom and scale 1/lengthscale.

Steps are rounded before they are summed, so that rounding errors do not accumulate along a road: coordinates
are integer multiples of 1e-6 degrees on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.dataset import Floats

Coordinates: TypeAlias = NDArray[np.int64]  # longitude and latitude in 1e-6 degrees, [N, 2]

WEST_SOUTH: Coordinates = np.array([8_100_000, 56_500_000])
EAST_NORTH: Coordinates = np.array([11_200_000, 57_800_000])
METRES = np.array([60_400.0, 111_320.0])
"""Metres per degree of longitude (at 57.15° north, used everywhere) and of latitude."""
MEAN_POINTS = 80
SHORTEST_STEP, LONGEST_STEP = 10.0, 50.0  # metres
DRIFT = 0.1  # standard deviation of a turn, radians
FEATURES, LENGTHSCALE = 256, 5_000.0  # metres
MEAN_ALTITUDE, DEVIATION = 67.5, 19.0  # metres
_ROWS_AT_ONCE = 1024  # 2 MiB of features, which fit in a processor's cache


def roads(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw points on roads; return inputs [N, 3] and altitudes in metres [N], not yet rounded.

    The inputs are the number of the road, from 1, and longitude and latitude in degrees.
    """
    rng = np.random.default_rng(seed)
    terrain = Terrain.draw(rng)
    starts = rng.random(rows) < 1.0 / MEAN_POINTS
    starts[0] = True
    steps = np.rint(steps_along(starts, rng)).astype(np.int64)
    corners = rng.integers(WEST_SOUTH, EAST_NORTH, (int(starts.sum()), 2), endpoint=True)
    road = np.cumsum(starts)
    walked = np.cumsum(steps, axis=0)
    # one cumulative sum serves all roads: less what was walked before, each starts at its corner
    points = folded(corners[road - 1] + walked - walked[starts][road - 1])
    degrees = points / 1e6
    return np.column_stack([road, degrees]), terrain.altitude(degrees)


def steps_along(starts: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Draw the step to each point in longitude and latitude, in 1e-6 degrees, [N, 2].

    `starts` [N] marks the first point of each road, where a new heading is drawn uniformly.
    """
    rows = len(starts)
    # a uniform turn makes any heading uniform, so the sum need not start anew at each road
    turns = np.where(starts, rng.uniform(-np.pi, np.pi, rows), DRIFT * rng.standard_normal(rows))
    heading = np.cumsum(turns)
    metres = rng.uniform(SHORTEST_STEP, LONGEST_STEP, (rows, 1))
    steps: Floats = 1e6 * metres * np.column_stack([np.cos(heading), np.sin(heading)]) / METRES
    return steps


def folded(points: Coordinates) -> Coordinates:
    """Reflect points outside the box into it, [N, 2]."""
    width = EAST_NORTH - WEST_SOUTH
    # a triangle wave of period 2 · width: any number of reflections at once
    inside: Coordinates = EAST_NORTH - np.abs((points - WEST_SOUTH) % (2 * width) - width)
    return inside


@dataclass(frozen=True)
class Terrain:
    """Sample of the GP, as random Fourier features."""

    frequencies: Floats  # ω, radians per metre, [2, F]
    phases: Floats  # b, [F]
    amplitudes: Floats  # s r / √F, metres, [F]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Terrain:
        """Draw a terrain."""
        normal = rng.standard_normal((2, FEATURES))
        # a bivariate t is a normal vector over √(χ²₃/3); both coordinates share one χ²
        chi_squared = np.square(rng.standard_normal((3, FEATURES))).sum(axis=0)
        length = np.sqrt(np.square(rng.standard_normal((2, FEATURES))).sum(axis=0))
        return cls(
            frequencies=normal * np.sqrt(3.0 / chi_squared) / LENGTHSCALE,
            phases=rng.uniform(0.0, 2.0 * np.pi, FEATURES),
            # E r² = 2 and the mean of cos² is 1/2: the variance is s² without a factor √2
            amplitudes=DEVIATION * length / np.sqrt(FEATURES),
        )

    def altitude(self, degrees: Floats) -> Floats:
        """Return the altitude in metres [N] at longitudes and latitudes in degrees [N, 2]."""
        metres = (degrees - WEST_SOUTH / 1e6) * METRES
        altitudes = np.empty(len(metres))
        for start in range(0, len(metres), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            angles = metres[rows] @ self.frequencies + self.phases
            altitudes[rows] = np.cos(angles, out=angles) @ self.amplitudes
        return MEAN_ALTITUDE + altitudes
