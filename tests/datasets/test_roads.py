"""The 3droad stand-in has the shape of the real set: roads in its box, over a GP of the stated kernel."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench_datasets import REGISTRY, Dataset
from svgpbench_datasets.roads import (
    DEVIATION,
    EAST_NORTH,
    LENGTHSCALE,
    LONGEST_STEP,
    MEAN_ALTITUDE,
    MEAN_POINTS,
    METRES,
    SHORTEST_STEP,
    WEST_SOUTH,
    Terrain,
    folded,
    roads,
    steps_along,
)

MICRO = 1e-6  # degrees


@pytest.fixture(scope="module")
def whole() -> Dataset:
    return REGISTRY.load("3droad-stand-in")


@pytest.fixture(scope="module")
def seed() -> int:
    generated = REGISTRY.describe("3droad-stand-in").generated
    assert generated
    return generated.seed


def test_size_and_ranges_are_those_of_the_real_set(whole: Dataset) -> None:
    assert whole.X.shape == (434874, 3)
    assert whole.feature_names == ("ROAD", "LONGITUDE", "LATITUDE")
    road, places = whole.X[:, 0], whole.X[:, 1:]
    assert set(np.diff(road)) == {0.0, 1.0} and road[0] == 1.0
    # a road ends by chance: its length deviates by its mean; three standard errors
    assert len(whole.y) / road[-1] == pytest.approx(MEAN_POINTS, rel=3.0 / np.sqrt(road[-1]))
    assert np.array_equal(places, np.rint(places / MICRO) / 1e6)  # whole micro-degrees
    for at, (low, high) in enumerate(((8.1, 11.2), (56.5, 57.8))):
        assert low <= places[:, at].min() < low + 0.01
        assert high - 0.01 < places[:, at].max() <= high
    assert 0.0 < whole.y.min() < 15.0
    assert 120.0 < whole.y.max() < 135.0
    assert np.array_equal(whole.y, np.rint(whole.y * 1e3) / 1e3)


def test_without_the_road_number_the_rest_is_the_same(whole: Dataset) -> None:
    plain = REGISTRY.load("3droad-stand-in:no-road")
    assert np.array_equal(plain.X, whole.X[:, 1:])
    assert np.array_equal(plain.y, whole.y)


def own_slope(seed: int) -> float:
    """The root mean square of a terrain's slope in a direction, over directions and places."""
    terrain = Terrain.draw(np.random.default_rng(seed))
    length = np.square(terrain.frequencies).sum(axis=0)
    return float(np.sqrt((np.square(terrain.amplitudes) * length).sum() / 4.0))


def test_points_of_a_road_are_near_each_other_and_their_altitudes_smooth(
    whole: Dataset, seed: int
) -> None:
    along = np.diff(whole.X[:, 0]) == 0
    distance = np.hypot(*(np.diff(whole.X[:, 1:], axis=0) * METRES).T)
    rounding = np.hypot(*METRES) * MICRO
    assert distance[along].max() <= LONGEST_STEP + rounding
    # only where an edge turns a road back is a step shorter than it was drawn
    assert np.mean(distance[along] < SHORTEST_STEP - rounding) < 1e-4
    # three standard errors of uniform steps
    assert distance[along].mean() == pytest.approx((SHORTEST_STEP + LONGEST_STEP) / 2, rel=0.002)
    assert np.median(distance[~along]) > 50_000.0
    slope = np.diff(whole.y)[along] / distance[along]
    found = np.sqrt(np.mean(slope**2))
    assert found == pytest.approx(own_slope(seed), rel=0.005)
    # the GP's derivative in any direction has variance 3 (deviation / lengthscale)²; of 256 frequencies
    # with infinite fourth moments, one draw stays this near it and no nearer
    assert found == pytest.approx(np.sqrt(3.0) * DEVIATION / LENGTHSCALE, rel=0.15)
    assert np.abs(slope).max() < 0.06


