"""Schema of an experiment file, for shipped experiments and for the user's own.

Tables named like a part of `CellConfig` (`[kernel]`, `[training]`, ...) hold common values. The same
tables in a problem, a method or a preset override single keys, in that order. A key that such a table
does not name keeps its value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from svgpbench.config import (
    NEW_MODEL_DEFAULTS,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    Positive,
    Strict,
    TrainingConfig,
    data_sets_by_name,
    with_new_defaults,
)
from svgpbench.errors import unknown


def data_sets_of(entry: Any) -> list[Any]:
    """Return the data sets of one entry of `data`.

    A table with `target = ["y1", "y2"]` has NAME@y1 and NAME@y2; neither column is an input.
    """
    if not (isinstance(entry, dict) and "name" in entry and isinstance(entry.get("target"), list)):
        return [entry]
    name, targets = entry["name"], entry["target"]
    return [
        {**entry, "name": f"{name}@{target}", "target": target, "outputs": targets}
        for target in targets
    ]


def _one_data_set_per_output(values: Any) -> Any:
    """Expand the tables with several targets."""
    if not isinstance(values, list):
        return values
    # a tuple: strict validation refuses a list that did not come from JSON itself
    return tuple(data_set for entry in values for data_set in data_sets_of(entry))


NonEmpty = Field(min_length=1)
DataEntry = Annotated[
    DataConfig, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)
]
"""A table, or the bare name of a registered data set."""
Seeds = Annotated[tuple[NonNegativeInt, ...], NonEmpty]
BackendNames = Annotated[tuple[str, ...], NonEmpty]
"""Backends as `name` or `name:mode`."""


class SplitPlan(Strict):
    """Split of the rows, and the folds to run; all folds if `run_folds` is left out.

    For `fixed` splits, the default is the first split only, because their number depends on the data set. For
    `column` the number of folds does too, and there is no default.
    """

    kind: Literal["k-fold", "random", "fixed", "groups", "blocks", "column"] = "k-fold"
    folds: Annotated[int, Field(ge=2)] = 5
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1  # random only
    seed: NonNegativeInt = 0
    run_folds: Annotated[tuple[NonNegativeInt, ...], NonEmpty] | None = None


class Problem(Strict):
    """Data sets with one likelihood and the same overrides of the common values."""

    data: Annotated[tuple[DataEntry, ...], NonEmpty, BeforeValidator(_one_data_set_per_output)]
    likelihood: Annotated[LikelihoodConfig, with_new_defaults("likelihood")]
    kernel: KernelConfig = KernelConfig()
    inducing: InducingConfig = InducingConfig()
    training: TrainingConfig = TrainingConfig()


class MethodEntry(MethodConfig):
    """A method to run, with overrides of its training and its bases."""

    training: TrainingConfig = TrainingConfig()
    inducing: InducingConfig = InducingConfig()
    row: str = ""  # name of its row in a printed table; several methods may share a row

    def method(self) -> MethodConfig:
        """Return the part that belongs to a cell: name, label and options."""
        return MethodConfig(name=self.name, label=self.title, options=self.options)


class PerturbationReplica(Strict):
    """A second run of every cell of one backend with perturbed inputs, to show the effect of rounding."""

    backend: str
    perturbation: Positive = 1e-15
    seeds: Seeds | None = None  # None: all seeds of the experiment


class Preset(Strict):
    """A named size of the experiment: the parts to run, and overrides of the common values.

    With `spot_check_backends`, all cells run on the first backend, and a tenth of them also on each of these
    backends. `where` selects the problems of a grid by the levels of their factors. With `chosen_from`,
    there is one method per row: the one with the best ELBO in the records of that preset.
    """

    data: Annotated[tuple[str, ...], NonEmpty] | None = None
    where: dict[str, Annotated[tuple[float, ...], NonEmpty]] = Field(default_factory=dict)
    methods: Annotated[tuple[str, ...], NonEmpty] | None = None  # labels
    backends: BackendNames | None = None
    spot_check_backends: BackendNames | None = None
    seeds: Seeds | None = None
    folds: Annotated[int, Field(ge=2)] | None = None
    run_folds: Annotated[tuple[NonNegativeInt, ...], NonEmpty] | None = None
    measures: bool | None = None
    kernel: KernelConfig = KernelConfig()
    jitter: Annotated[float, Field(ge=0)] | None = None
    inducing: InducingConfig = InducingConfig()
    training: TrainingConfig = TrainingConfig()
    perturbation_replicas: tuple[PerturbationReplica, ...] | None = None
    chosen_from: str | None = None


class ArtefactEntry(Strict, extra="allow"):
    """A figure or a table: its name, its kind, and keys of the kind, which are checked when it is drawn."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    kind: str


