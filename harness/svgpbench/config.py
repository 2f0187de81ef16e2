"""What determines a cell's numbers, validated: the words of an experiment file are these fields."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    PositiveInt,
    Tag,
    model_validator,
)

Positive = Annotated[FiniteFloat, Field(gt=0)]
Learnable = Literal["kernel", "likelihood", "inducing"]
LEARN: tuple[Learnable, ...] = ("kernel", "likelihood", "inducing")
"""Every part of θ."""


class Strict(BaseModel):
    """Frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class WithOptions(Strict):
    """A table that names what comes through an entry point, with the options of that beside its own keys.

    What the options may be is known to who has the name, and checked where that is loaded.
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    names: ClassVar[str] = "name"  # the key that does

    @property
    def named(self) -> str:
        """What the table names."""
        return str(getattr(self, self.names))

    @property
    def options(self) -> dict[str, Any]:
        """The options that are given, as JSON has them."""
        return dict(self.model_extra or {})

    def kept_under(self, name: str) -> dict[str, Any]:
        """The keys that stay where the table comes to name something else: all but the options."""
        return {key: getattr(self, key) for key in type(self).model_fields}


class KernelConfig(WithOptions):
    """A kernel, its initial hyperparameters, and its own options.

    `init`: "given"; "root-dimension", the lengthscale that is given times √D; "median", which replaces the
    lengthscale; "ulapane" and "mean-gaps", which replace lengthscale and variance. A `sum` or a `product`
    has `parts`, each a kernel with hyperparameters of its own, and none itself.
    """

    compounds: ClassVar[tuple[str, ...]] = ("sum", "product")

    name: str = "matern52"
    ard: bool = True
    init: Literal["given", "root-dimension", "median", "ulapane", "mean-gaps"] = "given"
    variance: Positive = 1.0
    lengthscale: Positive | tuple[Positive, ...] = 1.0
    parts: tuple[KernelConfig, ...] = ()

    def kept_under(self, name: str) -> dict[str, Any]:
        compound = name in self.compounds or self.name in self.compounds
        return {} if compound else super().kept_under(name)

    @model_validator(mode="after")
    def _parts_make_a_compound(self) -> KernelConfig:
        if self.name in self.compounds and len(self.parts) < 2:
            raise ValueError(f"kernel {self.name!r} needs 2 parts or more")
        if self.parts and self.name not in self.compounds:
            raise ValueError(f"kernel {self.name!r} has no parts; a sum and a product have")
        if self.parts and self != KernelConfig.model_construct(name=self.name, parts=self.parts):
            raise ValueError(
                f"hyperparameters of a {self.name} are those of its parts: give them there"
            )
        return self


class LikelihoodConfig(WithOptions):
    """A likelihood and its own options: one left out is at the likelihood's default."""

    name: str = "gaussian"

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, keys: Any) -> Any:
        # records of before hold the keys of every likelihood, null where it has none of the kind
        if isinstance(keys, dict):
            return {key: value for key, value in keys.items() if value is not None}
        return keys


class InducingConfig(WithOptions):
    """How many inducing inputs, or functions, where they start, and the options of that start.

    `gamma` are those of the mean in a second basis.
    """

    names: ClassVar[str] = "init"

    count: PositiveInt = 50
    gamma: PositiveInt | None = None  # methods with two bases, which need it; `count` is then |β|
    init: str = "k-means"
    functions: Literal["points", "features"] = "points"
    width: Positive = 0.1  # of features at the start, in lengthscales

    @property
    def window(self) -> float | None:
        """The width of features, None where the basis is points."""
        return self.width if self.functions == "features" else None


class MethodConfig(Strict):
    """A method by name, its options, and the label that tables show."""

    name: str
    label: str = ""
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """The label, or the name where there is none."""
        return self.label or self.name


class LogLinear(Strict):
    """A rate that rises from `start` to `end` over `steps` EM iterations, then stays."""

    start: Positive
    end: Positive
    steps: PositiveInt


class Linear(Strict):
    """A rate that grows by `increment` an EM iteration from `start` until it is `end`, then stays."""

    start: Positive
    end: Positive
    increment: Positive


class Decay(Strict):
    """A rate γ₀/(1 + decay·√t)."""

    start: Positive
    decay: Positive = 0.1


def _kind_of_rate(rate: Any) -> str:
    """Which schedule a table is meant to be, so that a mistake in it is reported as one of that kind."""
    if isinstance(rate, dict):
        if "increment" in rate:
            return "linear"
        return "rise" if {"end", "steps"} & rate.keys() else "decay"
    kinds: dict[type, str] = {LogLinear: "rise", Linear: "linear", Decay: "decay"}
    return kinds.get(type(rate), "constant")


Rate = Annotated[
    Annotated[Positive, Tag("constant")]
    | Annotated[LogLinear, Tag("rise")]
    | Annotated[Linear, Tag("linear")]
    | Annotated[Decay, Tag("decay")],
    Discriminator(_kind_of_rate),
]


class OnlineConfig(Strict):
    """Learning online on a growing basis: a step of each kind an iteration, at γ₀/(1 + decay·√t).

    Where there are several `rates`, γ₀ is the one of the best bound after `trial` iterations.
    """

    iterations: PositiveInt = 2000
    increment: PositiveInt = 128  # basis points a batch adds, until there are inducing.count
    rates: Annotated[tuple[Positive, ...], Field(min_length=1)] = (0.1, 0.01, 0.001)
    trial: PositiveInt = 100
    decay: Positive = 0.1
    trace_every: PositiveInt = 20


