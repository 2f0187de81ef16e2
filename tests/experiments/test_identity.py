"""The id of a cell: every field that determines numbers moves it, and nothing else does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import small_cell
from pydantic import BaseModel

from svgpbench.backends import load_backend
from svgpbench.config import (
    BackendConfig,
    CellConfig,
    DataConfig,
    Decay,
    EvaluationPlan,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    LogLinear,
    MethodConfig,
    OnlineConfig,
    SplitConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import identify, load_data
from svgpbench.experiments.identity import (
    SHOWN_ONLY,
    cell_id,
    completed,
    essential,
    identity_of,
    likelihood_keys,
    method_options,
    same_cell,
)
from svgpbench.initialization.inducing_inputs import KMeans
from svgpbench.kernels.kernels import Matern52
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods.dual import DualSVGP

METHODS = [
    "t-svgp",
    "q-svgp",
    "t-vgp",
    "q-vgp",
    "gpr",
    "sgpr",
    "decoupled",
    "hybrid",
    "orth",
    "diagonal-precision",
]
OTHERS = {
    "method.name": "hybrid",  # names must exist for an id to be made
    "likelihood.name": "poisson",
    "kernel.name": "se",
    "kernel.parts": (KernelConfig(), KernelConfig(name="se")),
    "inducing.init": "random",
    "data.features": ("a", "b"),
    "data.outputs": ("a", "b"),
    "data.arrays": ("a", "b"),
    **{f"likelihood.{key}": 0.25 for key in ("noise_variance", "scale", "df", "squash", "epsilon")},
    **{f"likelihood.{key}": 7 for key in ("nodes", "classes", "samples")},
    "training.batch_size": 7,
    "inducing.gamma": 7,
}
DEFAULTS = Path(__file__).parent / "defaults.json"


def config(**changes: Any) -> CellConfig:
    default = {"inducing": InducingConfig(), "training": TrainingConfig()}
    return small_cell.config(**(default | changes))


def whole(cell: CellConfig) -> CellConfig:
    return completed(cell, load_data(DataConfig(name="boston")))


def id_of(cell: CellConfig) -> str:
    return cell_id(cell, "fingerprint", 1)


def fields(model: BaseModel, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every field of a configuration that holds a value, with that value."""
    for name, value in model:  # the options of what it names too
        if isinstance(value, BaseModel):
            yield from fields(value, (*path, name))
        elif isinstance(value, dict):
            yield from (((*path, name, key), inner) for key, inner in value.items())
        else:
            yield (*path, name), value


def replaced(model: BaseModel, path: tuple[str, ...], value: Any) -> Any:
    """The configuration with another value in one field, whatever validation would say."""
    name, *rest = path
    inner = getattr(model, name)
    if rest and isinstance(inner, dict):
        value = inner | {rest[0]: value}
    elif rest:
        value = replaced(inner, tuple(rest), value)
    return model.model_copy(update={name: value})


