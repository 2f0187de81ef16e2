"""Every keyword of `fit` reaches its training: the bound is that of a training loop with the same setting."""

from __future__ import annotations

import inspect
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from small_fits import QUICK, regression, trained_loop

from svgpbench.api import Posterior, UserError, fit
from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import build_likelihood
from svgpbench.posterior.defaults import MINIBATCHES

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
    X, y = (x.to_numpy() for x in regression())
    likelihood = LikelihoodConfig(name=settings.pop("likelihood"), integrals="adaptive")
    settings["of_kernel"] = settings.pop("kernel")
    standard = (y - y.mean()) / y.std()
    trace = trained_loop(X, standard, build_likelihood(likelihood), **settings).state.trace
    assert found == pytest.approx(trace[-1]["elbo"], rel=1e-12)
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
