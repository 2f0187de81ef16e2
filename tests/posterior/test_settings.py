"""Every keyword of `fit` reaches its training: the bound is that of a training loop with the same setting."""

from __future__ import annotations

import inspect
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psutil
import pytest
from small_fits import QUICK, regression

from svgpbench.api import Posterior, UserError, fit
from svgpbench.backends import load_backend
from svgpbench.config import InducingConfig, LikelihoodConfig, TrainingConfig
from svgpbench.initialization.inducing_inputs import initial_bases
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.posterior.defaults import MINIBATCHES
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer
from svgpbench.tree import tree_map

USUAL: dict[str, Any] = {
    "method": "t-svgp",
    "likelihood": "gaussian",
    "kernel": "matern52",
    "inducing": 12,
    "training": QUICK,
    "seed": 0,
    "jitter": 1e-6,
}
CHANGES: dict[str, tuple[str, Any]] = {
    "method": ("method", "q-svgp"),
    "likelihood": ("likelihood", "student-t"),
    "kernel": ("kernel", "matern32"),
    "inducing": ("inducing", 9),
    "what is learned": ("training", QUICK | {"learn": ["kernel"]}),
    "batches": ("training", {**MINIBATCHES, **QUICK, "batch_size": 16, "e_rate": 0.5}),
    "optimiser": ("training", QUICK | {"optimiser": "l-bfgs"}),
    "seed": ("seed", 3),
    "jitter": ("jitter", 1e-3),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "backend": ("numpi", "unknown backend 'numpi'"),
    "dtype": ("float32", "backend 'numpy' offers no dtype 'float32'"),
    "device": ("cuda", "backend 'numpy' offers no device 'cuda'"),
    "threads": (0, "threads must be greater than 0"),
    "timeout": (0.01, "no result within 0.01 s"),
}


def bound_of_a_loop(
    method: str,
    likelihood: str,
    kernel_name: str,
    inducing: int,
    training: dict[str, Any],
    seed: int,
    jitter: float,
) -> float:
    """The last bound of the training loop, run here on the table in standard units."""
    X, y = (x.to_numpy() for x in regression())
    X, y = ((x - x.mean(axis=0)) / x.std(axis=0) for x in (X, y))
    p_of_y = build_likelihood(LikelihoodConfig(name=likelihood, integrals="adaptive"))
    model = Model(kernel(kernel_name), p_of_y, jitter)
    parameters = tree_map(np.float64, p_of_y.initial_parameters())
    theta = Theta(KernelParameters(np.ones(1), np.ones((1, 2))), parameters, ())
    covariance = model.covariance(load_backend("numpy"), theta)
    Z = initial_bases(X, InducingConfig(count=inducing), seed, covariance)
    trainer = Trainer(
        load_backend("numpy"),
        model,
        build_method(method, {}),
        TrainingData(X, y, X[:0], y[:0]),
        theta._replace(inducing=Z),
        TrainingConfig.model_validate(training),
        seed,
    )
    return float(trainer.run().trace[-1]["elbo"] or np.nan)


def test_every_keyword_is_tested_here() -> None:
    keywords = {
        name for name, p in inspect.signature(fit).parameters.items() if p.kind == p.KEYWORD_ONLY
    }
    shown = {"progress"}  # changes no number; see test_progress.py
    assert keywords == {name for name, _ in CHANGES.values()} | set(REFUSED) | shown


@pytest.mark.parametrize("change", CHANGES)
def test_a_fit_is_the_training_loop_with_the_same_setting(
    regressed: Posterior, change: str
) -> None:
    keyword, value = CHANGES[change]
    settings = USUAL | {keyword: value}
    found = fit(*regression(), **settings).elbo
    assert found == pytest.approx(bound_of_a_loop(*settings.values()), rel=1e-12)
    assert found != pytest.approx(regressed.elbo, rel=1e-7)


@pytest.mark.parametrize("keyword", REFUSED)
def test_a_value_that_cannot_be_trained_with_is_refused(keyword: str) -> None:
    value, message = REFUSED[keyword]
    with pytest.raises(UserError, match=message):
        fit(*regression(), **{keyword: value})


@pytest.mark.parametrize(("keyword", "value"), [("dtype", "float16"), ("device", "tpu")])
def test_a_word_that_nothing_has_is_one_line(keyword: str, value: Any) -> None:
    with pytest.raises(UserError, match=value) as error:
        fit(*regression(), **{keyword: value})
    assert "\n" not in str(error.value)


def test_the_process_of_a_fit_has_as_many_threads_as_it_was_given() -> None:
    seen: set[str] = set()
    with ThreadPoolExecutor(1) as pool:
        fitting = pool.submit(fit, *regression(), inducing=5, training=QUICK, threads=2)
        while not fitting.done():
            time.sleep(0.01)
            for worker in psutil.Process().children():
                try:
                    seen.add(worker.environ()["OMP_NUM_THREADS"])
                except (psutil.Error, KeyError):  # it has just ended, or has not begun
                    continue
    assert fitting.result().elbo < 0.0
    assert "2" in seen
