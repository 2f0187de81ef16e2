"""Steps from the configuration of one cell to its outcome; they run inside a worker."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.backends import load_backend
from svgpbench.config import CellConfig, DataConfig, SplitConfig
from svgpbench.environment import software
from svgpbench.errors import UserError
from svgpbench.experiments.compatibility import refuse_incompatible
from svgpbench.experiments.error_messages import as_user_errors
from svgpbench.experiments.identity import CellIdentity, DataFacts, cell_code, digest, identity_of
from svgpbench.experiments.likelihood_of_data import likelihood_for
from svgpbench.experiments.outcome import CellOutcome, columns
from svgpbench.initialization.growing_basis import Growth
from svgpbench.initialization.hyperparameters import MEDIAN_ROWS, mean_gaps, median_lengthscale
from svgpbench.initialization.inducing_inputs import Inputs, initial_bases, windows
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.compound import build_kernel
from svgpbench.kernels.kernels import KernelParameters, lengthscale_count
from svgpbench.methods import AnyMethod, build_method
from svgpbench.numerics.streams import Stream
from svgpbench.ops import Tree
from svgpbench.plugins import registry_codes, registry_of
from svgpbench.training.batches import TrainingData, chosen_rows
from svgpbench.training.checkpoints import EVERY_S, Checkpoint
from svgpbench.training.chunked import trainer_class
from svgpbench.training.em import Trainer
from svgpbench.training.online import OnlineTrainer
from svgpbench.training.trace_point import constant_scores
from svgpbench.tree import tree_map
from svgpbench_datasets import (
    Dataset,
    Prepared,
    Split,
    block_fold,
    column_fold,
    group_fold,
    hold_out,
    k_fold,
    load_user_table,
    prepare,
    prepare_whole,
    random_split,
)

Floats = npt.NDArray[np.float64]
TRACED = ("iteration", "elbo", "nlpd", "seconds")
"""Columns of the trace of a run with an `EvaluationPlan`."""


def load_data(config: DataConfig) -> Dataset:
    """Load the data set of a configuration, again if the user's file or a plugin's registry has changed.

    Raises `UserError` for a mistake in the file or the name.
    """
    if config.path is None:
        return _loaded_data(config, registry_codes())
    state: tuple[int, ...] = ()
    # a missing file, or a name that no file can have, is reported by the reader
    with suppress(OSError, ValueError):
        file = os.stat(config.path)
        state = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns)
    return _loaded_data(config, state)


@functools.lru_cache
def _loaded_data(config: DataConfig, state: tuple[Any, ...]) -> Dataset:
    # cached per state of the file or of registries: a notebook and a Dask worker go on while their
    # user edits a table or a plugin
    with as_user_errors():
        if config.path is not None:
            return load_user_table(
                config.path,
                target=str(config.target),
                task=config.task or "regression",
                features=config.features,
                name=config.name,
                outputs=config.outputs or (),
                arrays=config.arrays or (),
                groups=config.groups,
                header=config.header,
            )
        dataset: Dataset = registry_of(config.name).load(config.name)
        return dataset


def forget_data() -> None:
    """Drop the data sets that `load_data` keeps for the next cell."""
    _loaded_data.cache_clear()


def identify(config: CellConfig) -> CellIdentity:
    """Return the complete configuration of a cell and its id. Imports no framework."""
    return identity_of(
        config, _declared_facts(config.data, registry_codes()) or load_data(config.data)
    )


@functools.lru_cache
def _declared_facts(config: DataConfig, codes: tuple[str, ...]) -> DataFacts | None:
    """Return the fingerprint and class labels that a registry declares for a data set.

    With these, records can be read without the data files. Return None for a user's own file and for
    a data set whose registry declares no fingerprint. Cached for the `codes` of registries.
    """
    if config.path is not None:
        return None
    with as_user_errors():
        entry = registry_of(config.name).describe(config.name)
    return DataFacts(entry.fingerprint, entry.class_labels) if entry.fingerprint else None


def prepare_data(config: CellConfig, dataset: Dataset) -> Prepared:
    """Split a data set and standardise it with the statistics of the training part."""
    with as_user_errors():
        if config.split.kind == "none":
            make = functools.partial(prepare_whole, dataset)
        else:
            rows = split_rows(config.data, config.split, len(dataset.y), dataset.groups)
            if config.split.held_out is not None:
                # before the statistics are taken: rows that choose a rate must not shape x and y
                rows = hold_out(rows, config.split.held_out, config.split.seed)
            make = functools.partial(prepare, dataset, rows)
        return make(
            standardise_x=config.data.standardise_x,
            standardise_y=config.data.standardise_y,
        )


def drawn_rows(config: CellConfig, ready: Prepared) -> tuple[Inputs, Floats]:
    """Draw `training.rows` rows of the training part, or return all rows if it is None.

    Return inputs and targets in the units of the training part. Raises `UserError` if the training
    part has fewer rows.
    """
    # drawn after standardising, so that runs on fewer or more rows have scores in one unit
    rows, n = config.training.rows, len(ready.y_train)
    if rows is None:
        return ready.X_train, ready.y_train
    if rows > n:
        raise UserError(f"training.rows {rows} exceeds {n} rows")
    chosen_rows = Stream.TRAINING_ROWS.generator(config.seed).choice(n, rows, replace=False)
    return np.asarray(ready.X_train[chosen_rows]), ready.y_train[chosen_rows]


def split_rows(
    data: DataConfig, how: SplitConfig, rows: int, groups: npt.NDArray[np.int64] | None = None
) -> Split:
    """Return the training rows and the test rows of a data set with `rows` rows.

    Raises:
        DataError: if the test fraction or the fold is impossible.
        UserError: if the split is fixed and the data set has no published splits, or if it needs the
            `groups` [rows] of the data and there are none.
    """
    if how.kind == "k-fold":
        return k_fold(rows, how.folds, how.fold, how.seed)
    if how.kind == "blocks":
        return block_fold(rows, how.folds, how.fold)
    if how.kind in ("groups", "column"):
        if groups is None:
            raise UserError(
                f"split kind {how.kind!r} needs a column of groups: "
                f"name it as `groups` of data set {data.name!r}, a file of your own"
            )
        if how.kind == "column":
            return column_fold(groups, how.fold)
        return group_fold(groups, how.folds, how.fold, how.seed)
    if how.kind == "random":
        # no fold: every repeat has a seed of its own
        return random_split(rows, how.test_fraction, how.seed)
    if data.path is not None:
        raise UserError(
            f"data set {data.name!r} is a file of your own and has no fixed splits; "
            "use split kind 'k-fold', 'random', 'groups', 'blocks' or 'column'"
        )
    registry = registry_of(data.name)
    # a registry of another package need only have `names`, `describe` and `load`
    if not hasattr(registry, "fixed_split"):
        raise UserError(f"the registry of data set {data.name!r} has no fixed splits")
    split: Split = registry.fixed_split(data.name, how.fold)
    return split


def build_model(config: CellConfig, dataset: Dataset) -> Model:
    """Build the model: kernel, likelihood and jitter.

    Raises `UserError` if the likelihood does not fit the data, or if the basis is features and the
    kernel has none.
    """
    kernel = build_kernel(config.kernel)
    if config.inducing.functions == "features" and not kernel.has_features:
        raise kernel.no_features()
    return Model(kernel, likelihood_for(config, dataset), config.jitter)


def initial_kernel(config: CellConfig, X: Inputs, y: Floats) -> Tree:
    """Return the initial hyperparameters of the kernel for training data X [n, D], y [n].

    A compound kernel has those of each part.
    """
    start = config.kernel
    if start.parts:
        cells = [config.model_copy(update={"kernel": part}) for part in start.parts]
        return tuple(initial_kernel(cell, X, y) for cell in cells)
    count = lengthscale_count(start.ard, X.shape[1])
    lengthscale, variance = start.lengthscale, start.variance
    if start.init == "median":
        # Cheng and Boots 2017, Sec. 4: the median trick on a first minibatch
        rows = min(config.training.batch_size or len(X), len(X), MEDIAN_ROWS)
        rng = Stream.MEDIAN_ROWS.generator(config.seed)
        lengthscale = median_lengthscale(X[rng.choice(len(X), rows, replace=False)])
    elif start.init in ("ulapane", "mean-gaps"):
        lengthscale, sigma = mean_gaps(np.asarray(X), y)
        # σ_SE is a standard deviation in Ulapane et al. 2020 and the variance itself in Kobe 2021
        variance = sigma**2 if start.init == "ulapane" else sigma
    elif isinstance(lengthscale, tuple) and len(lengthscale) != count:
        raise UserError(
            f"kernel.lengthscale has {len(lengthscale)} values for {count} lengthscales"
        )
    lengthscales = np.broadcast_to(np.asarray(lengthscale, dtype=np.float64), (count,))
    if start.init == "root-dimension":
        # standardised inputs have E|x − x'|² = 2D, so √D keeps correlations alike in any D
        lengthscales = lengthscales * np.sqrt(X.shape[1])
    # a copy, because `broadcast_to` gives a read-only view
    return KernelParameters(np.array([variance]), lengthscales[None].copy())


def initial_theta(config: CellConfig, model: Model, X: Inputs, y: Floats) -> Theta:
    """Return the initial θ, without a basis, for training data X [n, D], y [n]."""
    likelihood = tree_map(np.float64, model.likelihood.initial_parameters())
    theta = Theta(initial_kernel(config, X, y), likelihood, ())
    # targets on the real line are standardised, so their mean is 0 already
    if config.likelihood.latent_mean == "zero" or model.likelihood.support == "real":
        return theta
    # NumPy for every backend, so that all backends have the same mean
    mean = model.likelihood.latent_mean(load_backend("numpy"), likelihood, y)
    return theta._replace(mean=np.asarray(mean))


def initial_inducing(
    config: CellConfig, model: Model, method: AnyMethod, theta: Theta, X: Inputs
) -> Tree:
    """Return the initial bases for training inputs X [n, D] and the kernel of θ."""
    if method.basis == "data":
        return np.asarray(X)
    # NumPy for every backend, so that all backends start from the same bases
    covariance = model.covariance(load_backend("numpy"), theta)
    bases = initial_bases(X, config.inducing, config.seed, covariance)
    width = config.inducing.window
    if width is None:
        return bases
    return tree_map(lambda Z: windows(Z, width, theta.kernel.lengthscales), bases)


def perturbed(X: Inputs, size: float, seed: int) -> Inputs:
    """Return X · (1 + size·ε) [n, D] with ε standard normal; X itself if `size` is 0.

    A perturbed run shows how far rounding alone moves a trajectory. Inputs are perturbed, because a
    classifier does not react to such a small change of a label.
    """
    if not size:
        return X
    # relative noise, as rounding is: it moves the last digits at any scale and leaves 0 at 0
    noise = Stream.PERTURBATION.generator(seed).standard_normal(X.shape)
    return np.asarray(np.asarray(X) * (1.0 + size * noise))


def build_trainer(config: CellConfig) -> tuple[Trainer, Prepared]:
    """Build the trainer of a cell, ready for its first step, and return it with the prepared data."""
    dataset = load_data(config.data)
    ready = prepare_data(config, dataset)
    X, y = drawn_rows(config, ready)
    model = build_model(config, dataset)
    method = build_method(config.method.name, config.method.options)
    refuse_incompatible(config, method, model.likelihood)
    b = config.backend
    plan = config.training.evaluation
    scored = None if plan is None else chosen_rows(len(ready.y_test), plan.test_rows)
    X_test: Inputs = ready.X_test
    y_test = ready.y_test
    if scored is not None:
        X_test, y_test = X_test[scored], y_test[scored]
    X_train = perturbed(X, config.perturbation, config.seed)
    data = TrainingData(X_train, y, X_test, y_test, ready.y_scale)
    if (config.training.batch_size or 0) > len(data.y):
        raise UserError(
            f"training.batch_size {config.training.batch_size} exceeds {len(data.y)} rows"
        )
    ops = load_backend(b.name, b.mode, b.dtype, b.device)
    # initial θ from the unperturbed X: the choice of inducing inputs should not depend on rounding
    theta = initial_theta(config, model, X, data.y)
    parts = (ops, model, method, data)
    if config.training.kind == "online":
        growth = Growth.from_config(config.inducing, config.training.online.increment)
        return OnlineTrainer(*parts, theta, config.training, growth, config.seed), ready
    # rows that are the basis are the perturbed ones: Z = X must hold to the bit
    start = data.X if method.basis == "data" else X
    theta = theta._replace(inducing=initial_inducing(config, model, method, theta, start))
    make = trainer_class(method)
    return make(*parts, theta, config.training, config.seed), ready


def run_cell(
    config: CellConfig, checkpoint: Path | None = None, every_s: float = EVERY_S
) -> CellOutcome:
    """Train and evaluate one cell.

    With a `checkpoint` file, training resumes from the state that an earlier process saved there. The
    state is saved at most once every `every_s` seconds. The caller removes the file. Raises `UserError`
    if the configuration cannot run.
    """
    trainer, ready = build_trainer(config)
    made_by = software() | {"code": cell_code(config)}
    # a state of other code or packages is not resumed: one record would hold two trajectories
    key = digest({"cell": config.model_dump(mode="json"), "data": ready.fingerprint, **made_by})
    saved = Checkpoint(checkpoint, key, every_s)
    trained = trainer.run(saved)
    last = trained.trace[-1] if trained.trace else {}
    trace = columns(trained.trace)
    facts: dict[str, Any] = {"ended": trained.ended} if trained.ended else {}
    if config.training.evaluation is not None:
        trace = {name: values for name, values in trace.items() if name in TRACED}
        data = trainer.data
        facts["constant"] = constant_scores(trainer.model.likelihood, data.y, data.y_test)
    timing = {"train_s": last["seconds"]} if last else {}
    if trained.evaluations:  # only L-BFGS counts them
        timing["evaluations"] = trained.evaluations
    return CellOutcome(
        status=trained.status,
        message=trained.message or saved.ignored_reason,
        trace=trace,
        metrics={k: v for k, v in last.items() if k not in ("iteration", "seconds")},
        data={
            "fingerprint": ready.fingerprint,
            "split_hash": ready.split_hash,
            "n_train": len(ready.y_train),
            "n_test": len(ready.y_test),
            "dimensions": int(ready.X_train.shape[1]),
            **facts,
        },
        timing=timing,
        resumptions=trained.resumptions,
    )