def another(path: tuple[str, ...], value: Any) -> Any:
    """A value of a field that it does not have."""
    dotted = ".".join(path)
    if dotted in OTHERS and value != OTHERS[dotted]:
        return OTHERS[dotted]
    if dotted in ("method.name", "likelihood.name"):
        return {"hybrid": "orth", "poisson": "gaussian"}[value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + type(value)(1)
    return (*value, *value) if isinstance(value, tuple) else f"{value}x"


RISE, FALL = LogLinear(start=0.01, end=1.0, steps=3), Decay(start=0.5)
CELLS = {
    "plain": config(),
    "rising rate": config(training=TrainingConfig(e_rate=RISE)),
    "falling rate": config(training=TrainingConfig(e_rate=FALL)),
    "sum": config(kernel=KernelConfig(name="sum", parts=(KernelConfig(), KernelConfig(name="se")))),
    "online": config(training=TrainingConfig(kind="online", online=OnlineConfig())),
    "evaluated": config(training=TrainingConfig(evaluation=EvaluationPlan(count=4, test_rows=9))),
    "a file": config(data=DataConfig(name="mine", path="a.csv", target="y", task="regression")),
    **{f"method {name}": config(method=MethodConfig(name=name)) for name in METHODS},
    **{
        f"likelihood {name}": config(likelihood=LikelihoodConfig(name=name))
        for name in likelihoods()
    },
}


# the values are of any type
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", CELLS)
def test_every_field_that_determines_numbers_moves_the_id(name: str) -> None:
    cell = whole(CELLS[name])
    home, walked, unmoved = id_of(cell), set(), set()
    for path, value in fields(cell):
        walked.add(path)
        other = replaced(cell, path, another(path, value))
        if id_of(other) == home:
            unmoved.add(path)
            assert same_cell(cell, other)
        else:
            assert not same_cell(cell, other)
    assert unmoved == {(part, key) for part, keys in SHOWN_ONLY.items() for key in keys}
    assert len(walked) > 50


def test_an_option_that_came_later_leaves_the_cell_as_it_was() -> None:
    cell = whole(config(method=MethodConfig(name="q-svgp")))
    options = dict(cell.method.options)
    del options["residual_variance"]
    older = cell.model_copy(update={"method": cell.method.model_copy(update={"options": options})})
    assert same_cell(older, cell) and same_cell(cell, older)
    options["whiten"] = not options["whiten"]
    changed = cell.model_copy(
        update={"method": cell.method.model_copy(update={"options": options})}
    )
    assert not same_cell(changed, cell)


def test_every_part_of_a_sum_moves_the_id_and_a_default_in_it_does_not() -> None:
    def of(**changes: Any) -> str:
        parts = (KernelConfig(), KernelConfig(**{"name": "se"} | changes))
        return id_of(whole(config(kernel=KernelConfig(name="sum", parts=parts))))

    assert of(variance=1.0) == of() != of(variance=2.0)
    assert len({of(), of(name="matern32"), of(ard=False), of(lengthscale=0.5)}) == 4


def test_what_does_not_determine_numbers_is_names_and_a_folder() -> None:
    assert {"method": {"label"}, "data": {"path", "factors"}} == SHOWN_ONLY


def test_a_default_that_is_spelled_out_is_the_same_cell() -> None:
    spelled = config(
        likelihood=LikelihoodConfig(name="bernoulli-probit", squash=0.0, nodes=20),
        method=MethodConfig(name="q-svgp", options=method_options("q-svgp")),
        training=TrainingConfig(em_iterations=20, e_rate=1.0, online=OnlineConfig(trial=100)),
    )
    left_out = config(
        likelihood=LikelihoodConfig(name="bernoulli-probit"), method=MethodConfig(name="q-svgp")
    )
    assert identify(spelled).cell_id == identify(left_out).cell_id
    assert identify(spelled).config == identify(left_out).config


def test_the_number_of_classes_is_that_of_the_data_whether_it_is_said_or_not() -> None:
    dataset = load_data(DataConfig(name="sonar"))
    ids = {
        identity_of(config(likelihood=LikelihoodConfig(name="softmax", **said)), dataset).cell_id
        for said in ({}, {"classes": 2})
    }
    assert len(ids) == 1
    other = LikelihoodConfig(name="softmax", classes=3)
    assert identity_of(config(likelihood=other), dataset).cell_id not in ids


@pytest.mark.parametrize("name", CELLS)
def test_a_complete_configuration_can_be_read_back_and_built(name: str) -> None:
    cell = whole(CELLS[name])
    read = CellConfig.model_validate_json(cell.model_dump_json())
    assert read == cell
    assert whole(read) == cell
    assert id_of(read) == id_of(cell)
    build_likelihood(read.likelihood)  # refuses a key that it does not have
    assert set(read.method.options) == set(method_options(read.method.name))


class LaterKernel(KernelConfig):
    """A kernel of a later version, which can do more."""

    roughness: float = 1.0


class LaterTraining(TrainingConfig):
    """The same of training, in a table within it."""

    warm_up: RISE.__class__ | None = None  # type: ignore[name-defined]


class LaterCell(CellConfig):
    """The same of a cell."""

    kernel: LaterKernel
    training: LaterTraining
    precision: int = 0


def test_a_field_that_is_added_later_moves_no_id() -> None:
    cell = whole(config())
    later = LaterCell.model_validate(cell.model_dump())
    assert id_of(later) == id_of(cell)
    for path, value in (
        (("kernel", "roughness"), 2.0),
        (("precision",), 1),
        (("training", "warm_up"), RISE),
    ):
        assert id_of(replaced(later, path, value)) != id_of(cell)


@dataclasses.dataclass(frozen=True)
class LaterDual(DualSVGP):
    """The method of a later version, with one more option."""

    momentum: float = 0.0
    version: ClassVar[int] = DualSVGP.version


def test_an_option_that_is_added_later_moves_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(config())

    monkeypatch.setattr("svgpbench.methods.registry.load", lambda *_: LaterDual)
    after = identify(config())
    assert after.config.method.options == before.config.method.options | {"momentum": 0.0}
    assert after.cell_id == before.cell_id
    # and the record of before is still one of the same cell
    options = {"momentum": 0.5}
    assert (
        identify(config(method=MethodConfig(name="t-svgp", options=options))).cell_id
        != after.cell_id
    )


@dataclasses.dataclass(frozen=True)
class LaterMatern52(Matern52):
    """The kernel of a later version, with an option."""

    roughness: float = 1.0


@dataclasses.dataclass(frozen=True)
class LaterKMeans(KMeans):
    """The same of a way to choose inducing inputs."""

    roughness: float = 1.0


@pytest.mark.parametrize(
    ("part", "module", "later"),
    [
        ("kernel", "kernels.kernels", LaterMatern52),
        ("inducing", "initialization.inducing_inputs", LaterKMeans),
    ],
)
def test_an_option_of_a_part_that_is_added_later_moves_no_id(
    part: str, module: str, later: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identify(config())
    monkeypatch.setattr(f"svgpbench.{module}.load", lambda *_: later)
    after = identify(config())
    assert getattr(after.config, part).options == {"roughness": 1.0}
    assert after.cell_id == before.cell_id
    rough = getattr(config(), part).model_copy(update={"roughness": 2.0})
    assert identify(config(**{part: rough})).cell_id != before.cell_id


def test_a_cell_is_named_by_the_version_that_its_method_has_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("svgpbench.experiments.identity.version_of", lambda cell: 7)
    found = identity_of(config(), load_data(config().data))
    assert found.method_version == 7
    assert found.cell_id == cell_id(found.config, found.fingerprint, 7)


def test_data_and_the_version_of_the_method_move_the_id() -> None:
    cell = whole(config())
    ids = {cell_id(cell, data, version) for data in ("a", "b") for version in (1, 2)}
    assert len(ids) == 4


def test_an_id_takes_no_files_of_a_data_set_whose_numbers_are_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mnist = config(data=DataConfig(name="mnist"), likelihood=LikelihoodConfig(name="softmax"))
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path))
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)
    found = identify(mnist)
    assert found.fingerprint.startswith("sha256:7e41beae746e1ddb")
    assert found.config.likelihood.options["classes"] == 10
    small = config(data=DataConfig(name="boston"))
    assert identify(small) == identity_of(small, load_data(small.data))


