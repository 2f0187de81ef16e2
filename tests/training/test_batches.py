"""Draws of a run: rows, noise and basis points, each by its own stream of the seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.cases import small_problem
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import GaussianLikelihood
from svgpbench.methods.dual import DualSVGP
from svgpbench.ops import Ops
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.training.blocks import Batch
from svgpbench.tree import leaves

PROBLEM = small_problem()
DATA = TrainingData(PROBLEM.X, PROBLEM.y, PROBLEM.X[:7], PROBLEM.y[:7])
Z = PROBLEM.Z  # [8, 3]


@dataclass(frozen=True)
class SampledGaussian(GaussianLikelihood):
    """Asks for noise, as a Monte Carlo likelihood does."""

    samples: ClassVar[int] = 5


@dataclass(frozen=True)
class SampledPoints(DualSVGP):
    """Asks for basis points, as a method with an estimated quadratic form does."""

    count: int = 3

    @property
    def sampled_points(self) -> int:
        return self.count


def batches(
    ops: Ops,
    *,
    noisy: bool = False,
    method: DualSVGP | None = None,
    size: int | None = 16,
    seed: int = 0,
) -> Batches:
    likelihood = SampledGaussian() if noisy else GaussianLikelihood()
    model = Model(kernel("se"), likelihood)
    return Batches(ops, model, method or DualSVGP(), DATA, size, seed)


def rows(drawn: list[Batch]) -> list[Any]:
    return [np.asarray(b.index).tolist() for b in drawn]


def test_every_backend_gets_the_same_arrays(ops: Ops) -> None:
    def drawn(on: Ops) -> list[Any]:
        source = batches(on, noisy=True, method=SampledPoints())
        found = [source.minibatches(4, Z), source.full(Z), source.minibatches(2, Z), source.test()]
        return [on.to_numpy(x) for batch in found for x in leaves(batch)]

    for one, other in zip(drawn(ops), drawn(load_backend("numpy")), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_are_the_same_whatever_else_is_drawn() -> None:
    ops = load_backend("numpy")
    sources = [
        batches(ops),
        batches(ops, noisy=True),
        batches(ops, method=SampledPoints()),
        batches(ops, noisy=True, method=SampledPoints()),
    ]
    found = []
    for source in sources:
        source.full(Z)  # draws noise and basis points where there are any
        found.append(rows([source.minibatches(3, Z), source.minibatches(2, Z)]))
    assert all(each == found[0] for each in found)
    assert found[0] != rows([batches(ops, seed=1).minibatches(3, Z)] * 2)


def test_a_likelihood_that_does_not_sample_gets_no_noise() -> None:
    source = batches(load_backend("numpy"))
    for drawn in (source.minibatches(2, Z), source.full(Z), source.test()):
        assert drawn.noise == ()


def test_noise_is_the_same_whether_basis_points_are_drawn() -> None:
    ops = load_backend("numpy")
    plain, sampled = batches(ops, noisy=True), batches(ops, noisy=True, method=SampledPoints())
    for _ in range(2):
        one, other = plain.minibatches(3, Z), sampled.minibatches(3, Z)
        np.testing.assert_array_equal(one.noise, other.noise)


def test_a_minibatch_has_distinct_rows_with_their_data() -> None:
    drawn = batches(load_backend("numpy"), noisy=True).minibatches(40, Z)
    assert drawn.X.shape == (40, 16, 3)
    assert drawn.noise.shape == (40, 5, 1)
    assert drawn.basis_points == ()
    for X, y, index in zip(drawn.X, drawn.y, drawn.index, strict=True):
        assert len(set(index)) == 16
        np.testing.assert_array_equal(X, DATA.X[index])
        np.testing.assert_array_equal(y, DATA.y[index])
    assert len(np.unique(drawn.index)) == len(DATA.y)
    assert len(np.unique(drawn.noise)) == drawn.noise.size


def test_scale_makes_a_batch_stand_for_all_rows() -> None:
    ops = load_backend("numpy")
    assert batches(ops).scale == len(DATA.y) / 16
    assert batches(ops, size=None).scale == 1.0


@pytest.mark.parametrize("size", [None, 16])
def test_evaluation_covers_all_rows_once_with_the_same_noise_each_time(
    size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 13)
    source = batches(load_backend("numpy"), noisy=True, size=size)
    first = list(source.evaluation())
    source.minibatches(3, Z)
    source.full(Z)
    again = list(source.evaluation())
    assert len(first) == (1 if size is None else 4)
    assert sum(rows(first), []) == list(range(len(DATA.y)))  # noqa: RUF017
    noise = [*first, *again, source.test()]
    assert all(np.array_equal(batch.noise, first[0].noise) for batch in noise)
    fresh = [source.full(Z).noise, source.full(Z).noise, *source.minibatches(2, Z).noise]
    assert not any(np.array_equal(a, first[0].noise) for a in fresh)
    assert not np.array_equal(fresh[0], fresh[1])


def test_evaluation_noise_depends_on_the_seed() -> None:
    one, other = (
        batches(load_backend("numpy"), noisy=True, seed=seed).test().noise for seed in (0, 1)
    )
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(("count", "sizes"), [(3, [3, 3, 2]), (8, [8]), (20, [8]), (1, [1] * 8)])
def test_partition_of_the_basis_has_shares_that_sum_to_one(count: int, sizes: list[int]) -> None:
    parts = list(batches(load_backend("numpy"), method=SampledPoints(count=count)).partition(Z))
    assert [len(points) for _, points in parts] == sizes
    assert sum(share for share, _ in parts) == pytest.approx(1.0, rel=1e-15)
    assert [share for share, _ in parts] == [size / len(Z) for size in sizes]
    assert np.concatenate([points for _, points in parts]).tolist() == list(range(len(Z)))


def test_partition_without_sampling_is_the_whole() -> None:
    assert list(batches(load_backend("numpy")).partition(Z)) == [(1.0, ())]


def test_a_batch_samples_distinct_basis_points_and_no_more_than_there_are() -> None:
    ops = load_backend("numpy")
    drawn = batches(ops, method=SampledPoints()).minibatches(30, Z).basis_points
    assert drawn.shape == (30, 3)
    assert all(len(set(points)) == 3 for points in drawn)
    assert set(drawn.ravel().tolist()) == set(range(len(Z)))
    assert batches(ops, method=SampledPoints(count=20)).full(Z).basis_points.shape == (8,)


def test_test_rows_come_in_chunks_only_where_training_rows_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 3)
    (whole,) = batches(load_backend("numpy"), size=None).test_chunks(Z)
    chunks = list(batches(load_backend("numpy")).test_chunks(Z))
    assert [len(chunk.y) for chunk in chunks] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), DATA.X_test)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), DATA.y_test)
    np.testing.assert_array_equal(whole.X, DATA.X_test)


def test_test_targets_are_not_those_of_training() -> None:
    data = TrainingData(PROBLEM.X, PROBLEM.y, PROBLEM.X[:7] + 1.0, PROBLEM.y[:7] + 1.0)
    model = Model(kernel("se"), GaussianLikelihood())
    batch = Batches(load_backend("numpy"), model, DualSVGP(), data, None, 0).test()
    np.testing.assert_array_equal(batch.X, data.X_test)
    np.testing.assert_array_equal(batch.y, data.y_test)


def test_rng_states_bring_every_stream_back() -> None:
    source = batches(load_backend("numpy"), noisy=True, method=SampledPoints())
    source.minibatches(3, Z)
    states = source.rng_states()
    first = [source.minibatches(2, Z), source.full(Z)]
    source.restore(states)
    again = [source.minibatches(2, Z), source.full(Z)]
    for one, other in zip(first, again, strict=True):
        for name in ("index", "noise", "basis_points"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
