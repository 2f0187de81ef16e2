"""The prior mean m₀ of f = m₀ + g: its value from the training targets, and what it does to a model."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import log_softmax, logit, ndtr, ndtri
from small_cell import config, own

from svgpbench.api import fit, load_posterior, save_posterior
from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import SmallProblem, small_problem
from svgpbench.config import InducingConfig, LikelihoodConfig, TrainingConfig
from svgpbench.errors import UnsettledWarning, UserError
from svgpbench.experiments.cell import build_trainer, identify, load_data, prepare_data
from svgpbench.experiments.loading import load_experiment
from svgpbench.experiments.resolve import resolve
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Conditional,
    GaussianLikelihood,
    Likelihood,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
)
from svgpbench.likelihoods.best_constant import best_constant
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.methods import build_method
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import METHODS, load_all

Floats = npt.NDArray[np.float64]
NUMPY = load_backend("numpy")


@pytest.fixture
def rng() -> np.random.Generator:
    """Draws of a test, whatever tests ran before it."""
    return np.random.default_rng(4)


def mean_of(likelihood: Likelihood, y: npt.ArrayLike) -> Floats:
    targets = np.asarray(y, dtype=np.float64)
    return np.asarray(likelihood.latent_mean(NUMPY, likelihood.initial_parameters(), targets))


@dataclass(frozen=True)
class Linked(QuadratureLikelihood):
    """A stranger's counts: Poisson with another link, or a negative binomial of size 2."""

    link: str = "softplus"
    name: ClassVar[str] = "linked"
    task: ClassVar[Any] = "regression"
    support: ClassVar[Any] = "counts"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        if self.link == "negative binomial":
            value = y * f - (y + 2.0) * ops.log(2.0 + ops.exp(f))
            return value, y - (y + 2.0) * ops.exp(f) / (2.0 + ops.exp(f))
        rate, slope = {
            "softplus": (ops.softplus(f), 1.0 - ops.exp(-ops.softplus(f))),
            "square": (f * f, 2.0 * f),
            "identity": (f, 0.0 * f + 1.0),
        }[self.link]
        return y * ops.log(rate) - rate, (y / rate - 1.0) * slope

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(mu + 0.5 * v)[0, ...]


@pytest.mark.parametrize("mean", [0.01, 1.0, 30.0, 1e4, 1e9])
def test_counts_have_the_logarithm_of_their_mean(mean: float, rng: np.random.Generator) -> None:
    y = rng.poisson(mean, 400)
    wanted = np.log(y.mean())
    assert mean_of(Poisson(), y) == pytest.approx(wanted, rel=1e-13)
    assert mean_of(Linked(link="negative binomial"), y) == pytest.approx(wanted, rel=1e-9)
    assert mean_of(Linked(link="square"), y) ** 2 == pytest.approx(y.mean(), rel=1e-12)
    assert mean_of(Linked(link="identity"), y) == pytest.approx(y.mean(), rel=1e-12)
    assert np.logaddexp(0.0, mean_of(Linked(), y)) == pytest.approx(y.mean(), rel=1e-12)


@pytest.mark.parametrize("ones", [1, 3, 150, 299])
def test_labels_have_the_link_of_their_frequency(ones: int) -> None:
    y, p = np.arange(300) < ones, ones / 300
    assert mean_of(BernoulliLogit(), y) == pytest.approx(logit(p), rel=1e-12, abs=1e-15)
    assert mean_of(BernoulliProbit(), y) == pytest.approx(ndtri(p), rel=1e-12, abs=1e-15)
    squashed = mean_of(BernoulliProbit(squash=1e-3), y)
    assert squashed == pytest.approx(ndtri((p - 1e-3) / (1 - 2e-3)), rel=1e-12, abs=1e-15)


def test_classes_have_the_logarithms_of_their_frequencies(rng: np.random.Generator) -> None:
    y = np.repeat([0.0, 1.0, 2.0], [900, 80, 20])
    mean = mean_of(Softmax(classes=3), y)
    assert np.exp(log_softmax(mean)) == pytest.approx([0.9, 0.08, 0.02], rel=1e-13)
    assert mean.sum() == pytest.approx(0.0, abs=1e-14)
    largest = mean_of(RobustMax(classes=3), y) + rng.standard_normal((200_000, 3))
    shares = np.bincount(largest.argmax(axis=1)) / len(largest)
    # the noise is normal where the formula has Gumbel noise: .899, .088, .013, and draws to 1e-3
    assert shares == pytest.approx([0.899, 0.088, 0.013], abs=2e-3)


