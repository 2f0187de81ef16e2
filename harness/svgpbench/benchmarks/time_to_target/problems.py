"""The arrays of a race, the same for every contestant, and the judge of what they predict.

No contestant gets a label of a test row, nor the test rows' inputs while rates are searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.benchmarks.stability.problems import start_of
from svgpbench.benchmarks.time_to_target.plan import Plan, Race, RatePair
from svgpbench.benchmarks.timing.problems import SQUASH
from svgpbench.config import InducingConfig
from svgpbench.errors import UserError
from svgpbench.initialization.inducing_inputs import initial_bases
from svgpbench.likelihoods import Likelihood
from svgpbench.plugins import load_backend, registry_of
from svgpbench.tree import tree_map
from svgpbench_datasets import DataError

Floats = npt.NDArray[np.float64]
Arrays = dict[str, Any]
"""By name: what a model starts from as `speed.problems.model_of` and `theta_of` take it; `X` [n, D] and
`y` [n]; `rows` [minibatches, b] and `draws` [sets, S, P], taken in turn; `checked` [c], and `noise` [S, P],
for the bound; `e_steps`; and the bases `gamma` and `beta`, where the plan sizes two. A run adds `e_rate`,
`m_rate`, `X_new` [t, D]."""

LIKELIHOODS = ("gaussian", "bernoulli-probit", "softmax")
EPOCHS = 32
"""The minibatches are those of so many epochs, and again from the first."""
SETS = 256
"""Sets of draws, where a likelihood samples, and again from the first."""
JUDGED_DRAWS = 128


@dataclass(frozen=True)
class Judge:
    """The NLPD of every contestant's predictions, computed alike."""

    likelihood: Likelihood
    y: Floats  # [t]
    noise: Floats  # [draws, P], of its own

    def nlpd(self, predicted: Mapping[str, Any]) -> float:
        """From `mean` and `variance` [P, t] of q(f) and `noise_variance` [], in units of the model's y."""
        ops, likelihood = load_backend("numpy"), self.likelihood
        parameters = tree_map(
            lambda _: np.float64(predicted["noise_variance"]), likelihood.initial_parameters()
        )
        bound = likelihood.bind(parameters, self.noise if likelihood.samples else ())
        mean, variance = predicted["mean"], predicted["variance"]
        density = likelihood.log_predictive_density(ops, bound, self.y, mean, variance)
        return -float(np.mean(density))


class Prepared(NamedTuple):
    """A problem at a seed."""

    arrays: Arrays
    X_new: Floats  # [t, D], of the test rows
    judge: Judge

    def of_run(self, rates: RatePair, search: bool) -> Arrays:
        """What one run has besides: its rates, and test rows where it is none of the search."""
        X_new = self.X_new[:0] if search else self.X_new
        return {"e_rate": rates.e, "m_rate": rates.m, "X_new": X_new}


def prepare_race(plan: Plan, name: str, seed: int) -> Prepared:
    """The arrays of a problem and its judge; raises `UserError` for what the data or peers do not fit."""
    race = plan.problems[name]
    _refuse(name, race)
    ready, model, theta = start_of(name, race, race.inducing, plan.checked_rows, seed)
    X, y, likelihood = np.asarray(ready.X_train), np.asarray(ready.y_train), model.likelihood
    new = np.random.default_rng(0).permutation(len(ready.y_test))[: plan.test_rows]
    own = np.random.default_rng([seed, 8])
    noise = own.standard_normal(
        (1 + SETS * bool(likelihood.samples), likelihood.samples, model.latents)
    )
    return Prepared(
        {
            "likelihood": likelihood.name,
            "classes": model.latents,
            "n": len(y),
            "X": X,
            "y": y,
            "Z": X[: race.inducing] if race.first_rows else theta.inducing,
            **_two_bases(race, X, seed),
            "variance": theta.kernel.variance[0],
            "lengthscales": theta.kernel.lengthscales[0],
            "noise_variance": getattr(theta.likelihood, "noise_variance", 0.0),
            "squash": SQUASH,
            "jitter": plan.jitter,
            "rows": minibatches(len(y), race.batch_size, own),
            "checked": np.random.default_rng(1).choice(len(y), plan.checked_rows, replace=False),
            "noise": noise[0],
            "draws": noise[1:] if likelihood.samples else noise,
            "e_steps": race.e_steps,
        },
        np.asarray(ready.X_test[new]),
        Judge(
            likelihood,
            np.asarray(ready.y_test[new]),
            np.random.default_rng(2).standard_normal((JUDGED_DRAWS, model.latents)),
        ),
    )


def _two_bases(race: Race, X: Floats, seed: int) -> Arrays:
    """Random rows, none of them in both bases; nothing where the plan has no such sizes."""
    if race.two_bases is None:
        return {}
    gamma, beta = race.two_bases
    bases = initial_bases(X, InducingConfig(count=beta, gamma=gamma, init="random"), seed)
    return dict(zip(("gamma", "beta"), bases, strict=True))


def _refuse(name: str, race: Race) -> None:
    """Raise `UserError` for a model that the peers' scripts do not build."""
    likelihood, kernel = race.likelihood, race.kernel
    if kernel.name != "matern52" or not kernel.ard:
        raise UserError(f"problem {name!r}: every library has matern52 with ard = true here")
    if likelihood.name not in LIKELIHOODS:
        known = ", ".join(LIKELIHOODS)
        raise UserError(f"problem {name!r}: the peers have likelihoods {known} here")
    if likelihood.name == "bernoulli-probit" and likelihood.options.get("squash") != SQUASH:
        raise UserError(f"problem {name!r}: the peers have squash = {SQUASH:g}")


def minibatches(n: int, size: int, draws: np.random.Generator) -> npt.NDArray[np.int32]:
    """Rows [minibatches, b] of some epochs, each a permutation of the data but for an incomplete rest."""
    count = n // size
    epochs = [draws.permutation(n)[: count * size].reshape(count, size) for _ in range(EPOCHS)]
    return np.concatenate(epochs).astype(np.int32)


def sizes_of(race: Race) -> tuple[int, int]:
    """Return the training rows and the inputs of a problem; (1, 1) where its registry is not installed."""
    name = race.data.name
    try:
        entry = registry_of(name).describe(name)
    except (UserError, DataError):
        return 1, 1
    rows = entry.rows
    if race.split.kind == "fixed" and entry.splits and entry.splits.train_rows:
        rows = entry.splits.train_rows
    elif race.split.kind == "random":
        rows = round(rows * (1 - race.split.test_fraction))
    return rows, len(entry.features)
