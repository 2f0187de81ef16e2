"""Problems that plans of `learn` and `survive` declare, the reader of plan files, and the start of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, PositiveInt, ValidationError

from svgpbench.config import (
    BackendConfig,
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    SplitConfig,
    Strict,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.experiments.cell import (
    build_model,
    initial_inducing,
    initial_theta,
    load_data,
    prepare_data,
)
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.loading import parse_toml
from svgpbench.kernels import Model, Theta
from svgpbench.methods import build_method
from svgpbench_datasets import Prepared

AnyPlan = TypeVar("AnyPlan", bound=Strict)
Jitter = Annotated[float, Field(ge=0)]


class ProblemPlan(Strict):
    """Problem in the terms of an experiment file."""

    data: DataConfig
    split: SplitConfig = SplitConfig()
    kernel: KernelConfig = KernelConfig()
    likelihood: LikelihoodConfig
    batch_size: PositiveInt

    def content(self) -> dict[str, str]:
        """Return the fingerprint of a data file of the user, which may change under its name.

        A registered data set has a checksum, and gives an empty dictionary.
        """
        return {} if self.data.path is None else {"fingerprint": load_data(self.data).fingerprint}


def read_as(kind: type[AnyPlan], path: Path) -> AnyPlan:
    """Read a plan of type `kind` from its file. Raises `UserError` if the file is missing or invalid."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the plan {path}: {error.strerror}") from None
    declared = parse_toml(f"plan {path}", raw)
    if isinstance(declared.get("problems"), list):  # a plan has its problems by name
        raise UserError(f"{path} is an experiment, not a plan; run it with `svgpbench run {path}`")
    try:
        return kind.model_validate(_tuples(declared))
    except ValidationError as error:
        raise UserError(f"plan {path}: {one_line(error, kind, declared)}") from None


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(value) if isinstance(value, list) else value


class Start(NamedTuple):
    """Data, model and θ at the start of a run."""

    ready: Prepared
    model: Model
    theta: Theta  # with M random rows as inducing inputs


def start_of(name: str, problem: ProblemPlan, inducing: int, checked: int, seed: int) -> Start:
    """Return data, model and θ of a problem. Raises `UserError` if the data do not fit the problem.

    Args:
        name: name of the problem in messages.
        problem: the problem in the terms of an experiment file.
        inducing: number of inducing inputs, M.
        checked: number of training rows on which a bound is computed.
        seed: seed of the inducing inputs.
    """
    if problem.likelihood.latent_mean != "zero":
        raise UserError(
            f"problem {name!r}: every library has a latent mean of zero here; "
            "remove likelihood.latent_mean"
        )
    config = CellConfig(
        experiment=name,
        data=problem.data,
        split=problem.split,
        kernel=problem.kernel,
        likelihood=problem.likelihood,
        inducing=InducingConfig(count=inducing, init="random"),
        training=TrainingConfig(batch_size=problem.batch_size),
        method=MethodConfig(name="t-svgp"),
        backend=BackendConfig(name="numpy"),
        seed=seed,
    )
    dataset = load_data(config.data)
    ready, model = prepare_data(config, dataset), build_model(config, dataset)
    X, y = ready.X_train, ready.y_train
    if max(problem.batch_size, inducing, checked) > len(y):
        raise UserError(
            f"problem {name!r} has {len(y)} rows: fewer than a batch, M or checked_rows needs"
        )
    theta = initial_theta(config, model, X, y)
    Z = initial_inducing(config, model, build_method("t-svgp", {}), theta, X)
    return Start(ready, model, theta._replace(inducing=Z))