@pytest.mark.parametrize("likelihood", [GaussianLikelihood(), StudentT()])
def test_real_values_have_none(likelihood: Likelihood) -> None:
    assert mean_of(likelihood, [4.0, 9.0]) == [0.0]


@pytest.mark.parametrize(
    ("likelihood", "y", "wanted"),
    [
        (Poisson(), [0, 0, 0, 0], np.log(0.5 / 4)),  # half a count
        (BernoulliLogit(), [1, 1, 1], logit(np.exp(-0.5 / 3))),
        (BernoulliLogit(), [0, 0, 0], -logit(np.exp(-0.5 / 3))),
        (BernoulliProbit(), [1, 1, 1], ndtri(np.exp(-0.5 / 3))),
        (Softmax(classes=2), [0, 0, 0], np.array([0.5, -0.5]) * np.log(6.0)),
        (Poisson(), [], 0.0),
        (BernoulliProbit(), [], 0.0),
        (Softmax(classes=2), [], 0.0),
    ],
)
def test_targets_without_a_best_mean_have_a_finite_one(
    likelihood: Likelihood, y: list[int], wanted: Any
) -> None:
    assert mean_of(likelihood, y) == pytest.approx(wanted, rel=1e-9)


def test_a_class_rarer_than_the_squash_has_a_finite_mean() -> None:
    """No f has a probability below ε, so that the likelihood rises towards −∞."""
    mean = mean_of(BernoulliProbit(squash=0.01), np.arange(3000) < 2)
    assert -4.0 < mean < -2.0


def test_the_best_constant_of_a_likelihood_that_is_flat_or_never_finite_is_zero() -> None:
    assert best_constant(lambda f: (1.0, 0.0)) == 0.0
    assert best_constant(lambda f: (np.nan, np.nan)) == 0.0


# --- what it does -----------------------------------------------------------------------------


def test_a_mean_is_a_shift_of_the_marginals(ops: Ops, rng: np.random.Generator) -> None:
    mean = np.array([0.7, -1.2, 0.1])
    likelihood = Softmax(classes=3)
    y, noise = ops.asarray(np.array([0.0, 2.0])), ops.asarray(rng.standard_normal((9, 3)))
    mu, v = rng.standard_normal((3, 2)), ops.asarray(rng.uniform(0.2, 1.0, (3, 2)))
    parameters = likelihood.bind((), noise)
    moved = Conditional(likelihood, parameters, mean=ops.asarray(mean[:, None]))
    at_mu, at_f = ops.asarray(mu), ops.asarray(mu + mean[:, None])
    plain = Conditional(likelihood, parameters)
    for name in (
        "variational_expectations", "gradients", "expectations", "count_negative_beta",
        "log_predictive_density", "predicted",
    ):  # fmt: skip
        got, wanted = getattr(moved, name)(ops, y, at_mu, v), getattr(plain, name)(ops, y, at_f, v)
        other = getattr(plain, name)(ops, y, at_mu, v)
        numbers = [
            np.concatenate([np.ravel(ops.to_numpy(x)) for x in flat(value)])
            for value in (got, wanted, other)
        ]
        np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-13, atol=1e-15)
        assert name == "count_negative_beta" or not np.allclose(numbers[0], numbers[2])


def flat(value: Any) -> list[Any]:
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [value]


MEAN = 0.8


@dataclass(frozen=True)
class ByHand(QuadratureLikelihood):
    """Poisson counts with mean exp(f + MEAN)."""

    name: ClassVar[str] = "by-hand"
    task: ClassVar[Any] = "regression"
    support: ClassVar[Any] = "counts"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        return Poisson().log_density(ops, p, y, f + MEAN)

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return Poisson().predict(ops, p, mu + MEAN, v)


class WithMean(SmallProblem):
    """The small problem with MEAN for the prior mean, and less of it in real-valued targets."""

    def theta(self, model: Model, basis: str = "inducing", *, moved: bool = False) -> Theta:
        return super().theta(model, basis, moved=moved)._replace(mean=np.full(1, MEAN))


def problem(kind: type[SmallProblem] = SmallProblem, **changes: Any) -> SmallProblem:
    fields = {x.name: getattr(small_problem(), x.name) for x in dataclasses.fields(SmallProblem)}
    return kind(**fields | changes)


