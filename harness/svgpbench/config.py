"""Validated configuration of a cell. The keys of an experiment file are the fields of these classes."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[FiniteFloat, Field(gt=0)]
Learnable = Literal["kernel", "likelihood", "inducing"]
LEARN: tuple[Learnable, ...] = ("kernel", "likelihood", "inducing")
"""Every part of θ."""

DECADES_OF_EVALUATIONS: Final = 3.0
"""Decades of iterations over which an `EvaluationPlan` spaces its evaluations."""


class Strict(BaseModel):
    """Base of frozen models that refuse unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def without_numpy(value: Any) -> Any:
    """Replace NumPy's numbers and arrays in a value by Python's, because options are stored as JSON."""
    if isinstance(value, Mapping):
        return {key: without_numpy(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(without_numpy, value))
    return value.tolist() if hasattr(value, "tolist") else value


class WithOptions(Strict):
    """A table that names a plugin and holds the plugin's options beside its own keys.

    The options are checked where the plugin is loaded.
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    names: ClassVar[str] = "name"  # the key that holds the plugin's name

    @model_validator(mode="after")
    def _options_are_python_s(self) -> Self:
        # after, not before: a list that has passed through Python is refused by strict validation
        (self.model_extra or {}).update(without_numpy(self.options))
        return self

    @property
    def named(self) -> str:
        """Name of the plugin."""
        return str(getattr(self, self.names))

    @property
    def options(self) -> dict[str, Any]:
        """Options that the table gives, as JSON values."""
        return dict(self.model_extra or {})

    def kept_under(self, name: str) -> dict[str, Any]:
        """Return the keys to keep if the table is changed to the plugin `name`: all except the options."""
        return {key: getattr(self, key) for key in type(self).model_fields}


class KernelConfig(WithOptions):
    """A kernel, its initial hyperparameters, and its own options.

    `init` is "given"; "root-dimension", which multiplies the given lengthscale by √D; "median", which
    replaces the lengthscale; or "ulapane" or "mean-gaps", which replace lengthscale and variance. A `sum`
    or a `product` has no hyperparameters; each of its `parts` is a kernel with its own.
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
        # `model_construct` does not validate: validation would call this check without end
        if self.parts and self != KernelConfig.model_construct(name=self.name, parts=self.parts):
            raise ValueError(
                f"hyperparameters of a {self.name} are those of its parts: give them there"
            )
        return self


class LikelihoodConfig(WithOptions):
    """A likelihood and its own options; a missing option has the likelihood's default.

    `latent_mean` "data" gives latent functions the constant prior mean `Likelihood.latent_mean` of the
    training targets. For real-valued targets it is 0.
    """

    name: str = "gaussian"
    latent_mean: Literal["zero", "data"] = "zero"

    @model_serializer(mode="wrap")
    def _without_a_mean_of_zero(self, serialise: SerializerFunctionWrapHandler) -> Any:
        """Leave `latent_mean` out if it is "zero", so that hashes and records stay what they were."""
        fields = serialise(self)
        if self.latent_mean == "zero":
            fields.pop("latent_mean", None)
        return fields


class InducingConfig(WithOptions):
    """Number of inducing inputs or functions, their initialisation, and its options.

    `gamma` is the number of inducing inputs of the mean, in a second basis.
    """

    names: ClassVar[str] = "init"

    count: PositiveInt = 50
    gamma: PositiveInt | None = None  # required by methods with two bases; `count` is then |β|
    init: str = "k-means"
    functions: Literal["points", "features"] = "points"
    width: Positive = 0.1  # of features at the start, in lengthscales

    @property
    def window(self) -> float | None:
        """Initial width of the features in lengthscales; None if the basis is points."""
        return self.width if self.functions == "features" else None


class MethodConfig(Strict):
    """A method by name, its options, and the label that tables show."""

    name: str
    label: str = ""
    options: Annotated[dict[str, str | bool | int | float], BeforeValidator(without_numpy)] = Field(
        default_factory=dict
    )

    @property
    def title(self) -> str:
        """Label, or the name if there is no label."""
        return self.label or self.name


class LogLinear(Strict):
    """A rate that rises from `start` to `end` over `steps` EM iterations, then stays."""

    start: Positive
    end: Positive
    steps: PositiveInt


class Linear(Strict):
    """A rate that grows from `start` by `increment` per EM iteration up to `end`, then stays."""

    start: Positive
    end: Positive
    increment: Positive


class Decay(Strict):
    """A rate γ₀/(1 + decay·√t)."""

    start: Positive
    decay: Positive = 0.1


def _kind_of_rate(rate: Any) -> str:
    """Return the tag of the schedule that a table looks like, so that errors refer to this schedule only."""
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
    """Online learning on a growing basis: one E-step and one M-step per iteration, at γ₀/(1 + decay·√t).

    With several `rates`, γ₀ is the rate with the best bound after `trial` iterations.
    """

    iterations: PositiveInt = 2000
    increment: PositiveInt = 128  # basis points that each batch adds, up to inducing.count
    rates: Annotated[tuple[Positive, ...], Field(min_length=1)] = (0.1, 0.01, 0.001)
    trial: PositiveInt = 100
    decay: Positive = 0.1
    trace_every: PositiveInt = 20


class RatePair(NamedTuple):
    """Learning rates of a run."""

    e: float  # of q
    m: float  # of θ

    @property
    def title(self) -> str:
        """The rates in tables: that of q, then that of θ."""
        return f"{self.e:g}, {self.m:g}"


class EvaluationPlan(Strict):
    """When and on which rows a run of a fixed number of iterations is evaluated.

    Evaluation k of `count` is at a share 1000^−(count − k)/(count − 1) of the iterations. So runs of methods
    whose iterations take different times are evaluated after equal shares of their time. The trace keeps the
    bound and the NLPD; other metrics are those of the last evaluation.
    """

    count: Annotated[int, Field(ge=2)]
    train_rows: PositiveInt | None = None
    """Most rows, from which the bound is estimated; None, or if the bound is collapsed: all."""
    test_rows: PositiveInt | None = None  # most rows that are scored; None: all

    def iterations(self, last: int) -> frozenset[int]:
        """Return the iterations after which a run of `last` iterations is evaluated."""
        return _evaluated_iterations(self.count, last)


@functools.lru_cache  # asked in every iteration
def _evaluated_iterations(count: int, last: int) -> frozenset[int]:
    shares = (DECADES_OF_EVALUATIONS * (k / (count - 1) - 1.0) for k in range(count))
    # in a short run several early shares fall on one iteration; the set keeps it once
    return frozenset(max(1, math.ceil(last * 10.0**share)) for share in shares)


class TrainingConfig(Strict):
    """The EM loop: numbers of E-steps and M-steps, their rates, the batch, and the learned parts of θ.

    With `kind` "online", the keys are `online`, `batch_size`, `rows` and `learn`. With `joint`, an iteration
    is one step of Adam on q and θ together, on one batch.
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
    rows: PositiveInt | None = None  # number drawn from the training part by the seed; None: all
    learn: tuple[Learnable, ...] = LEARN
    joint: bool = False  # both steps of Adam at the same q and θ, from one batch
    steps: Literal["full", "guarded"] = "full"  # guarded: cut back if the bound falls
    until: Literal["limit", "settled"] = "limit"  # settled: em_iterations is the most
    evaluation: EvaluationPlan | None = None  # in place of trace_every
    cool_down: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Last share of the EM iterations, over which all rates fall to a tenth, by equal factors."""

    def uses_minibatches(self, rows: int) -> bool:
        """Return True if a step sees fewer than the `rows` rows that train."""
        return self.kind == "online" or (self.batch_size or rows) < rows

    @property
    def iterations(self) -> int:
        """Number of iterations of the run."""
        return self.online.iterations if self.kind == "online" else self.em_iterations

    def is_traced(self, iteration: int) -> bool:
        """Return True if the bound and the predictions are evaluated after an iteration, counted from 1."""
        if self.evaluation is not None:
            return iteration in self.evaluation.iterations(self.iterations)
        every = self.online.trace_every if self.kind == "online" else self.trace_every
        return iteration in (1, self.iterations) or iteration % every == 0


NEW_MODEL_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "likelihood": {"latent_mean": "data", "integrals": "adaptive"},
    "training": {"steps": "guarded"},
}
"""By table: values of keys that a new experiment file or a fit leaves out.

The defaults of the classes themselves are never changed, because ids of records depend on them.
"""


