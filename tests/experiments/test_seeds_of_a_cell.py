"""A cell's seed reaches every draw, each in a stream of its own: the same again, another for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_cell import config

from svgpbench.config import (
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    OnlineConfig,
    SplitConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import build_trainer
from svgpbench.training.em import Trainer

MINIBATCH = TrainingConfig(em_iterations=2, batch_size=50)
SAMPLING = {"data": DataConfig(name="ionosphere"), "likelihood": LikelihoodConfig(name="softmax")}
TWO_BASES = {
    "method": MethodConfig(name="decoupled", options={"subset": 4}),
    "inducing": InducingConfig(count=6, gamma=30, init="random"),
}
ONLINE = TrainingConfig(
    kind="online", batch_size=50, online=OnlineConfig(iterations=2, increment=4, rates=(0.1,))
)


def built(seed: int, **changes: Any) -> Trainer:
    return build_trainer(config(seed=seed, **changes))[0]


DRAWS: dict[str, tuple[dict[str, Any], Callable[[Trainer], Any]]] = {
    "rows of batches": ({"training": MINIBATCH}, lambda run: run.batches.sample()),
    "noise of batches": (
        SAMPLING | {"training": MINIBATCH},
        lambda run: run.batches.minibatches(1, run.state.raw.inducing).noise,
    ),
    "noise of evaluation": (SAMPLING, lambda run: run.batches.test().noise),
    "basis points": (TWO_BASES, lambda run: run.batches.full(run.state.raw.inducing).basis_points),
    "random inducing inputs": (
        {"inducing": InducingConfig(count=10, init="random")},
        lambda run: run.state.raw.inducing,
    ),
    "centres of k-means": (
        {"inducing": InducingConfig(count=10, init="k-means")},
        lambda run: run.state.raw.inducing,
    ),
    "two bases dealt": (TWO_BASES, lambda run: np.concatenate(run.state.raw.inducing)),
    "first basis of an online run": ({"training": ONLINE}, lambda run: run.state.raw.inducing),
    "rows of an online run": ({"training": ONLINE}, lambda run: run.batches.sample()),
    "perturbation": (
        {"perturbation": 1e-3},
        lambda run: np.append(np.ravel(run.data.X), run.data.y),
    ),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_is_the_same_for_a_seed_and_another_for_another(draw: str) -> None:
    changes, drawn = DRAWS[draw]
    first, again, other = (drawn(built(seed, **changes)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert first.shape == other.shape
    assert not np.array_equal(first, other)


def test_streams_of_one_seed_are_not_copies_of_one_another() -> None:
    """Two kinds of draws from one stream would be equal numbers."""
    run = built(3, **SAMPLING, training=MINIBATCH)
    batch, evaluation = (
        run.batches.minibatches(1, run.state.raw.inducing).noise[0],
        run.batches.test().noise,
    )
    assert not np.array_equal(batch, evaluation)
    rows = run.batches.sample()
    Z = built(3, **SAMPLING, inducing=InducingConfig(count=50, init="random")).state.raw.inducing
    first = np.asarray(
        run.data.X[np.random.default_rng([3, 2]).choice(len(run.data.y), 50, replace=False)]
    )
    assert len(rows) == len(first) == len(Z)
    assert not np.array_equal(np.sort(Z, axis=0), np.sort(first, axis=0))


def test_the_split_has_a_seed_of_its_own() -> None:
    def rows(seed: int, split_seed: int) -> Any:
        return np.asarray(built(seed, split=SplitConfig(seed=split_seed)).data.X)

    assert np.array_equal(rows(0, 0), rows(1, 0))
    assert not np.array_equal(rows(0, 0), rows(0, 1))


def test_a_seed_is_not_shared_by_draws_of_different_settings() -> None:
    """The rows of batches stay when the inducing inputs are chosen another way, and the other way round."""
    ways = [
        InducingConfig(count=count, init=init) for count, init in ((10, "random"), (20, "k-means"))
    ]
    one, other = (built(3, training=MINIBATCH, inducing=way).batches.sample() for way in ways)
    assert np.array_equal(one, other)
    whole, parts = (built(3, training=t).state.raw.inducing for t in (MINIBATCH, TrainingConfig()))
    assert np.array_equal(whole, parts)


def perturbed_and_plain(size: float, cell: CellConfig | None = None) -> list[Any]:
    cell = cell or config()
    return [
        build_trainer(cell.model_copy(update={"perturbation": by}))[0].data for by in (size, 0.0)
    ]


def test_a_perturbation_is_drawn_from_the_stream_that_records_have() -> None:
    moved, plain = perturbed_and_plain(1e-3, config(seed=2))
    noise = np.random.default_rng([2, 3]).standard_normal(plain.X.shape)
    assert np.array_equal(moved.X, np.asarray(plain.X) * (1.0 + 1e-3 * noise))


@pytest.mark.parametrize("size", [1e-3, 1e-9])
def test_a_perturbation_moves_what_is_trained_on_relative_to_its_size(size: float) -> None:
    moved, plain = perturbed_and_plain(size)
    pairs = [(np.ravel(moved.X), np.ravel(plain.X)), (moved.y, plain.y)]
    (shift,) = [
        a[b != 0.0] / b[b != 0.0] - 1.0 for a, b in pairs if not np.array_equal(a, b)
    ]  # of the inputs or of the targets
    assert np.std(shift) == pytest.approx(size, rel=0.15)
    assert abs(np.mean(shift)) < 0.2 * size
    assert np.max(np.abs(shift)) < 6 * size


def test_a_perturbation_leaves_the_test_part_and_the_units_alone() -> None:
    moved, plain = perturbed_and_plain(1e-3)
    assert np.array_equal(np.asarray(moved.X_test), np.asarray(plain.X_test))
    assert np.array_equal(moved.y_test, plain.y_test)
    assert moved.y_scale == plain.y_scale


def test_a_perturbed_run_has_other_numbers() -> None:
    def elbo(size: float) -> Any:
        kernel = KernelConfig(lengthscale=3.0)
        return [p["elbo"] for p in built(0, perturbation=size, kernel=kernel).run().trace]

    moved, plain = elbo(1e-3), elbo(0.0)
    assert moved != plain
    assert moved == pytest.approx(plain, rel=1e-2)
