"""The form of an experiment file, the same for shipped experiments and for a user's own.

Tables named like a `CellConfig` part (`[kernel]`, `[training]`, ...) hold common values. The same
tables inside a problem, a method or a preset override single keys of them, in that order: a key
that such a table does not name keeps the value it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from svgpbench.config import (
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    Positive,
    Strict,
    TrainingConfig,
    data_sets_by_name,
)
from svgpbench.errors import unknown


def _named(value: Any) -> Any:
    """A bare name stands for a data set of the registry."""
    return {"name": value} if isinstance(value, str) else value


def _an_output_each(values: Any) -> Any:
    """A table with `target = ["y1", "y2"]` stands for NAME@y1 and NAME@y2; neither is an input."""
    if not isinstance(values, list):
        return values
    return tuple(one for value in values for one in _outputs(value))


def _outputs(value: Any) -> list[Any]:
    if not (isinstance(value, dict) and "name" in value and isinstance(value.get("target"), list)):
        return [value]
    targets = value["target"]
    names = [f"{value['name']}@{target}" for target in targets]
    return [
        {**value, "name": name, "target": target, "outputs": targets}
        for name, target in zip(names, targets, strict=True)
    ]


Some = Field(min_length=1)
DataEntry = Annotated[DataConfig, BeforeValidator(_named)]
Seeds = Annotated[tuple[NonNegativeInt, ...], Some]
BackendNames = Annotated[tuple[str, ...], Some]
"""Backends as `name` or `name:mode`."""
Rates = Literal["searched", "none needed", "as printed"]
"""How the methods of an experiment came to their learning rates; `svgpbench advise` asks for it."""


class SplitPlan(Strict):
    """How rows are split, and which of the folds are run; `run_folds` left out means all.

    Of `fixed` splits, which data sets have different numbers of, it means the first.
    """

    kind: Literal["k-fold", "random", "fixed"] = "k-fold"
    folds: Annotated[int, Field(ge=2)] = 5
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1  # random only
    seed: NonNegativeInt = 0
    run_folds: Annotated[tuple[NonNegativeInt, ...], Some] | None = None


class Problem(Strict):
    """Data sets that share a likelihood and overrides of the common values."""

    data: Annotated[tuple[DataEntry, ...], Some, BeforeValidator(_an_output_each)]
    likelihood: LikelihoodConfig
    kernel: KernelConfig = KernelConfig()
    inducing: InducingConfig = InducingConfig()
    training: TrainingConfig = TrainingConfig()


class MethodEntry(MethodConfig):
    """A method to run, with overrides of how it is trained and of its bases."""

    training: TrainingConfig = TrainingConfig()
    inducing: InducingConfig = InducingConfig()
    row: str = ""  # of a printed table, in its words; several methods may stand for the same row

    def method(self) -> MethodConfig:
        """The part that a cell keeps."""
        return MethodConfig(name=self.name, label=self.title, options=self.options)


class PerturbationReplica(Strict):
    """Every cell of one backend once more with perturbed inputs: what rounding does to a result."""

    backend: str
    perturbation: Positive = 1e-15
    seeds: Seeds | None = None  # all of the experiment's, where None


class Preset(Strict):
    """A named size of the experiment: which parts of it run, and overrides of what they share.

    With `sampled_on`, its cells run on the first of its backends, and a tenth of them on each of these too.
    With `where`, the problems of a grid whose factors are among some levels. With `chosen_from`, one method
    a row: the one of the best ELBO in the records of that preset.
    """

    data: Annotated[tuple[str, ...], Some] | None = None
    where: dict[str, Annotated[tuple[float, ...], Some]] = Field(default_factory=dict)
    methods: Annotated[tuple[str, ...], Some] | None = None  # labels
    backends: BackendNames | None = None
    sampled_on: BackendNames | None = None
    seeds: Seeds | None = None
    folds: Annotated[int, Field(ge=2)] | None = None
    run_folds: Annotated[tuple[NonNegativeInt, ...], Some] | None = None
    measures: bool | None = None
    kernel: KernelConfig = KernelConfig()
    jitter: Annotated[float, Field(ge=0)] | None = None
    inducing: InducingConfig = InducingConfig()
    training: TrainingConfig = TrainingConfig()
    perturbation_replicas: tuple[PerturbationReplica, ...] | None = None
    chosen_from: str | None = None


class ArtefactEntry(Strict, extra="allow"):
    """A figure or table: its name, its kind, and the keys that the kind has, checked when it is drawn."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    kind: str


class FigureEntry(ArtefactEntry):
    """A figure; `svgpbench.figures` has the kinds."""

    kind: str = "convergence"


class TableEntry(ArtefactEntry):
    """A table; `svgpbench.tables` has the kinds."""

    kind: str = "finals"