class TrainingConfig(Strict):
    """The EM loop: K E-steps, S M-steps, their rates, the batch, and what is learned.

    With `kind` "online", `online`, `rows` and `learn`. With `joint`, an iteration is one step of Adam on q
    and θ together, on one batch.
    """

    kind: Literal["em", "online"] = "em"
    online: OnlineConfig = OnlineConfig()
    em_iterations: PositiveInt = 20
    e_steps: PositiveInt = 1
    e_rate: Rate = 1.0
    m_steps: Annotated[int, Field(ge=0)] = 15
    optimiser: Literal["adam", "l-bfgs"] = "adam"  # of the M-step; l-bfgs: full batch, S iterations
    m_rate: Positive = 0.2  # adam only
    trace_every: PositiveInt = 1  # evaluate the first iteration, each of these, and the last
    batch_size: PositiveInt | None = None  # None: full batch
    rows: PositiveInt | None = None  # of the training part, drawn by the seed; None: all of them
    learn: tuple[Learnable, ...] = LEARN
    joint: bool = False  # both steps of Adam at the same q and θ, from one batch

    @property
    def iterations(self) -> int:
        """How many iterations the run has."""
        return self.online.iterations if self.kind == "online" else self.em_iterations

    def is_traced(self, iteration: int) -> bool:
        """Whether the bound and the predictions after an iteration, from 1, are evaluated."""
        every = self.online.trace_every if self.kind == "online" else self.trace_every
        return iteration in (1, self.iterations) or iteration % every == 0


def _a_tuple(value: Any) -> Any:
    """A list of a file, which the strict check of an experiment takes for no tuple here."""
    return tuple(value) if isinstance(value, list) else value


def _pairs(value: Any) -> Any:
    """A table of a file, or the list of pairs of a record, as pairs that can be hashed."""
    items = list(value.items()) if isinstance(value, dict) else value
    return tuple(map(_a_tuple, items)) if isinstance(items, list) else value


class DataConfig(Strict):
    """A data set by registry name, `NAME@OUTPUT` for another of its outputs, or the user's own file.

    `factors` are what the problems of a grid differ in, shown in place of the name: one data set may then
    stand in several of them.
    """

    name: str
    path: str | None = None
    target: str | None = None  # of a file, as is all below but the last two
    task: Literal["regression", "classification", "multiclass"] | None = None
    features: Annotated[tuple[str, ...] | None, BeforeValidator(_a_tuple)] = None
    outputs: Annotated[tuple[str, ...] | None, BeforeValidator(_a_tuple)] = None  # every target
    arrays: Annotated[tuple[str, ...] | None, BeforeValidator(_a_tuple)] = None  # of .mat and .npz
    factors: Annotated[tuple[tuple[str, FiniteFloat], ...], BeforeValidator(_pairs)] = ()
    standardise_x: bool = True
    standardise_y: bool = True

    @property
    def title(self) -> str:
        """The name, or the factors where there are some: `N=1000, M=10`."""
        return ", ".join(f"{name}={level:g}" for name, level in self.factors) or self.name

    @model_validator(mode="after")
    def _columns_are_those_of_a_file(self) -> DataConfig:
        of_a_file = ("target", "task", "features", "outputs", "arrays")
        given = [key for key in of_a_file if getattr(self, key) is not None]
        if self.path is None and given:
            raise ValueError(
                f"data {self.name!r} has no path, so its registry says what `{given[0]}` is: leave it out "
                "(another output of a registered table is named NAME@OUTPUT)"
            )
        if self.path is not None and (self.target is None or self.task is None):
            raise ValueError(f"data {self.name!r} has a path, so it needs `target` and `task` too")
        return self


def data_sets_by_name(names: Collection[str]) -> dict[str, list[str]]:
    """What a name stands for: a data set for itself; NAME, where none is so called, for each NAME@OUTPUT."""
    found = {name: [name] for name in names}
    for name in names:
        if (table := name.partition("@")[0]) not in names:
            found.setdefault(table, []).append(name)
    return found


class SplitConfig(Strict):
    """Which rows train and which test."""

    kind: Literal["k-fold", "random", "fixed", "none"] = "k-fold"
    """fixed: published with the data set; none: every row trains."""
    folds: Annotated[int, Field(ge=2)] = 5  # k-fold only
    fold: Annotated[int, Field(ge=0)] = 0  # k-fold and fixed
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1  # random only
    seed: Annotated[int, Field(ge=0)] = 0


class BackendConfig(Strict):
    """A backend and how its steps run."""

    name: str
    mode: str = ""  # "": the backend's default
    dtype: Literal["float64", "float32"] = "float64"
    device: Literal["cpu", "cuda"] = "cpu"

    @classmethod
    def parse(cls, text: str, *, dtype: str = "float64", device: str = "cpu") -> BackendConfig:
        """`torch` or `torch:compile`."""
        name, _, mode = text.partition(":")
        return cls.model_validate({"name": name, "mode": mode, "dtype": dtype, "device": device})

    @property
    def title(self) -> str:
        """Name and, where they are not the defaults, mode, dtype and device."""
        extra = [self.dtype] * (self.dtype != "float64") + [self.device] * (self.device != "cpu")
        return " ".join([f"{self.name}:{self.mode}" if self.mode else self.name, *extra])


class CellConfig(Strict):
    """Everything that determines the numbers of one cell, and nothing about when or where it runs."""

    experiment: str
    data: DataConfig
    split: SplitConfig
    kernel: KernelConfig
    likelihood: LikelihoodConfig
    inducing: InducingConfig
    training: TrainingConfig
    method: MethodConfig
    backend: BackendConfig
    jitter: Annotated[float, Field(ge=0)] = 1e-6
    seed: Annotated[int, Field(ge=0)] = 0
    threads: PositiveInt = 1
    perturbation: Annotated[float, Field(ge=0)] = 0.0  # X · (1 + perturbation·noise), for rounding
    measures: bool = False  # a cell that measures time or memory gets a fresh process