class FigureEntry(ArtefactEntry):
    """A figure; the kinds are the entry points of `svgpbench.figures`."""

    kind: str = "convergence"


class TableEntry(ArtefactEntry):
    """A table; the kinds are the entry points of `svgpbench.tables`."""

    kind: str = "finals"


class Experiment(Strict):
    """An experiment: problems × methods × backends × folds × seeds, with their common values."""

    # the name of the file of its records too, hence no slash, and no dot in front
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    title: str = ""
    source: str = ""
    backends: BackendNames
    dtype: Literal["float64", "float32"] = "float64"
    device: Literal["cpu", "cuda"] = "cpu"
    threads: PositiveInt = 1
    seeds: Seeds = (0,)
    jitter: Annotated[float, Field(ge=0)] = 1e-6
    measures: bool = False  # time and memory: one fresh process per cell
    perturbation_replicas: tuple[PerturbationReplica, ...] = ()
    kernel: KernelConfig = KernelConfig()
    inducing: InducingConfig = InducingConfig()
    split: SplitPlan = SplitPlan()
    training: Annotated[TrainingConfig, with_new_defaults("training")] = TrainingConfig(
        **NEW_MODEL_DEFAULTS["training"]
    )
    problems: Annotated[tuple[Problem, ...], NonEmpty]
    methods: Annotated[tuple[MethodEntry, ...], NonEmpty]
    presets: dict[str, Preset] = Field(default_factory=dict)
    figures: tuple[FigureEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()

    @property
    def data_names(self) -> tuple[str, ...]:
        """Titles of the data sets of all problems, in the order of the file."""
        return tuple(data.title for problem in self.problems for data in problem.data)

    def split_of(self, preset: Preset) -> SplitPlan:
        """Return the split of a preset; a preset that sets `folds` runs all of its folds."""
        if preset.folds is None:
            return self.split
        return self.split.model_copy(update={"folds": preset.folds, "run_folds": None})

    @property
    def labels(self) -> tuple[str, ...]:
        """Titles of the methods, in the order of the file."""
        return tuple(entry.title for entry in self.methods)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Experiment:
        # these names identify rows of tables and curves of figures
        for what, key, names in (
            ("data set", "name", self.data_names),
            ("method", "label", self.labels),
            ("backend", "name", self.backends),
            ("figure", "name", [entry.name for entry in self.figures]),
            ("table", "name", [entry.name for entry in self.tables]),
        ):
            for name, times in Counter(names).items():
                if times > 1:
                    what_to_do = f"change the {key}"
                    if what == "data set":
                        what_to_do = "give the data of each problem its own name"
                    raise ValueError(f"{what} {name!r} is there {times} times; {what_to_do}")
        return self

    @model_validator(mode="after")
    def _presets_name_what_exists(self) -> Experiment:
        _check_folds("[split]", self.split.run_folds, self.split)
        entries = (data for problem in self.problems for data in problem.data)
        factors = {factor for data in entries for factor, _ in data.factors}
        for name, preset in self.presets.items():
            where = f"[presets.{name}]"
            _check_names(where, "data set", preset.data, data_sets_by_name(self.data_names))
            _check_names(where, "method label", preset.methods, self.labels)
            _check_names(where, "factor", preset.where, factors)
            _check_folds(where, preset.run_folds, self.split_of(preset))
            first_backend = (preset.backends or self.backends)[0]
            if first_backend in (preset.spot_check_backends or ()):
                raise ValueError(
                    f"{where} spot_check_backends: {first_backend} runs every cell; leave it out"
                )
            if preset.chosen_from is not None:
                _check_names(f"{where} chosen_from:", "preset", [preset.chosen_from], self.presets)
                labels = preset.methods or self.labels
                times = Counter(entry.row for entry in self.methods if entry.title in labels)
                for row in dict.fromkeys(entry.row for entry in self.methods if entry.row):
                    if times[row] != 1:
                        raise ValueError(
                            f"{where} has {times[row]} methods of row {row!r}; give it one"
                        )
        return self


def _check_names(where: str, kind: str, names: Iterable[str] | None, valid: Iterable[str]) -> None:
    for name in names or ():
        if name not in valid:
            raise ValueError(f"{where} {unknown(kind, name, valid)}")


def _check_folds(where: str, run_folds: tuple[int, ...] | None, plan: SplitPlan) -> None:
    for fold in run_folds or ():
        if fold >= plan.folds and plan.kind not in (
            "fixed",
            "column",
        ):  # the data set says how many
            raise ValueError(f"{where} run_folds: fold {fold} of {plan.folds} (they count from 0)")
    if run_folds is not None and len(set(run_folds)) < len(run_folds):
        raise ValueError(f"{where} run_folds names a fold twice")