class Experiment(Strict):
    """Problems × methods × backends × folds × seeds, with the values they share.

    `rates` is no part of a cell. It is "searched" where every method that has a rate is run at several, and
    "none needed" where L-BFGS or exact steps train all methods; the file is refused where it is neither.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    title: str = ""
    source: str = ""
    rates: Rates = "as printed"
    backends: BackendNames
    dtype: Literal["float64", "float32"] = "float64"
    device: Literal["cpu", "cuda"] = "cpu"
    threads: PositiveInt = 1
    seeds: Seeds = (0,)
    jitter: Annotated[float, Field(ge=0)] = 1e-6
    measures: bool = False  # time and memory: a fresh process a cell
    perturbation_replicas: tuple[PerturbationReplica, ...] = ()
    kernel: KernelConfig = KernelConfig()
    inducing: InducingConfig = InducingConfig()
    split: SplitPlan = SplitPlan()
    training: TrainingConfig = TrainingConfig()
    problems: Annotated[tuple[Problem, ...], Some]
    methods: Annotated[tuple[MethodEntry, ...], Some]
    presets: dict[str, Preset] = Field(default_factory=dict)
    figures: tuple[FigureEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()

    @property
    def data_names(self) -> tuple[str, ...]:
        """What tables call the data sets of every problem, in the order of the file."""
        return tuple(data.title for problem in self.problems for data in problem.data)

    def split_of(self, preset: Preset) -> SplitPlan:
        """The split of a preset, which may have another number of folds and then runs all of them."""
        if preset.folds is None:
            return self.split
        return self.split.model_copy(update={"folds": preset.folds, "run_folds": None})

    @property
    def _factors(self) -> set[str]:
        entries = (data for problem in self.problems for data in problem.data)
        return {name for data in entries for name, _ in data.factors}

    @property
    def labels(self) -> tuple[str, ...]:
        """What tables call the methods, in the order of the file."""
        return tuple(entry.title for entry in self.methods)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Experiment:
        # tables and figures tell their rows apart by these names
        for what, key, names in (
            ("data set", "name", self.data_names),
            ("method", "label", self.labels),
            ("backend", "name", self.backends),
            ("figure", "name", [entry.name for entry in self.figures]),
            ("table", "name", [entry.name for entry in self.tables]),
        ):
            for name, times in Counter(names).items():
                if times > 1:
                    raise ValueError(f"{what} {name!r} is there {times} times; change the {key}")
        return self

    @model_validator(mode="after")
    def _presets_name_what_exists(self) -> Experiment:
        _check_folds("[split]", self.split.run_folds, self.split)
        for name, preset in self.presets.items():
            where = f"[presets.{name}]"
            _check_names(where, "data set", preset.data, data_sets_by_name(self.data_names))
            _check_names(where, "method label", preset.methods, self.labels)
            _check_names(where, "factor", preset.where, self._factors)
            _check_folds(where, preset.run_folds, self.split_of(preset))
            whole = (preset.backends or self.backends)[0]
            if whole in (preset.sampled_on or ()):
                raise ValueError(f"{where} sampled_on: {whole} runs every cell; leave it out")
            if preset.chosen_from is not None:
                _check_names(f"{where} chosen_from:", "preset", [preset.chosen_from], self.presets)
                self._check_one_a_row(where, preset)
        return self

    @model_validator(mode="after")
    def _rates_are_as_marked(self) -> Experiment:
        if self.rates == "as printed":
            return self
        chosen = any(preset.chosen_from is not None for preset in self.presets.values())
        for entry in self.methods:
            free = all(self._needs_no_rate(problem, entry) for problem in self.problems)
            if free or (self.rates == "searched" and (chosen or self._is_searched(entry))):
                continue
            why = "has one rate" if self.rates == "searched" else "is trained with a rate"
            raise ValueError(f"rates = {self.rates!r}: method {entry.title!r} {why}")
        return self

    def _training(self, key: str, *layers: Problem | MethodEntry) -> Any:
        """Return a value of `[training]`, of the last layer that sets it."""
        parts = [self.training, *(layer.training for layer in layers)]
        named = [part for part in parts if key in part.model_fields_set]
        return getattr((named or parts)[-1], key)

    def _needs_no_rate(self, problem: Problem, entry: MethodEntry) -> bool:
        """Whether L-BFGS trains a method, or one exact step at fixed hyperparameters."""
        if self._training("kind", problem, entry) == "online":
            return False
        if self._training("optimiser", problem, entry) == "l-bfgs":
            return True
        exact = self._training("e_rate", problem, entry) == 1.0
        gaussian = problem.likelihood.name == "gaussian"
        adam = entry.options.get("optimiser") == "adam"
        return exact and gaussian and not adam and not self._training("learn", problem, entry)

    def _is_searched(self, entry: MethodEntry) -> bool:
        """Whether a method is run at several rates, of its own trial or as several methods."""

        def rates(of: MethodEntry, problem: Problem) -> tuple[Any, ...]:
            names = ("e_rate", "m_rate", "online")
            return tuple(self._training(name, problem, of) for name in names)

        alike = [x for x in self.methods if x.name == entry.name and x.options == entry.options]
        return all(
            (
                self._training("kind", problem, entry) == "online"
                and len(self._training("online", problem, entry).rates) > 1
            )
            or len({repr(rates(x, problem)) for x in alike}) > 1
            for problem in self.problems
        )

    def _check_one_a_row(self, where: str, preset: Preset) -> None:
        labels = preset.methods or self.labels
        times = Counter(entry.row for entry in self.methods if entry.title in labels)
        for row in dict.fromkeys(entry.row for entry in self.methods if entry.row):
            if times[row] != 1:
                raise ValueError(f"{where} has {times[row]} methods of row {row!r}; give it one")


def _check_names(where: str, kind: str, names: Iterable[str] | None, known: Iterable[str]) -> None:
    for name in names or ():
        if name not in known:
            raise ValueError(f"{where} {unknown(kind, name, known)}")


def _check_folds(where: str, run_folds: tuple[int, ...] | None, plan: SplitPlan) -> None:
    for fold in run_folds or ():
        if fold >= plan.folds and plan.kind != "fixed":  # the data set knows how many are fixed
            raise ValueError(f"{where} run_folds: fold {fold} of {plan.folds} (they count from 0)")
    if run_folds is not None and len(set(run_folds)) < len(run_folds):
        raise ValueError(f"{where} run_folds names a fold twice")
