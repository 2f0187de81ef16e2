"""Arrays of a problem, the same for every contestant, and the judge of their predictions.

No contestant gets the labels of test rows. While it searches rates, it gets no inputs of test rows either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.backends import load_backend
from svgpbench.benchmarks.problem_plan import start_of
from svgpbench.benchmarks.time_to_target.plan import LearningPlan, TrainingProblem
from svgpbench.benchmarks.timing.problems import SQUASH
from svgpbench.config import InducingConfig, RatePair
from svgpbench.errors import UserError
from svgpbench.initialization.inducing_inputs import initial_bases
from svgpbench.likelihoods import Likelihood
from svgpbench.numerics.streams import Stream
from svgpbench.plugins import registry_of
from svgpbench.tree import tree_map
from svgpbench_datasets import DataError

Floats = npt.NDArray[np.float64]
Arrays = dict[str, Any]
"""Arrays by name: the start of a model, as `timing.problems.model_of` and `theta_of` take it; `X` [n, D] and
`y` [n]; `rows` [minibatches, b] and `draws` [sets, S, P], used in turn; `checked` [c] and `noise` [S, P] for
the bound; `e_steps`; and the bases `gamma` and `beta`, if the plan has sizes of two. A run adds `e_rate`,
`m_rate` and `X_new` [t, D]."""

LIKELIHOODS = ("gaussian", "bernoulli-probit", "softmax")
EPOCHS = 32
"""Number of epochs of minibatches. After the last, training starts again from the first."""
SETS = 256
"""Sets of draws if a likelihood samples. After the last, training starts again from the first."""
JUDGED_DRAWS = 128


@dataclass(frozen=True)
class Judge:
    """Judge that computes the NLPD of predictions in the same way for every contestant."""

    likelihood: Likelihood
    y: Floats  # [t]
    noise: Floats  # [draws, P], which no contestant gets

    def nlpd(self, predicted: Mapping[str, Any]) -> float:
        """Return the NLPD in units of the model's y.

        `predicted` has `mean` and `variance` [P, t] of q(f) and `noise_variance` [].
        """
        ops, likelihood = load_backend("numpy"), self.likelihood
        # of `LIKELIHOODS` only the Gaussian has a parameter, the variance; other trees are empty
        parameters = tree_map(
            lambda _: np.float64(predicted["noise_variance"]), likelihood.initial_parameters()
        )
        bound = likelihood.bind(parameters, self.noise if likelihood.samples else ())
        mean, variance = predicted["mean"], predicted["variance"]
        density = likelihood.log_predictive_density(ops, bound, self.y, mean, variance)
        return -float(np.mean(density))


class PreparedProblem(NamedTuple):
    """Problem at a seed: its arrays, test inputs and judge."""

    arrays: Arrays
    X_new: Floats  # [t, D], of the test rows
    judge: Judge

    def run_arrays(self, rates: RatePair, search: bool) -> Arrays:
        """Return the additional arrays of a run: its rates, and test inputs, of which a search gets none."""
        X_new = self.X_new[:0] if search else self.X_new
        return {"e_rate": rates.e, "m_rate": rates.m, "X_new": X_new}


def prepare_problem(plan: LearningPlan, name: str, seed: int) -> PreparedProblem:
    """Prepare a problem at a seed.

    Raises `UserError` if the data or the peers do not fit it, or if its split leaves no test rows.
    """
    settings = plan.problems[name]
    _check_supported(name, settings)
    ready, model, theta = start_of(name, settings, settings.inducing, plan.checked_rows, seed)
    X, y, likelihood = np.asarray(ready.X_train), np.asarray(ready.y_train), model.likelihood
    if not len(ready.y_test):
        raise UserError(f"problem {name!r} has no test rows to reach a target on; set split.kind")
    # not from `seed`: spread over seeds is that of training, not of the rows that are judged
    new = np.random.default_rng(0).permutation(len(ready.y_test))[: plan.test_rows]
    bases: Arrays = {}
    if settings.two_bases is not None:  # random rows, of which the bases share none
        gamma, beta = settings.two_bases
        inducing = InducingConfig(count=beta, gamma=gamma, init="random")
        bases = dict(zip(("gamma", "beta"), initial_bases(X, inducing, seed), strict=True))
    rng = Stream.TIME_TO_TARGET.generator(seed)
    noise = rng.standard_normal(
        (1 + SETS * bool(likelihood.samples), likelihood.samples, model.latents)
    )
    return PreparedProblem(
        {
            "likelihood": likelihood.name,
            "classes": model.latents,
            "n": len(y),
            "X": X,
            "y": y,
            "Z": X[: settings.inducing] if settings.first_rows else theta.inducing,
            **bases,
            "variance": theta.kernel.variance[0],
            "lengthscales": theta.kernel.lengthscales[0],
            "noise_variance": getattr(theta.likelihood, "noise_variance", 0.0),
            "squash": SQUASH,
            "jitter": plan.jitter,
            "rows": minibatches(len(y), settings.batch_size, rng),
            "checked": np.random.default_rng(1).choice(len(y), plan.checked_rows, replace=False),
            "noise": noise[0],
            "draws": noise[1:] if likelihood.samples else noise,
            "e_steps": settings.e_steps,
        },
        np.asarray(ready.X_test[new]),
        Judge(
            likelihood,
            np.asarray(ready.y_test[new]),
            np.random.default_rng(2).standard_normal((JUDGED_DRAWS, model.latents)),
        ),
    )


def _check_supported(name: str, settings: TrainingProblem) -> None:
    """Raise `UserError` for a model that the peers' scripts do not build."""
    likelihood, kernel = settings.likelihood, settings.kernel
    if kernel.name != "matern52" or not kernel.ard:
        raise UserError(f"problem {name!r}: every library has matern52 with ard = true here")
    if likelihood.name not in LIKELIHOODS:
        names = ", ".join(LIKELIHOODS)
        raise UserError(f"problem {name!r}: the peers have likelihoods {names} here")
    if likelihood.name == "bernoulli-probit" and likelihood.options.get("squash") != SQUASH:
        raise UserError(f"problem {name!r}: the peers have squash = {SQUASH:g}")


def minibatches(n: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Draw the rows [minibatches, b] of `EPOCHS` epochs.

    Each epoch is a permutation of the data without the incomplete last minibatch.
    """
    # a smaller last minibatch has another shape, for which frameworks trace and compile again
    count = n // size
    epochs = [rng.permutation(n)[: count * size].reshape(count, size) for _ in range(EPOCHS)]
    return np.concatenate(epochs).astype(np.int32)


def sizes_of(settings: TrainingProblem) -> tuple[int, int]:
    """Return the numbers of training rows and inputs; (1, 1) if the data set cannot be described."""
    name = settings.data.name
    try:
        entry = registry_of(name).describe(name)
    except (UserError, DataError):
        return 1, 1
    rows, split = entry.rows, settings.split
    if split.kind == "fixed" and entry.splits:
        rows = entry.splits.train_rows or rows - rows // entry.splits.count
    elif split.kind in ("k-fold", "blocks"):
        rows -= len(range(split.fold, rows, split.folds))
    elif split.kind == "random":
        rows = round(rows * (1 - split.test_fraction))
    return rows, len(entry.features)