def test_a_heading_drifts_and_does_not_jump() -> None:
    starts = np.zeros(50_000, dtype=bool)
    starts[0] = True
    east, north = (steps_along(starts, np.random.default_rng(0)) * METRES).T
    turns = np.angle(np.exp(1j * np.diff(np.unwrap(np.arctan2(north, east)))))
    assert turns.std() == pytest.approx(0.1, rel=0.01)  # three standard errors
    assert abs(np.corrcoef(turns[1:], turns[:-1])[0, 1]) < 0.02


def test_a_road_turns_back_at_the_edge() -> None:
    corners = np.array([EAST_NORTH, WEST_SOUTH, WEST_SOUTH])
    beyond = corners + np.array([[100, -7], [0, 0], [-5, 3]])
    inside = corners + np.array([[-100, -7], [0, 0], [5, 3]])
    assert np.array_equal(folded(beyond), inside)


@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.0, 1.0), (0.6, -0.8)])
def test_the_terrain_has_the_covariance_of_its_kernel(direction: tuple[float, float]) -> None:
    """Products of pairs at four distances, 300 terrains, 100 pairs each, against Matérn-3/2."""
    random = np.random.default_rng(5)
    distances = np.array([0.0, 2_000.0, 5_000.0, 12_000.0])
    here = random.uniform([9.0, 57.0], [10.5, 57.5], (100, 2))
    there = [here + r * np.array(direction) / METRES for r in distances]
    found, means = [], []
    for seed in range(300):
        terrain = Terrain.draw(np.random.default_rng(seed))
        own = terrain.altitude(here) - MEAN_ALTITUDE
        means.append(own.mean())
        found.append([np.mean(own * (terrain.altitude(at) - MEAN_ALTITUDE)) for at in there])
    scaled = np.sqrt(3.0) * distances / LENGTHSCALE
    kernel = (1.0 + scaled) * np.exp(-scaled)
    error = np.std(found, axis=0) / np.sqrt(300) / DEVIATION**2
    assert error.max() < 0.02
    assert np.abs(np.mean(found, axis=0) / DEVIATION**2 - kernel).max() < 4 * error.max()
    assert abs(np.mean(means)) < 4 * np.std(means) / np.sqrt(300)


def test_altitudes_are_exact_far_below_their_distance_from_a_rounding_tie(seed: int) -> None:
    """434 874 values in mm lie 1e-9 m from a tie at best; that of `test_generators` is 1e-10 m."""
    X, altitude = roads(434874, seed)
    terrain = Terrain.draw(np.random.default_rng(seed))
    some = np.random.default_rng(0).choice(len(X), 5000, replace=False)
    metres = (X[some, 1:].astype(np.longdouble) - WEST_SOUTH / 1e6) * METRES
    exact = np.cos(metres @ terrain.frequencies.astype(np.longdouble) + terrain.phases)
    error = np.abs(MEAN_ALTITUDE + exact @ terrain.amplitudes - altitude[some]).max()
    assert error < 1e-11


def test_no_step_lies_where_rounding_could_go_either_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Terrain.draw(rng)
    starts = rng.random(434874) < 1.0 / MEAN_POINTS
    starts[0] = True
    steps = steps_along(starts, rng)
    # headings stay below 500: a sum of 434 874 turns is good to 1e-11 if roundings differ, steps to 1e-8
    assert np.abs(steps - np.floor(steps) - 0.5).min() > 1e-7
    assert np.abs(steps).max() < 1e3
    X, _ = roads(434874, seed)
    drawn = np.rint(steps)[1:][~starts[1:]]
    walked = np.rint(np.diff(X[:, 1:], axis=0) / MICRO)[~starts[1:]]
    assert np.mean(np.abs(walked) == np.abs(drawn)) > 0.999  # else beyond an edge


@pytest.mark.parametrize("rows", [1, 2, 1500])
def test_any_number_of_rows_and_seed_is_a_draw(rows: int) -> None:
    X, y = roads(rows, 0)
    assert X.shape == (rows, 3) and y.shape == (rows,)
    again, other = roads(rows, 0), roads(rows, 1)
    assert np.array_equal(again[0], X) and np.array_equal(again[1], y)
    assert not np.array_equal(other[1], y)
    assert not np.array_equal(other[0], X)