def numbers(b: Bench) -> list[Any]:
    """q(u), the bound, marginals and KL after five steps; the M-step's objective and its gradient."""
    state = b.start
    for rows in b.problem.batches_of(b.method)[:5]:
        state = b.e_step(state, b.batch(rows), 0.5 * b.rate)
    value, gradient = b.objective(state, b.raw)
    return [*b.posterior(state), *b.marginals(state), np.asarray(value), *gradient]


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", load_all(METHODS))
def test_every_method_takes_a_mean_as_a_likelihood_that_has_it_in_itself(
    ops: Ops, name: str
) -> None:
    method = build_method(name, {})
    counts = not method.refuses(Poisson())
    with_mean: Likelihood = Poisson() if counts else GaussianLikelihood()
    by_hand: Likelihood = ByHand() if counts else GaussianLikelihood()
    shifted = problem() if counts else problem(y=small_problem().y - MEAN)
    got = numbers(Bench(ops, Model(kernel("matern52"), with_mean), method, problem(WithMean)))
    wanted = numbers(Bench(ops, Model(kernel("matern52"), by_hand), method, shifted))
    assert worst_of(got, wanted) < 1e-11
    zero = numbers(Bench(ops, Model(kernel("matern52"), with_mean), method, problem()))
    assert worst_of(got, zero) > 1e-3


@pytest.mark.parametrize("ops", ["jax", "torch", "tensorflow"], indirect=True)
@pytest.mark.parametrize("name", ["t-svgp", "sgpr"])
def test_every_backend_has_the_same_numbers_with_a_mean(ops: Ops, name: str) -> None:
    method = build_method(name, {})
    likelihood: Likelihood = GaussianLikelihood() if name == "sgpr" else Poisson()
    model = Model(kernel("matern52"), likelihood)
    got, wanted = (numbers(Bench(each, model, method, problem(WithMean))) for each in (ops, NUMPY))
    assert worst_of(got, wanted) < 1e-10


# --- cells, files and fits --------------------------------------------------------------------


def counts_file(folder: Path) -> Path:
    """60 rows whose counts rise from 1 to 60, so that each part of them has a mean of its own."""
    path = folder / "counts.csv"
    path.write_text("\n".join(["x,y", *(f"{i / 10},{i + 1}" for i in range(60))]) + "\n")
    return path


@pytest.mark.parametrize("fold", [0, 3])
def test_a_cell_takes_the_mean_from_its_training_part_alone(tmp_path: Path, fold: int) -> None:
    likelihood = LikelihoodConfig(name="poisson", latent_mean="data")
    cell = own(counts_file(tmp_path), "regression", likelihood, standardise_y=False)
    split = cell.split.model_copy(update={"fold": fold})
    cell = cell.model_copy(update={"split": split})
    train = prepare_data(cell, load_data(cell.data)).y_train
    run, _ = build_trainer(cell)
    assert run.theta(run.state).mean == pytest.approx(np.log(train.mean()), rel=1e-12)
    few = cell.model_copy(update={"training": TrainingConfig(rows=8, em_iterations=1)})
    run, _ = build_trainer(few)
    assert len(run.data.y) == 8
    assert run.theta(run.state).mean == pytest.approx(np.log(run.data.y.mean()), rel=1e-12)


def test_zero_and_real_values_have_no_mean_at_all(tmp_path: Path) -> None:
    poisson = LikelihoodConfig(name="poisson")
    cells = [
        own(counts_file(tmp_path), "regression", poisson, standardise_y=False),
        config(likelihood=LikelihoodConfig(name="gaussian", latent_mean="data")),
    ]
    for cell in cells:
        run, _ = build_trainer(cell)
        assert run.theta(run.state).mean == ()


def test_an_id_knows_a_mean_from_data_and_no_other() -> None:
    def cell_id(**keys: Any) -> str:
        likelihood = LikelihoodConfig.model_validate(keys)
        data = {} if keys["name"] == "gaussian" else {"data": CLASSES}
        return identify(config(likelihood=likelihood, **data)).cell_id

    CLASSES = config().data.model_copy(update={"name": "ionosphere"})
    probit = cell_id(name="bernoulli-probit")
    assert cell_id(name="bernoulli-probit", latent_mean="zero") == probit
    assert cell_id(name="bernoulli-probit", latent_mean="data") != probit
    assert cell_id(name="gaussian", latent_mean="data") == cell_id(name="gaussian")
    assert "latent_mean" not in LikelihoodConfig(name="poisson").model_dump_json()


