"""What determines a cell's numbers, validated: the words of an experiment file are these fields."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt, model_validator

Positive = Annotated[FiniteFloat, Field(gt=0)]
Learnable = Literal["kernel", "likelihood", "inducing"]


class Strict(BaseModel):
    """Frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class KernelConfig(Strict):
    """A kernel and its initial hyperparameters."""

    name: str = "matern52"
    ard: bool = True
    variance: Positive = 1.0
    lengthscale: Positive | tuple[Positive, ...] = 1.0


class LikelihoodConfig(Strict):
    """A likelihood and its initial parameters."""

    name: str = "gaussian"
    noise_variance: Positive | None = None  # gaussian only; 1.0 where it is not given
    nodes: Annotated[int, Field(ge=2, le=400)] = 20  # Gauss–Hermite
    squash: Annotated[float, Field(ge=0, lt=0.5)] = 0.0  # probit: squash + (1 − 2 squash) Φ

    @model_validator(mode="after")
    def _noise_is_gaussian(self) -> LikelihoodConfig:
        if self.noise_variance is not None and self.name != "gaussian":
            raise ValueError(f"likelihood {self.name!r} has no noise_variance; remove the key")
        return self


class InducingConfig(Strict):
    """How many inducing inputs and where they start."""

    count: PositiveInt = 50
    init: Literal["k-means", "random"] = "k-means"


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


class Decay(Strict):
    """A rate γ₀/(1 + decay·√t)."""

    start: Positive
    decay: Positive = 0.1


class TrainingConfig(Strict):
    """The EM loop: K E-steps, S M-steps, their rates, the batch, and what is learned."""

    em_iterations: PositiveInt = 20
    e_steps: PositiveInt = 1
    e_rate: Positive | LogLinear | Decay = 1.0
    m_steps: Annotated[int, Field(ge=0)] = 15
    m_rate: Positive = 0.2
    batch_size: PositiveInt | None = None  # None: full batch
    learn: tuple[Learnable, ...] = ("kernel", "likelihood", "inducing")


class DataConfig(Strict):
    """A data set by registry name, or the user's own file."""

    name: str
    path: str | None = None
    target: str | None = None
    task: Literal["regression", "classification"] | None = None
    features: tuple[str, ...] | None = None
    standardise_x: bool = True
    standardise_y: bool = True

    @model_validator(mode="after")
    def _own_file_is_complete(self) -> DataConfig:
        if self.path is not None and (self.target is None or self.task is None):
            raise ValueError(f"data {self.name!r} has a path, so it needs `target` and `task` too")
        return self


class SplitConfig(Strict):
    """Which rows train and which test."""

    kind: Literal["k-fold", "random", "fixed"] = "k-fold"  # fixed: published with the data set
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
    perturbation: Annotated[float, Field(ge=0)] = 0.0  # y · (1 + perturbation·noise), for rounding
    measures: bool = False  # a cell that measures time or memory gets a fresh process


def digest(value: Any) -> str:
    """A short stable hash of JSON-able data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cell_id(config: CellConfig, data_fingerprint: str, method_version: int) -> str:
    """Identity of a cell: a hash of what determines its numbers.

    The label in tables and the folder of a user's file do not; the data's content does. Fields at their
    default are left out, so that a new field leaves the ids of older records alone.
    """
    shown_only = {"method": {"label"}, "data": {"path"}}
    return digest(
        {
            "config": config.model_dump(mode="json", exclude=shown_only, exclude_defaults=True),
            "data": data_fingerprint,
            "method_version": method_version,
        }
    )
