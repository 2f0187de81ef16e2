"""Learning online: the loop, its trials, its growth, and what it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_cell
from small_training import assert_traces_agree, column

from svgpbench.backends import load_backend
from svgpbench.checks.cases import build_model
from svgpbench.checks.matrix import difference
from svgpbench.config import (
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    MethodConfig,
    OnlineConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.experiments.cell import run_cell
from svgpbench.experiments.validation import check_cells
from svgpbench.initialization.growing_basis import CLOSEST, Growth, new_points
from svgpbench.kernels import Theta
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.online import OnlineTrainer
from svgpbench.tree import named_leaves
from svgpbench_datasets.generators import sinc

X, Y = sinc(600, 0)
Y = (Y - Y[:500].mean()) / Y[:500].std()
DATA = TrainingData(X[:500], Y[:500], X[500:], Y[500:])
ONE = np.ones((1, 1))
SMALL = Growth(4, 12)


def trainer(
    method: str = "t-svgp",
    options: dict[str, Any] | None = None,
    growth: Growth = SMALL,
    ops: Ops | None = None,
    batch: int | None = 100,
    **online: Any,
) -> OnlineTrainer:
    settings = {"iterations": 12, "increment": growth.increment, "rates": (0.1,), "trace_every": 6}
    return OnlineTrainer(
        ops or load_backend("numpy"),
        build_model("gaussian", "se"),
        build_method(method, options or {}),
        DATA,
        Theta(KernelParameters(np.ones(1), ONE), GaussianParameters(np.float64(0.3)), ()),
        TrainingConfig(kind="online", batch_size=batch, online=OnlineConfig(**(settings | online))),
        growth,
        seed=3,
    )


CASES: dict[str, tuple[str, dict[str, Any], Growth]] = {
    "SVDGP": ("decoupled", {"subset": 6}, Growth(8, 8, 24, width=0.2)),
    "iVSGPR": ("t-svgp", {}, Growth(4, 12, width=0.2)),
    "SVI": ("q-svgp", {"whiten": False}, SMALL),
}


def assert_same_run(ops: Ops, case: str) -> None:
    """Twelve iterations with two growths: every trace point, the last θ and state."""
    method, options, growth = CASES[case]
    reference = trainer(method, options, growth).run()
    found = trainer(method, options, growth, ops).run()
    final = growth.limit_gamma or growth.limit
    assert column(reference, "gamma" if growth.limit_gamma else "inducing")[-1] == final
    assert_traces_agree(found, reference, rel=1e-9)
    for (name, got), (_, wanted) in zip(
        named_leaves((found.theta, found.q)),
        named_leaves((reference.theta, reference.q)),
        strict=True,
    ):
        assert difference(got, wanted) < 1e-9, name


def test_every_backend_gives_the_same_run(ops: Ops) -> None:
    assert_same_run(ops, "SVDGP")


@pytest.mark.parametrize("case", ["iVSGPR", "SVI"])
def test_another_backend_gives_the_same_run_of_the_other_algorithms(case: str) -> None:
    assert_same_run(load_backend("torch"), case)


def test_basis_begins_with_the_first_batch_and_grows_by_the_increment() -> None:
    run = trainer(growth=Growth(5, 12), iterations=5, trace_every=1)
    first = run.theta(run.state).inducing
    rows = np.random.default_rng([3, 2]).choice(500, 100, replace=False)
    assert np.array_equal(first, X[rows[:5]])
    assert column(run.run(), "inducing") == [5, 10, 12, 12, 12]


def test_two_bases_grow_from_the_same_points_each_to_its_limit() -> None:
    run = trainer("decoupled", {}, Growth(4, 6, 13), iterations=6, trace_every=1)
    assert isinstance(run.theta(run.state).inducing, Decoupled)
    assert np.array_equal(*run.theta(run.state).inducing)
    trained = run.run()
    assert column(trained, "inducing") == [4, 6, 6, 6, 6, 6]
    assert column(trained, "gamma") == [4, 8, 12, 13, 13, 13]


def test_growth_changes_neither_q_nor_what_adam_knows_of_the_old_basis() -> None:
    run = trainer(growth=Growth(4, 12, width=0.2), iterations=3)
    run.state = run.step(run.state)
    before, adam, M = run.heldout_bound(run.state), run.state.adam, 4
    run.state = run.grow_basis(run.state, X[:50])
    assert run.theta(run.state).inducing.centres.shape == (8, 1)
    assert run.heldout_bound(run.state) == pytest.approx(before, rel=1e-12)
    assert isinstance(run.state.raw.inducing, Features)
    assert run.state.raw.inducing.widths[M:] == pytest.approx(
        np.full((4, 1), 0.2 * run.theta(run.state).kernel.lengthscales[0, 0])
    )
    old, new = adam.mean[-1].centres, run.state.adam.mean[-1].centres
    assert np.array_equal(new[:M], old) and not np.any(new[M:])


def test_repeated_points_are_passed_over() -> None:
    inputs = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.5 * CLOSEST, 0.0], [2.0, 1.0]])
    known, ones = np.array([[1.0, 1.0]]), np.ones((1, 2))
    assert list(new_points(inputs, known, ones, 5)) == [0, 4]
    assert list(new_points(inputs, known, ones, 1)) == [0]
    assert list(new_points(inputs, known[:0], ones, 5)) == [0, 1, 4]
    # in shorter lengthscales two of them are apart
    assert list(new_points(inputs, known, 0.1 * ones, 5)) == [0, 3, 4]


def test_a_batch_with_too_few_new_points_adds_none() -> None:
    growth = Growth(3, 9)
    basis = growth.start(X[:10], ONE)
    assert growth.grown(basis, np.concatenate([X[:3], X[:3]]), ONE) is basis
    assert len(growth.grown(basis, X[:6], ONE)) == 6
    with pytest.raises(UserError, match="holds 2 inputs that differ"):
        growth.start(np.concatenate([X[:2], X[:2]]), ONE)


def test_the_best_trial_goes_on_as_if_it_had_been_alone() -> None:
    rates = (0.1, 0.001, 1e-5)
    chosen = trainer(rates=rates, trial=6).run()
    alone = {rate: trainer(rates=(rate,)).run() for rate in rates}
    after = {rate: column(run, "elbo")[1] for rate, run in alone.items()}
    best = max(after, key=lambda rate: after[rate])
    assert column(chosen, "gamma0") == [best] * 3
    assert column(chosen, "elbo") == column(alone[best], "elbo")
    assert [p["iteration"] for p in chosen.trace] == [1, 6, 12]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_trial_that_fails_is_not_chosen_and_a_run_of_it_alone_says_so() -> None:
    wild = trainer(rates=(50.0,)).run()
    assert wild.status in ("not_pd", "diverged")
    assert "at iteration" in wild.message
    assert column(trainer(rates=(50.0, 0.01), trial=6).run(), "gamma0")[-1] == 0.01


@pytest.mark.parametrize("first", [np.inf, np.nan, 1e92])
def test_a_trial_whose_bound_is_not_finite_is_not_chosen(
    monkeypatch: pytest.MonkeyPatch, first: float
) -> None:
    run, bounds = trainer(rates=(0.1, 0.01, 0.02), trial=2), iter((first, -2.0, -3.0))
    monkeypatch.setattr(run, "add_trace_point", lambda state: state)
    monkeypatch.setattr(run, "elbo", lambda state: next(bounds))
    run.run()
    assert run.state.online_rate == 0.01


def test_learning_improves_the_held_out_bound_and_error_on_sinc() -> None:
    trained = trainer(growth=Growth(8, 24), iterations=60, trace_every=20).run()
    bound, error = column(trained, "heldout_elbo"), column(trained, "nmse")
    assert bound[-1] > bound[0] + 500.0
    assert error[-1] < 0.2 < error[0]


def test_a_larger_basis_of_the_mean_predicts_better_at_the_same_basis_of_the_covariance() -> None:
    """As Figure 1 of Cheng and Boots 2017: (a) a small basis for both, (b) decoupled, (c) a full one."""
    shared, decoupled, full = (
        column(trainer(method, {}, growth, iterations=80, trace_every=80).run(), "nmse")[-1]
        for method, growth in (
            ("t-svgp", Growth(8, 8)),
            ("decoupled", Growth(8, 8, 48)),
            ("t-svgp", Growth(16, 48)),
        )
    )
    assert full < decoupled < shared
    assert decoupled - full < shared - decoupled  # nearer to (c) than to (a)


def test_held_out_bound_and_error_are_those_of_their_definitions() -> None:
    run = trainer("decoupled", {"subset": 5}, Growth(8, 8, 16), iterations=4)
    trained = run.run()
    f = run.steps.factor(run.state.raw, run.state.prior, run.batches.test())
    mu, v = run.method.marginals(run.ops, f, run.method.factorise(run.ops, f, run.state.q))
    V = run.model.conditional(trained.theta).variational_expectations(run.ops, DATA.y_test, mu, v)
    # the whole K_α, where the run samples its columns
    whole = build_method("decoupled", {})
    cov = run.model.covariance(run.ops, trained.theta)
    blocks = whole.prior(run.ops, cov, trained.theta.inducing)
    kl = whole.kl(run.ops, blocks, whole.factorise(run.ops, blocks, run.state.q))
    wanted = 500 / 100 * float(np.sum(V)) - float(kl)
    assert column(trained, "heldout_elbo")[-1] == pytest.approx(wanted, rel=1e-12)
    error = np.mean((mu[0] - DATA.y_test) ** 2) / np.var(DATA.y_test)
    assert column(trained, "nmse")[-1] == pytest.approx(error, rel=1e-12)


def test_only_what_is_learned_moves() -> None:
    run = trainer(growth=Growth(6, 6))
    run.settings = run.settings.model_copy(update={"learn": ()})
    start = run.theta(run.state)
    trained = run.run()
    assert np.array_equal(trained.theta.inducing, start.inducing)
    assert column(trained, "elbo")[-1] > column(trained, "elbo")[0]


def cell(**changes: Any) -> CellConfig:
    online = OnlineConfig(iterations=40, increment=10, rates=(0.1,), trace_every=20)
    parts: dict[str, Any] = {
        "data": DataConfig(name="airfoil"),
        "kernel": KernelConfig(name="se", init="median"),
        "inducing": InducingConfig(count=30, functions="features"),
        "training": TrainingConfig(kind="online", batch_size=128, online=online),
    }
    return small_cell.config(**(parts | changes))


def test_a_cell_learns_airfoil_online() -> None:
    outcome = run_cell(cell())
    assert outcome.status == "ok"
    assert outcome.trace["iteration"] == [1, 20, 40]
    assert outcome.trace["inducing"] == [10, 30, 30]
    held_out = [float(x or 0.0) for x in outcome.trace["heldout_elbo"]]
    error = [float(x or 0.0) for x in outcome.trace["nmse"]]
    assert held_out[0] + 200.0 < held_out[1] < held_out[2]
    assert error[2] < error[1] < error[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": MethodConfig(name="t-svgp", options={"tying": "untied"})}, "basis that grows"),
        (
            {"method": MethodConfig(name="orth"), "inducing": InducingConfig(count=5, gamma=9)},
            "method 'orth' does not say what its state is",
        ),
        (
            {"training": TrainingConfig(kind="online", batch_size=100)},
            "training.online.increment 128 exceeds the batch of 100 rows",
        ),
        ({"method": MethodConfig(name="decoupled")}, "set inducing.gamma"),
    ],
)
def test_what_cannot_learn_online_is_one_line_before_anything_runs(
    changes: dict[str, Any], message: str
) -> None:
    for refused in (lambda: check_cells([cell(**changes)]), lambda: run_cell(cell(**changes))):
        with pytest.raises(UserError, match=message) as caught:
            refused()
        assert "\n" not in str(caught.value)
