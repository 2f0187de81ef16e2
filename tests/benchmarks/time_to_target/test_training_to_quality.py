"""A run: what its clock counts, what it may see, and how its end is recorded."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from racing import FAKE, SCRIPT, fake_trainer, run_of, tiny_plan
from scipy import stats

from svgpbench.benchmarks.time_to_target.comparison import search
from svgpbench.benchmarks.time_to_target.plan import Contestant, read_learning_plan
from svgpbench.benchmarks.time_to_target.problems import (
    Judge,
    minibatches,
    prepare_problem,
    sizes_of,
)
from svgpbench.benchmarks.time_to_target.records import read_training
from svgpbench.benchmarks.time_to_target.training import PlanTrainer, Resources
from svgpbench.benchmarks.timing.peers import SERVE, locate_peers, peer_python
from svgpbench.config import LikelihoodConfig, RatePair
from svgpbench.environment import OURS
from svgpbench.errors import UserError
from svgpbench.likelihoods import build_likelihood
from svgpbench.runs.line_process import LineProcess

RESULTS = Path(__file__).parents[3] / "results" / "learning"


def test_the_clock_counts_training_and_neither_looks_nor_what_compiles(tmp_path: Path) -> None:
    plan = tiny_plan()
    with fake_trainer(plan, tmp_path) as trainer:
        record = trainer.run(run_of(plan, mode="fast"))
    assert record.status == "ok" and record.mode == "fast"
    # an iteration takes 1 s, handing its rows over a quarter; building 1000, a look 1000
    assert [look.iterations for look in record.looks] == [0, 4, 8, 16]
    assert [look.seconds for look in record.looks] == [0.0, 5.0, 10.0, 20.0]
    assert record.ms_an_iteration == 1250.0
    assert record.first_call_s == 2.0


def test_a_peer_that_is_asked_for_no_mode_trains_in_its_fastest_from_the_start(
    tmp_path: Path,
) -> None:
    plan = tiny_plan()
    with fake_trainer(plan, tmp_path) as trainer:
        record = trainer.run(run_of(plan))
    assert record.mode == "fast" and record.modes == {"slow": 3.0, "fast": 1.0}
    assert record.last is not None and record.last.iterations == 16
    # the NLPD of N(0, 1 + 1/(1 + k)) says that k counts from the start
    judge = prepare_problem(plan, "tiny", 0).judge
    expected = -np.mean(stats.norm.logpdf(judge.y, scale=np.sqrt(1.0 + 1.0 / 17.0)))
    assert record.last.nlpd == pytest.approx(expected, rel=1e-12)


def test_rates_are_searched_without_test_rows_and_the_best_elbo_is_chosen(tmp_path: Path) -> None:
    plan = tiny_plan(e_rates=(0.1, 0.3, 1.0))
    with fake_trainer(plan, tmp_path) as trainer:
        entry = search(plan, "tiny", FAKE, trainer.run)
    assert entry.choice == ("fast", RatePair(0.3, 0.01))
    assert [record.run.mode for record in entry.search] == ["", "fast", "fast"]
    for record in entry.search:
        (look,) = record.looks
        assert look.nlpd is None and look.seconds == 5.0
        # a test row would cost 10
        assert look.elbo == pytest.approx(-abs(record.run.rates.e - 0.3), abs=1e-4)


def test_training_for_longer_than_an_answer_may_take_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    real = LineProcess.line

    def line(self: LineProcess, seconds: float | None, *rest: Any) -> bytes:
        limits.append(seconds or 0.0)
        return real(self, seconds, *rest)

    monkeypatch.setattr(LineProcess, "line", line)
    plan = tiny_plan(search_s=1000.0)
    with fake_trainer(plan, tmp_path) as trainer:
        record = trainer.run(run_of(plan, mode="fast", search=True, seconds=1000.0))
    assert record.status == "ok"
    # the first line, the model, 1000 s of training, and the bound
    assert limits == [600.0, 600.0, 1600.0, 600.0]


@pytest.mark.parametrize(
    ("e_rate", "said"),
    [
        (7.0, "SIGKILL"),
        (8.0, "ValueError: not positive"),
        (9.0, "the bound is not finite by iteration 4"),
    ],
)
def test_a_run_that_dies_is_recorded_with_what_it_had_reached(
    tmp_path: Path, e_rate: float, said: str
) -> None:
    plan = tiny_plan(first_look_s=2.5)
    with fake_trainer(plan, tmp_path) as trainer:
        record = trainer.run(run_of(plan, rates=RatePair(e_rate, 0.01), mode="fast"))
    assert record.status == "error" and said in record.message
    assert [look.iterations for look in record.looks] == [0, 2]
    assert "\n" not in record.message


@pytest.mark.parametrize(
    ("script", "method", "said"),
    [
        (SCRIPT, "none", "it has none"),
        (SCRIPT.replace("def learner(", "def another("), "m", "its script offers no learner"),
    ],
)
def test_a_peer_that_cannot_is_refused_in_one_line(
    tmp_path: Path, script: str, method: str, said: str
) -> None:
    plan = tiny_plan()
    with fake_trainer(plan, tmp_path, script) as trainer:
        record = trainer.run(run_of(plan, Contestant("fake", method)))
    assert (record.status, record.message, record.looks) == ("skipped", said, ())


class Eats:
    """A learner that remembers what it was fed."""

    def __init__(self) -> None:
        self.fed: list[Any] = []
        self.modes = {"only": lambda: None}

    def feed(self, batches: Any, noise: Any) -> None:
        self.fed.append([(X[:, 0].tolist(), y.tolist(), noise.item()) for X, y in batches])

    def reset(self) -> None:
        self.fed.clear()


def test_each_iteration_is_fed_the_next_rows_and_draws() -> None:
    serve, learner = runpy.run_path(str(SERVE)), Eats()
    n, rows = 8, np.array([[0, 1], [2, 3], [4, 5], [6, 7], [1, 0]])
    arrays = {
        "X": np.arange(n)[:, None],
        "y": 10 * np.arange(n),
        "rows": rows,
        "draws": np.array([[[5.0]], [[6.0]]]),
        "e_steps": np.array(2),
    }
    peer = SimpleNamespace(learner=lambda *of: learner)
    training = serve["Training"](peer, arrays, "m", "")
    assert training.advance(1e9, 2)["iterations"] == 2
    assert training.advance(1e9, 3)["iterations"] == 3
    taken = [0, 1, 2, 3, 4, 0, 1, 2, 3]  # three an iteration, and again from the first
    expected = [
        (rows[at].tolist(), (10 * rows[at]).tolist(), (5.0, 6.0)[k // 3 % 2])
        for k, at in enumerate(taken)
    ]
    assert [batch for each in learner.fed for batch in each] == expected


def test_minibatches_are_epochs_and_seeds_have_their_own() -> None:
    rows = minibatches(50, 16, np.random.default_rng(0))
    for epoch in rows.reshape(-1, 48):
        assert len(set(epoch)) == 48 and epoch.min() >= 0 and epoch.max() < 50
    plan = tiny_plan()
    one, same, other = (prepare_problem(plan, "tiny", seed) for seed in (0, 0, 1))
    for name in ("rows", "Z"):
        assert np.array_equal(one.arrays[name], same.arrays[name])
        assert not np.array_equal(one.arrays[name], other.arrays[name])
    assert np.array_equal(one.X_new, other.X_new)  # of all seeds the same test rows


@pytest.mark.parametrize(
    "split",
    [
        {"kind": "k-fold", "folds": 4, "fold": 3},  # 1503 rows: folds of 376, 376, 376 and 375
        {"kind": "k-fold", "folds": 4, "fold": 2},
        {"kind": "blocks", "folds": 4, "fold": 3},
        {"kind": "random", "test_fraction": 0.3},
    ],
    ids=str,
)
def test_the_size_of_a_problem_is_that_of_its_training_part(split: dict[str, Any]) -> None:
    plan = tiny_plan(split=split)
    assert sizes_of(plan.problems["tiny"]) == prepare_problem(plan, "tiny", 0).arrays["X"].shape


def test_sizes_of_published_splits_are_of_the_training_part() -> None:
    plan = read_learning_plan()
    assert sizes_of(plan.problems["kin40k"]) == (36_000, 8)
    assert sizes_of(plan.problems["mnist"]) == (60_000, 784)


def test_a_plan_may_ask_for_the_first_rows_and_for_two_bases() -> None:
    rows = prepare_problem(tiny_plan(first_rows=True), "tiny", 0).arrays
    assert np.array_equal(rows["Z"], rows["X"][:7]) and "gamma" not in rows
    both = prepare_problem(tiny_plan(two_bases=(9, 4)), "tiny", 0).arrays
    bases = np.concatenate([both["gamma"], both["beta"]])
    assert (len(both["gamma"]), len(both["beta"])) == (9, 4)
    train = {row.tobytes() for row in both["X"]}
    assert len({row.tobytes() for row in bases}) == 13
    assert all(row.tobytes() in train for row in bases)
    # a default that is written out changes no digest
    plan = tiny_plan()
    assert plan.digest("tiny") == tiny_plan(first_rows=False, two_bases=None).digest("tiny")
    digests = {tiny_plan(**x).digest("tiny") for x in ({"first_rows": True}, {"two_bases": (9, 4)})}
    assert len(digests | {plan.digest("tiny")}) == 3


def test_the_committed_records_are_those_of_the_shipped_plan() -> None:
    plan = read_learning_plan()
    recorded = {run.plan for run in read_training(RESULTS) if run.problem in plan.problems}
    assert recorded == {plan.digest(problem) for problem in plan.problems}


@pytest.mark.parametrize("method", ["orth natgrad adam", "orth adam", "q-svgp adam"])
def test_ours_trains_with_two_bases_and_any_variant(method: str) -> None:
    plan = tiny_plan(two_bases=(9, 4), iterations=30)
    with PlanTrainer(plan, Resources({}, 1, ())) as trainer:
        record = trainer.run(run_of(plan, Contestant(OURS, method), seconds=1e6))
    assert record.status == "ok", record
    first, last = record.looks[0], record.last
    assert last is not None and last.iterations == 30 and last.nlpd is not None
    plain = tiny_plan(iterations=30)
    with PlanTrainer(plain, Resources({}, 1, ())) as trainer:
        alone = trainer.run(run_of(plain, Contestant(OURS, method), seconds=1e6))
    if method.startswith("orth"):
        assert (alone.status, alone.looks) == ("skipped", ()) and "two_bases" in alone.message
    else:
        assert alone.last == last._replace(seconds=alone.looks[-1].seconds)  # M = 7 in both
    assert first.elbo <= last.elbo


def test_no_run_sees_a_test_label_and_no_test_row_is_trained_on() -> None:
    prepared = prepare_problem(tiny_plan(), "tiny", 0)
    train = {row.tobytes() for row in prepared.arrays["X"]}
    assert len(prepared.X_new) == 40
    assert not train & {row.tobytes() for row in prepared.X_new}
    assert prepared.arrays["y"].shape == prepared.arrays["X"].shape[:1]
    assert len(prepared.run_arrays(RatePair(0.1, 0.1), search=True)["X_new"]) == 0
    assert len(prepared.run_arrays(RatePair(0.1, 0.1), search=False)["X_new"]) == 40
    # of the labels, a run is handed those of the training part
    handed = {x.tobytes() for x in prepared.arrays.values() if isinstance(x, np.ndarray)}
    assert prepared.judge.y.tobytes() not in handed


def judge_of(y: Any, noise: Any = None, **keys: Any) -> Judge:
    likelihood = build_likelihood(LikelihoodConfig.model_validate(keys))
    return Judge(likelihood, np.asarray(y, float), np.zeros((0, 1)) if noise is None else noise)


def test_the_judge_computes_densities_as_the_book_has_them() -> None:
    rng = np.random.default_rng(3)
    mean, variance = rng.standard_normal((1, 6)), rng.uniform(0.1, 1.0, (1, 6))
    predicted = {"mean": mean, "variance": variance, "noise_variance": np.array(0.2)}
    y = rng.standard_normal(6)
    expected = -np.mean(stats.norm.logpdf(y, mean[0], np.sqrt(variance[0] + 0.2)))
    assert judge_of(y, name="gaussian").nlpd(predicted) == pytest.approx(expected, rel=1e-12)

    labels = np.array([0, 1, 1, 0, 1, 0.0])
    p = 1e-3 + (1 - 2e-3) * stats.norm.cdf(mean[0] / np.sqrt(1 + variance[0]))
    expected = -np.mean(np.log(np.where(labels == 1, p, 1 - p)))
    judge = judge_of(labels, name="bernoulli-probit", squash=1e-3)
    assert judge.nlpd(predicted) == pytest.approx(expected, rel=1e-9)

    f, v = rng.standard_normal((3, 6)), rng.uniform(0.1, 1.0, (3, 6))
    draws, classes = rng.standard_normal((50, 3)), np.array([0, 2, 1, 1, 0, 2])
    logits = f[None] + np.sqrt(v)[None] * draws[:, :, None]
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -np.mean(np.log(probability.mean(axis=0)[classes, np.arange(6)]))
    judge = judge_of(classes, draws, name="softmax", classes=3, samples=50)
    several = {"mean": f, "variance": v, "noise_variance": np.array(0.0)}
    assert judge.nlpd(several) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kernel": {"ard": False}}, "matern52 with ard = true"),
        ({"likelihood": {"name": "student-t"}}, "the peers have likelihoods gaussian"),
        ({"likelihood": {"name": "bernoulli-probit"}}, "squash = 0.001"),
        ({"batch_size": 10**6}, "fewer than a batch"),
        ({"split": {"kind": "none"}}, "no test rows"),
    ],
)
def test_a_problem_that_peers_do_not_have_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare_problem(tiny_plan(**change), "tiny", 0)


def test_the_shipped_plan_trains_for_less_than_75_minutes() -> None:
    plan = read_learning_plan()
    contestants = {"mnist": 5}  # GPJax has no several latents
    trained = sum(
        contestants.get(name, 7)
        * ((len(settings.grid) - 1) * settings.search_s + len(plan.seeds) * settings.seconds)
        + (5 + 2 * len(plan.backends)) * settings.search_s
        for name, settings in plan.problems.items()
    )
    assert trained < 75 * 60 and len(plan.seeds) == 3


FAMILIES = [
    ("gpflow", "natgrad", "graph", "q-svgp", 1e-5),  # Keras's Adam has float32 rates
    ("gpflow", "natgrad retraced", "graph", "q-svgp", 1e-5),
    ("gpytorch", "ngd", "eager", "q-svgp", 1e-9),
    ("gpjax", "dual", "jit", "t-svgp", 1e-9),
]


@pytest.mark.parametrize(("name", "method", "mode", "ours", "apart"), FAMILIES)
def test_a_peer_learns_as_we_do(name: str, method: str, mode: str, ours: str, apart: float) -> None:
    if peer_python(name) is None:
        pytest.skip(f"no environment of peer {name!r}: make peers makes it")
    plan = tiny_plan(iterations=4)
    with PlanTrainer(plan, Resources(locate_peers([name]), 1, ())) as trainer:
        both = [
            trainer.run(run_of(plan, Contestant(OURS, ours), seconds=1e6)),
            trainer.run(run_of(plan, Contestant(name, method), mode=mode, seconds=1e6)),
        ]
    for record in both:
        assert record.status == "ok", record
    mine, theirs = (record.last for record in both)
    assert mine is not None and theirs is not None and mine.iterations == theirs.iterations == 4
    assert theirs.elbo == pytest.approx(mine.elbo, rel=apart)
    assert theirs.nlpd == pytest.approx(mine.nlpd, rel=apart)