def test_a_user_s_file_has_the_data_s_mean_and_a_paper_s_has_zero(tmp_path: Path) -> None:
    counts = counts_file(tmp_path).name
    text = """
name = "counts"
backends = ["numpy"]
[[methods]]
name = "t-svgp"
[[problems]]
data = [{{ name = "counts", path = "{}", target = "y", task = "regression", standardise_y = false }}]
likelihood = {{ name = "poisson"{} }}
"""
    found = []
    for key in ("", ', latent_mean = "zero"', ', latent_mean = "data"'):
        file = tmp_path / "own.toml"
        file.write_text(text.format(counts, key))
        cell = resolve(load_experiment(str(file)))[0]
        found.append(cell.likelihood.latent_mean)
    assert found == ["data", "zero", "data"]
    file.write_text(text.format(counts, ', latent_mean = "log"'))
    with pytest.raises(UserError, match="latent_mean"):
        load_experiment(str(file))
    for paper in ("adam2021-fig3", "adam2021-table1", "salimbeni2018-table2", "beyond"):
        cells = map(identify, resolve(load_experiment(paper)))
        assert {cell.config.likelihood.latent_mean for cell in cells} == {"zero"}


TRAINED = {"em_iterations": 25, "m_steps": 0, "learn": []}
FAR = [[1e3], [-1e3]]


def test_counts_far_from_the_data_are_predicted_by_their_mean(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    X = rng.standard_normal((60, 1))
    y = rng.poisson(300.0 + 20.0 * X[:, 0]).astype(float)
    posterior = fit(X, y, likelihood="poisson", inducing=12, training=TRAINED)
    mu, v = posterior.latent(FAR)
    assert mu[0] == pytest.approx(np.log(y.mean()), rel=1e-9)
    wanted = y.mean() * np.exp(v[0] / 2)
    assert posterior.predict(FAR)["mean"].to_numpy() == pytest.approx(wanted, rel=1e-9)
    # rates of 240 to 360, whose logarithms are within 0.25 of their middle
    assert posterior.inducing().mean == pytest.approx(np.log(y.mean()), abs=0.25)
    near = posterior.predict(X)["mean"] / (300.0 + 20.0 * X[:, 0])
    # a single count at the low end has a standard deviation of 1/√240 = 0.065 of its rate
    assert near.to_numpy() == pytest.approx(1.0, abs=0.065)
    again = load_posterior(save_posterior(posterior, tmp_path / "one.npz"))
    assert again.predict(X).equals(posterior.predict(X))
    assert again.score(X, y) == posterior.score(X, y)
    by_zero = {"name": "poisson", "latent_mean": "zero"}
    few = rng.poisson(2.0, 60).astype(float)
    other = fit(X, few, likelihood=by_zero, inducing=12, training=TRAINED)
    assert other.latent(FAR)[0] == pytest.approx(0.0, abs=1e-12)


def test_a_rare_class_has_its_frequency_far_from_the_data(rng: np.random.Generator) -> None:
    X = rng.standard_normal((200, 1))
    y = np.where(np.arange(200) < 10, "rare", "usual")
    posterior = fit(X, y, likelihood="bernoulli-probit", inducing=8, training=TRAINED)
    assert posterior.latent(FAR)[0] == pytest.approx(ndtri(0.95), rel=1e-9)  # class 1 is "usual"
    wanted = ndtr(-ndtri(0.95) / np.sqrt(2.0))  # the kernel's variance is 1
    assert posterior.predict(FAR)["p(rare)"].to_numpy() == pytest.approx(wanted, rel=1e-6)


def test_a_file_without_a_mean_has_a_mean_of_zero(tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.standard_normal((30, 1))
    y = rng.poisson(5.0, 30).astype(float)
    posterior = fit(X, y, likelihood="poisson", inducing=5, training=TRAINED)
    path = save_posterior(posterior, tmp_path / "one.npz")
    with np.load(path) as kept:
        arrays = {name: kept[name] for name in kept.files}
    mean = arrays.pop("theta.mean")
    assert mean == pytest.approx(np.log(y.mean()))
    np.savez(path, **arrays)
    assert load_posterior(path).latent(X)[0] == pytest.approx(posterior.latent(X)[0] - mean)
    np.savez(path, **arrays | {"theta.mean": np.zeros(2)})
    with pytest.raises(UserError, match=r"theta\.mean"):
        load_posterior(path)


def test_inducing_functions_and_minibatches_train_with_a_mean(rng: np.random.Generator) -> None:
    X = rng.standard_normal((80, 1))
    y = rng.poisson(50.0, 80).astype(float)
    for inducing, training in (
        ({"count": 8, "functions": "features"}, {}),
        (InducingConfig(count=8).model_dump(), {"batch_size": 20, "e_rate": 0.3}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsettledWarning)
            posterior = fit(
                X, y, likelihood="poisson", kernel="se", inducing=inducing,
                training=TRAINED | training,
            )  # fmt: skip
        # the fit follows the counts' own mean, which is 50 to 2 %
        assert posterior.predict(X)["mean"].mean() == pytest.approx(y.mean(), rel=0.02)
