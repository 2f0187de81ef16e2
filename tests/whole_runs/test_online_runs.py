"""Online learning on a growing basis against the second program."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from both_sides import compare, first_theta, lengthscales, package_likelihood
from cases import TARGETS, TIED, Build, Case, cholesky, decoupled, likelihood, natural
from problems import JITTER, SEED, VARIANCE, Y_SCALE, N, Problem, problem
from program.draws import Data, Draws
from program.kernels import Kernel
from program.loop import Point
from program.online import Growing, Online, best_of_trials, first_rows

from svgpbench.backends import load_backend
from svgpbench.config import OnlineConfig, TrainingConfig
from svgpbench.initialization.growing_basis import Growth
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.online import OnlineTrainer

LEARN = ("kernel", "likelihood", "inducing")


@dataclass(frozen=True)
class OnlineCase:
    """One run; `online` are the settings where they are not the ones of `SETTINGS`."""

    method: str
    options: Mapping[str, Any]
    build: Build
    growth: Growth
    online: Mapping[str, Any] = field(default_factory=dict)
    kernel: str = "matern52"
    likelihood: str = "gaussian"
    batch_size: int | None = 15
    learn: tuple[str, ...] = LEARN
    repeats: bool = False  # every training input comes twice


def problem_of(case: OnlineCase) -> Problem:
    p = problem(TARGETS[case.likelihood])
    return p._replace(X=np.repeat(p.X[: N // 2], 2, axis=0)) if case.repeats else p


SETTINGS: dict[str, Any] = {
    "iterations": 5,
    "rates": (0.1,),
    "trial": 3,
    "decay": 0.3,
    "trace_every": 1,
}
UNWHITENED = {"whiten": False}
POINTS = Growth(3, 8)

CASES = {
    "SVI": OnlineCase("q-svgp", UNWHITENED, natural("own"), POINTS),
    "SVI, features": OnlineCase(
        "q-svgp", UNWHITENED, natural("own"), Growth(3, 5, width=0.2), kernel="se"
    ),
    "whitened": OnlineCase("q-svgp", {}, natural("whitened"), POINTS, kernel="matern32"),
    "iVSGPR": OnlineCase("t-svgp", TIED, natural("projected"), POINTS),
    "iVSGPR, the best of three rates": OnlineCase(
        "t-svgp", TIED, natural("projected"), POINTS, {"rates": (0.01, 0.2, 0.001)}
    ),
    "the last of three rates": OnlineCase(
        "t-svgp", TIED, natural("projected"), POINTS, {"rates": (0.01, 0.001, 0.3), "trial": 2}
    ),
    "a rate that is the best in the trial only": OnlineCase(
        "t-svgp", TIED, natural("projected"), POINTS, {"rates": (0.2, 0.9), "trial": 1}
    ),
    "repeated inputs": OnlineCase(
        "t-svgp",
        TIED,
        natural("projected"),
        Growth(5, 13),
        kernel="matern32",
        batch_size=10,
        learn=("kernel", "likelihood"),  # a basis that stays on the inputs
        repeats=True,
    ),
    "labels": OnlineCase(
        "t-svgp", TIED, natural("projected"), POINTS, likelihood="bernoulli-probit"
    ),
    "classes by sampling": OnlineCase(
        "t-svgp", TIED, natural("projected"), POINTS, likelihood="softmax"
    ),
    "full batch": OnlineCase("t-svgp", TIED, natural("projected"), POINTS, batch_size=None),
    "a sparse trace": OnlineCase(
        "t-svgp",
        {"tying": "whitened"},
        natural("whitened"),
        POINTS,
        {"iterations": 7, "trace_every": 3},
    ),
    "nothing learned": OnlineCase("t-svgp", TIED, natural("projected"), POINTS, learn=()),
    "the kernel alone": OnlineCase(
        "t-svgp", TIED, natural("projected"), POINTS, learn=("kernel",), kernel="se"
    ),
    "adam": OnlineCase("q-svgp", {"optimiser": "adam"}, cholesky(True), POINTS),
    "adam unwhitened": OnlineCase(
        "q-svgp", {"optimiser": "adam"} | UNWHITENED, cholesky(False), Growth(3, 7)
    ),
    "SVDGP": OnlineCase("decoupled", {"subset": 4}, decoupled(4), Growth(3, 5, 11)),
    "SVDGP, features": OnlineCase(
        "decoupled", {"subset": 4}, decoupled(4), Growth(3, 7, 8, width=0.2), kernel="se"
    ),
    "SVDGP, the best of two rates": OnlineCase(
        "decoupled", {"subset": 4}, decoupled(4), Growth(4, 6, 9), {"rates": (0.001, 0.05)}
    ),
}


def package_run(ops: Ops, case: OnlineCase) -> OnlineTrainer:
    p = problem_of(case)
    lik = package_likelihood(case.likelihood, "damp")
    online = OnlineConfig(**(SETTINGS | {"increment": case.growth.increment} | dict(case.online)))
    parameters = KernelParameters(np.array([VARIANCE]), lengthscales(True)[None])
    settings = TrainingConfig(
        kind="online", batch_size=case.batch_size, online=online, learn=case.learn
    )
    return OnlineTrainer(
        ops,
        Model(kernel(case.kernel), lik, JITTER),
        build_method(case.method, dict(case.options)),
        TrainingData(p.X, p.y, p.X_test, p.y_test, Y_SCALE),
        Theta(parameters, lik.initial_parameters(), ()),
        settings,
        case.growth,
        seed=SEED,
    )


def program_run(case: OnlineCase) -> Online:
    """The second program at each of the rates, and the best of them."""
    p, growth = problem_of(case), case.growth
    lik = likelihood(case.likelihood, "damp")
    data = Data(p.X, p.y, p.X_test, p.y_test, Y_SCALE)
    limits = {"gamma": growth.limit_gamma} if growth.limit_gamma else {}
    settings = SETTINGS | dict(case.online)
    plan = Growing(growth.increment, limits | {"Z": growth.limit}, width=growth.width, **settings)
    theta = first_theta(Case(case.method, {}, case.build, likelihood=case.likelihood))

    def at(gamma0: float) -> Online:
        family = case.build(Kernel(case.kernel, JITTER), lik, p.X)
        noise = (lik.samples, lik.latents)
        draws = Draws(data, case.batch_size, SEED, noise, family.subset)
        first = first_rows(data, case.batch_size, SEED)
        return Online(family, data, theta, draws, plan, case.learn, gamma0, first)

    return best_of_trials({rate: at(rate) for rate in plan.rates}, plan)


@functools.cache
def program_of(name: str) -> list[Point]:
    """The second program's trace of a case."""
    return program_run(CASES[name]).points


@pytest.mark.parametrize("name", CASES)
def test_numpy_learns_online_as_the_second_program_does(name: str) -> None:
    compare(package_run(load_backend("numpy"), CASES[name]), program_of(name))