def with_new_defaults(name: str) -> AfterValidator:
    """Return a validator that fills keys of the table `name` in from `NEW_MODEL_DEFAULTS`."""

    def filled(table: Strict) -> Strict:
        defaults = NEW_MODEL_DEFAULTS[name]
        # by what was written, not by value: a file may ask for the old default
        missing = {key: x for key, x in defaults.items() if key not in table.model_fields_set}
        return table.model_copy(update=missing)

    return AfterValidator(filled)


def _a_tuple(value: Any) -> Any:
    """Convert a list from a file to a tuple, because strict validation refuses a list here."""
    return tuple(value) if isinstance(value, list) else value


def _pairs(value: Any) -> Any:
    """Convert a table of a file, or a record's list of pairs, to hashable pairs."""
    items = list(value.items()) if isinstance(value, dict) else value
    return tuple(map(_a_tuple, items)) if isinstance(items, list) else value


class DataConfig(Strict):
    """A data set by registry name, `NAME@OUTPUT` for another of its outputs, or the user's own file.

    `factors` are the values in which the problems of a grid differ. They are shown in place of the name, so
    one data set may be in several problems.
    """

    name: str
    path: str | None = None
    target: str | None = None  # this and the next six are for a file only
    task: Literal["regression", "classification", "multiclass"] | None = None
    features: Annotated[tuple[str, ...] | None, BeforeValidator(_a_tuple)] = None
    outputs: Annotated[tuple[str, ...] | None, BeforeValidator(_a_tuple)] = None  # every target
    arrays: Annotated[tuple[str, ...] | None, BeforeValidator(_a_tuple)] = None  # of .mat and .npz
    groups: str | None = None  # column of a file that a split reads; it is no input
    header: bool | None = None  # False: no line of a file names its columns; None: detected
    factors: Annotated[tuple[tuple[str, FiniteFloat], ...], BeforeValidator(_pairs)] = ()
    standardise_x: bool = True
    standardise_y: bool = True

    @model_serializer(mode="wrap")
    def _without_later_keys_that_are_none(self, serialise: SerializerFunctionWrapHandler) -> Any:
        """Leave out keys that are None, so that hashes and records stay what they were before them."""
        fields = serialise(self)
        for key in ("groups", "header"):
            if getattr(self, key) is None:
                fields.pop(key, None)
        return fields

    @property
    def title(self) -> str:
        """Factors, as in `N=1000, M=10`, or the name if there are none."""
        return ", ".join(f"{name}={level:g}" for name, level in self.factors) or self.name

    @model_validator(mode="after")
    def _columns_are_those_of_a_file(self) -> DataConfig:
        of_a_file = ("target", "task", "features", "outputs", "arrays", "groups", "header")
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
    """Map each name to the data sets that it selects.

    A data set's name selects itself. NAME selects every NAME@OUTPUT, unless a data set is called NAME.
    """
    found = {name: [name] for name in names}
    for name in names:
        if (table := name.partition("@")[0]) not in names:
            found.setdefault(table, []).append(name)
    return found