def test_an_id_names_what_it_always_named() -> None:
    """Records lie under these names: where this fails, every record would have to be migrated."""
    assert essential(whole(config())) == {
        "experiment": "test",
        "data": {"name": "boston"},
        "split": {},
        "kernel": {},
        "likelihood": {"name": "gaussian"},
        "inducing": {},
        "training": {},
        "method": {"name": "t-svgp", "options": {}},
        "backend": {"name": "numpy"},
    }
    assert id_of(whole(config())) == PINNED_ID


PINNED_ID = "ebbd03f173cd2799"


def defaults() -> dict[str, Any]:
    """All that an id leaves out where it is as usual."""
    parts = {
        model.__name__: model().model_dump(mode="json")
        for model in (SplitConfig, KernelConfig, InducingConfig, TrainingConfig)
    }
    optional = ("jitter", "seed", "threads", "perturbation", "measures")
    return parts | {
        "CellConfig": {key: getattr(config(), key) for key in optional},
        "DataConfig": DataConfig(name="").model_dump(mode="json"),
        "BackendConfig": BackendConfig(name="").model_dump(mode="json"),
        "methods": {name: method_options(name) for name in METHODS},
        "likelihoods": {
            name: likelihood_keys(LikelihoodConfig(name=name)).model_dump(exclude_none=True)
            for name in likelihoods()
        },
        "modes": {
            name: load_backend(name).mode for name in ("numpy", "jax", "torch", "tensorflow")
        },
    }


def assert_kept(before: Any, now: Any, where: str = "") -> None:
    """That all of `before` stands as it was; there may be more."""
    if isinstance(before, dict):
        for key, value in before.items():
            assert key in now, f"{where}.{key} is gone"
            assert_kept(value, now[key], f"{where}.{key}")
    else:
        assert now == before, f"the default of {where} was {before}"


def test_no_default_has_changed() -> None:
    """An id leaves defaults out, so an older record would pass for one made with the new default."""
    now = json.loads(json.dumps(defaults()))
    assert_kept(json.loads(DEFAULTS.read_text()), now)
    assert now == json.loads(DEFAULTS.read_text()), f"new keys: write them into {DEFAULTS.name}"
