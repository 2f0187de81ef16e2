"""Resolution of an experiment, a preset and a command-line selection to a list of cells."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from svgpbench.config import (
    BackendConfig,
    CellConfig,
    DataConfig,
    InducingConfig,
    SplitConfig,
    Strict,
    WithOptions,
    data_sets_by_name,
)
from svgpbench.errors import UserError, refuse_unknown, unknown
from svgpbench.experiments.schema import Experiment, MethodEntry, Preset, Problem, SplitPlan
from svgpbench.methods import build_method
from svgpbench.plugins import BACKENDS, find

DEFAULT_PRESET = "quick"
AS_DECLARED = Preset()
ONE_IN = 10
"""One cell in this many also runs on the backends of `spot_check_backends`."""
NOT_HASHED: Any = {
    "backend": True,
    "training": {"joint", "steps", "until", "evaluation", "cool_down"},
    "split": {"held_out"},
    "likelihood": {"latent_mean", "integrals"},
}
"""Fields left out of the hash that draws these cells: the backend, and fields that were added later."""

C = TypeVar("C", bound=Strict)


@dataclass(frozen=True)
class Selection:
    """Command-line choices that narrow or replace parts of an experiment; None or empty changes nothing.

    `methods` are labels or names of methods; `data` are names of data sets, where NAME selects every
    NAME@OUTPUT. Both override the preset's choice. `backends`, `seeds`, `dtype`, `device` and `threads`
    replace the values of the experiment. Raises `UserError` for one text in place of a list, and for a seed
    that is not a whole number of at least 0.
    """

    backends: Sequence[str] = ()
    methods: Sequence[str] = ()
    data: Sequence[str] = ()
    seeds: Sequence[int] = ()
    dtype: str | None = None
    device: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for what in ("backends", "methods", "data"):
            if isinstance(names := getattr(self, what), str):
                raise UserError(f"{what} are one text {names!r}; give a list of names")
        for seed in self.seeds:
            if not isinstance(seed, int | np.integer) or seed < 0:
                raise UserError(f"seed {seed!r}: give whole numbers, 0 or more")


def resolve(
    experiment: Experiment, preset: str | None = None, selection: Selection | None = None
) -> list[CellConfig]:
    """Return every cell to run: data set × seed × fold × method × backend.

    Perturbed replicas of a method follow its plain cells. With `spot_check_backends` in the preset, the cells
    of the first backend come first, then a tenth of them on each of these. A selection of backends turns this
    sampling off.

    If `preset` is None, it is `quick` if the experiment has that, else the experiment as declared.
    Raises `UserError` for a preset or a selection that matches nothing.
    """
    size, selection = chosen_preset(experiment, preset), selection or Selection()
    problems = list(_problems(experiment, size, selection.data))
    methods = _methods(experiment, size, selection.methods)
    of_two_bases = _with_two_bases(experiment)
    backends = _backends(experiment, size, selection)
    splits = list(_splits(experiment.split_of(size), size.run_folds))
    seeds = tuple(selection.seeds) or size.seeds or experiment.seeds
    cells = [
        CellConfig(
            experiment=experiment.name,
            data=data,
            split=split,
            kernel=overlay(experiment.kernel, problem.kernel, size.kernel),
            likelihood=problem.likelihood,
            inducing=_inducing(experiment, problem, entry, size, of_two_bases),
            training=overlay(experiment.training, problem.training, entry.training, size.training),
            method=entry.method(),
            backend=backend,
            jitter=experiment.jitter if size.jitter is None else size.jitter,
            seed=seed,
            threads=selection.threads or experiment.threads,
            perturbation=perturbation,
            measures=experiment.measures if size.measures is None else size.measures,
        )
        for problem, data in problems
        for seed in seeds
        for split in splits
        for entry in methods
        for backend, perturbation, seeds_there in backends
        if seeds_there is None or seed in seeds_there
    ]
    return cells + ([] if selection.backends else _sampled(cells, experiment, size, selection))


def counts_of_runs(experiment: Experiment, preset: str | None) -> tuple[int, int, int]:
    """Return the numbers of data sets, splits and seeds of a preset; each method has a run of each."""
    size = chosen_preset(experiment, preset)
    sets = sum(1 for _ in _problems(experiment, size, ()))
    splits = sum(1 for _ in _splits(experiment.split_of(size), size.run_folds))
    return sets, splits, len(size.seeds or experiment.seeds)


def _sampled(
    cells: Sequence[CellConfig], experiment: Experiment, size: Preset, selection: Selection
) -> list[CellConfig]:
    """Return a tenth of the plain cells, at least one, on each backend of `spot_check_backends`.

    The cells with the smallest hashes are drawn. So the draw is the same each time, and the draw from a
    part of the cells is mostly a part of the draw from all.
    """
    others = _parsed(size.spot_check_backends or (), experiment, selection)
    if not others:
        return []
    plain = [cell for cell in cells if not cell.is_replica]
    # with a field of a later version in the hash, other cells would be drawn than have run
    hashes = [
        hashlib.sha256(cell.model_dump_json(exclude=NOT_HASHED).encode()).hexdigest()
        for cell in plain
    ]
    by_hash = sorted(range(len(plain)), key=hashes.__getitem__)
    sample = frozenset(by_hash[: math.ceil(len(plain) / ONE_IN)])
    return [
        cell.model_copy(update={"backend": backend})
        for index, cell in enumerate(plain)
        if index in sample
        for backend in others
    ]


def chosen_preset(experiment: Experiment, name: str | None) -> Preset:
    """Return a preset by name, or the default preset for None.

    Raises `UserError`, with the nearest existing name, for an unknown preset.
    """
    if name is None:
        return experiment.presets.get(DEFAULT_PRESET, AS_DECLARED)
    if name not in experiment.presets:
        raise unknown(f"preset of {experiment.name}", name, experiment.presets)
    return experiment.presets[name]


def shown_names(experiment: Experiment, preset: str | None) -> dict[str, str]:
    """Map the labels of a preset's methods to their names in claims and printed figures.

    The name is the `row` of the method if no other method of the preset has this row, else the label.
    """
    labels = chosen_preset(experiment, preset).methods or experiment.labels
    entries = [entry for entry in experiment.methods if entry.title in labels]
    times = Counter(entry.row for entry in entries)
    return {
        entry.title: entry.row if entry.row and times[entry.row] == 1 else entry.title
        for entry in entries
    }


def overlay(base: C, *layers: C) -> C:
    """Return `base` with the keys that each layer sets, nested tables included; later layers win.

    Raises `UserError` if the combined table is invalid.
    """
    for layer in layers:
        named = {key: getattr(layer, key) for key in layer.model_fields_set}
        # a schedule of the same kind changes single keys of a rate; one of another kind replaces it
        tables = {
            key: overlay(getattr(base, key), value)
            for key, value in named.items()
            if isinstance(value, Strict) and type(value) is type(getattr(base, key))
        }
        inherited = dict(base)
        if isinstance(base, WithOptions) and named.get(base.names, base.named) != base.named:
            inherited = base.kept_under(named[base.names])  # options belong to the old name
        try:
            # not `model_copy`, which would skip the checks of one key against another
            base = type(base).model_validate({**inherited, **named, **tables})
        except ValidationError as error:  # each table is valid alone
            raise UserError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
    return base


def _with_two_bases(experiment: Experiment) -> frozenset[str]:
    """Return the labels of the methods with two bases; empty if the common table has no `gamma`.

    Raises `UserError` if the common table has `gamma` and no method has two bases.
    """
    if experiment.inducing.gamma is None:
        return frozenset()
    two = frozenset(
        entry.title
        for entry in experiment.methods
        if build_method(entry.name, entry.options).basis == "decoupled"
    )
    if not two:
        raise UserError(
            "[inducing] gamma is for methods with two bases, and no method of the experiment has two; "
            "remove it"
        )
    return two


def _inducing(
    experiment: Experiment,
    problem: Problem,
    entry: MethodEntry,
    size: Preset,
    of_two_bases: frozenset[str],
) -> InducingConfig:
    """Return the inducing inputs of a cell; only methods with two bases get the common `gamma`."""
    common = experiment.inducing
    if common.gamma is not None and entry.title not in of_two_bases:
        common = common.model_copy(update={"gamma": None})
    return overlay(common, problem.inducing, entry.inducing, size.inducing)


def _problems(
    experiment: Experiment, size: Preset, names: Sequence[str]
) -> Iterator[tuple[Problem, DataConfig]]:
    by_name = data_sets_by_name(experiment.data_names)
    refuse_unknown(f"data set of {experiment.name}", names, by_name)
    selected = {data for name in names or size.data or by_name for data in by_name[name]}
    for problem in experiment.problems:
        for data in problem.data:
            levels = dict(data.factors)
            fits = all(levels.get(factor) in among for factor, among in size.where.items())
            if fits and data.title in selected:
                yield problem, data


def _methods(experiment: Experiment, size: Preset, names: Sequence[str]) -> list[MethodEntry]:
    """Return the methods of a preset, or those that `names` name by label or name, whatever the case."""
    if not names:
        labels = size.methods or experiment.labels
        return [entry for entry in experiment.methods if entry.title in labels]
    known_names = {name for entry in experiment.methods for name in (entry.name, entry.title)}
    known = {name.casefold() for name in known_names}
    for name in names:
        if name.casefold() not in known:
            raise unknown(f"method of {experiment.name}", name, known_names)
    selected = {name.casefold() for name in names}
    return [
        entry
        for entry in experiment.methods
        if selected & {entry.title.casefold(), entry.name.casefold()}
    ]


def _backends(
    experiment: Experiment, size: Preset, selection: Selection
) -> list[tuple[BackendConfig, float, tuple[int, ...] | None]]:
    """Return (backend, perturbation, seeds): the plain backends first, then the perturbed replicas.

    Seeds None means all seeds.
    """
    declared = size.backends or experiment.backends
    if size.spot_check_backends and not selection.backends:
        declared = declared[:1]
    texts: list[str] = []
    for backend in selection.backends or declared:
        # `--backend torch` selects the experiment's torch:compile if it has no plain torch
        modes = [text for text in declared if text.partition(":")[0] == backend]
        texts += modes if modes and backend not in declared else [backend]
    configs = _parsed(texts, experiment, selection)
    replicas = size.perturbation_replicas
    if replicas is None:
        replicas = experiment.perturbation_replicas
    perturbed = [
        (config, replica.perturbation, replica.seeds)
        for replica in replicas
        for text, config in zip(texts, configs, strict=True)
        if text == replica.backend
    ]
    return [(config, 0.0, None) for config in configs] + perturbed


def _parsed(
    texts: Iterable[str], experiment: Experiment, selection: Selection
) -> list[BackendConfig]:
    """Parse backends, with the dtype and the device of the selection or else of the experiment."""
    dtype, device = selection.dtype or experiment.dtype, selection.device or experiment.device
    configs = [BackendConfig.parse(text, dtype=dtype, device=device) for text in texts]
    for config in configs:
        find(BACKENDS, config.name)
    return configs


def _splits(plan: SplitPlan, run_folds: tuple[int, ...] | None) -> Iterator[SplitConfig]:
    all_folds = (0,) if plan.kind == "fixed" else tuple(range(plan.folds))
    named_folds = run_folds or plan.run_folds
    if plan.kind == "column" and not named_folds:  # the data alone know how many there are
        raise UserError(
            "[split] kind = 'column' needs run_folds: every value of the column is a fold, number 0 the "
            "first in sorted order"
        )
    common = plan.model_dump(exclude={"run_folds"})
    for fold in named_folds or all_folds:
        if plan.kind in ("k-fold", "groups", "blocks", "column"):
            yield SplitConfig.model_validate({**common, "fold": fold})
        elif plan.kind == "fixed":
            yield SplitConfig(kind="fixed", fold=fold)
        else:  # a repeat is a split of its own
            yield SplitConfig.model_validate({**common, "seed": plan.seed + fold})