class SplitConfig(Strict):
    """A split of the rows into a training part and a test part."""

    kind: Literal["k-fold", "random", "fixed", "none", "groups", "blocks", "column"] = "k-fold"
    """fixed: published with the data set; none: all rows are for training; groups: the rows of a group stay
    together; blocks: folds of consecutive rows; column: the rows of one group are the test part."""
    folds: Annotated[int, Field(ge=2)] = 5  # k-fold, groups and blocks
    fold: Annotated[int, Field(ge=0)] = 0  # all but random
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1  # random only
    seed: Annotated[int, Field(ge=0)] = 0
    held_out: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the training part that is scored in place of the test part, to choose learning rates."""

    @model_validator(mode="after")
    def _no_rows_are_held_out_of_no_split(self) -> SplitConfig:
        if self.kind == "none" and self.held_out is not None:
            raise ValueError("split kind 'none' trains on all rows: remove held_out")
        return self


class BackendConfig(Strict):
    """A backend with its mode, dtype and device."""

    name: str
    mode: str = ""  # "": the backend's default
    dtype: Literal["float64", "float32"] = "float64"
    device: Literal["cpu", "cuda"] = "cpu"

    @classmethod
    def parse(cls, text: str, *, dtype: str = "float64", device: str = "cpu") -> BackendConfig:
        """Parse a backend such as `torch` or `torch:compile`."""
        name, _, mode = text.partition(":")
        return cls.model_validate({"name": name, "mode": mode, "dtype": dtype, "device": device})

    @property
    def title(self) -> str:
        """Name, followed by mode, dtype and device where they differ from the defaults."""
        extra = [self.dtype] * (self.dtype != "float64") + [self.device] * (self.device != "cpu")
        return " ".join([f"{self.name}:{self.mode}" if self.mode else self.name, *extra])


class CellConfig(Strict):
    """Configuration of a cell: everything that determines its results, but not when or where it runs."""

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

    @property
    def is_replica(self) -> bool:
        """True if the inputs are perturbed, to show the effect of rounding."""
        return self.perturbation > 0
