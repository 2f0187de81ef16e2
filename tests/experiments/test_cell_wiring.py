"""Each setting of a cell reaches the parts of the built run that it is for, and no other part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel
from small_cell import config

from svgpbench.backends import load_backend
from svgpbench.config import (
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    OnlineConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.experiments.cell import build_trainer, load_data, prepare_data, split_rows
from svgpbench.likelihoods import likelihoods
from svgpbench.ops import Ops
from svgpbench.options import option_names
from svgpbench.training.em import Trainer
from svgpbench.tree import named_leaves
from svgpbench_datasets.splits import random_split

IONOSPHERE = DataConfig(name="ionosphere")
ONLINE = TrainingConfig(
    kind="online", batch_size=50, online=OnlineConfig(iterations=4, increment=4, rates=(0.1,))
)
CELLS = {
    "": config(training=TrainingConfig(em_iterations=2, batch_size=50)),
    "student-t": config(likelihood=LikelihoodConfig(name="student-t")),
    "probit": config(data=IONOSPHERE, likelihood=LikelihoodConfig(name="bernoulli-probit")),
    "robust-max": config(data=IONOSPHERE, likelihood=LikelihoodConfig(name="robust-max")),
    "softmax": config(data=IONOSPHERE, likelihood=LikelihoodConfig(name="softmax")),
    "two bases": config(
        method=MethodConfig(name="orth"), inducing=InducingConfig(count=6, gamma=9)
    ),
    "features": config(
        kernel=KernelConfig(name="se"), inducing=InducingConfig(count=9, functions="features")
    ),
    "se": config(kernel=KernelConfig(name="se")),
    "adam": config(
        method=MethodConfig(name="q-svgp", options={"optimiser": "adam"}),
        training=TrainingConfig(em_iterations=2, m_steps=1),
    ),
    "online": config(training=ONLINE),
}

NOWHERE: set[str] = set()
ROWS = {"train", "test", "units", "basis", "draws", "scale"}
REACHES: dict[str, tuple[str, Any, set[str]]] = {
    # the cell, another value of the setting, the parts of the run that it is to change
    "experiment": ("", "another", NOWHERE),
    "data.name": ("", "boston:no-rad", {"train", "test", "basis", "kernel θ"}),
    "data.standardise_x": ("", False, {"train", "test", "basis"}),
    "data.standardise_y": ("", False, {"train", "test", "units"}),
    "split.kind": ("", "random", ROWS),
    "split.folds": ("", 4, ROWS),
    "split.fold": ("", 1, ROWS),
    "split.seed": ("", 1, ROWS - {"draws", "scale"}),
    "split.held_out": ("", 0.1, ROWS),
    "kernel.name": ("", "se", {"model"}),
    "kernel.ard": ("", False, {"kernel θ"}),
    "kernel.init": ("", "median", {"kernel θ"}),
    "kernel.variance": ("", 2.5, {"kernel θ"}),
    "kernel.lengthscale": ("", 2.5, {"kernel θ"}),
    "likelihood.name": ("", "student-t", {"model", "likelihood θ"}),
    "likelihood.latent_mean": ("probit", "data", {"mean"}),
    "likelihood.noise_variance": ("", 0.3, {"model", "likelihood θ"}),
    "likelihood.scale": ("student-t", 0.3, {"model", "likelihood θ"}),
    "likelihood.df": ("student-t", 5.0, {"model"}),
    "likelihood.nodes": ("probit", 9, {"model"}),
    "likelihood.squash": ("probit", 0.01, {"model"}),
    "likelihood.classes": ("softmax", 3, {"model"}),
    "likelihood.epsilon": ("robust-max", 0.2, {"model"}),
    "likelihood.samples": ("softmax", 3, {"model"}),
    "likelihood.integrals": ("student-t", "adaptive", {"model"}),
    "likelihood.negative_beta": ("student-t", "raw", {"model"}),
    "inducing.count": ("", 11, {"basis"}),
    "inducing.gamma": ("two bases", 10, {"basis"}),
    "inducing.init": ("", "greedy-variance", {"basis"}),
    "inducing.functions": ("se", "features", {"basis"}),
    "inducing.width": ("features", 0.2, {"basis"}),
    "training.kind": ("online", "em", {"trainer", "settings", "basis", "growth", "rates"}),
    "training.em_iterations": ("", 3, {"settings"}),
    "training.e_steps": ("", 2, {"settings"}),
    "training.e_rate": ("", 0.5, {"settings", "rates"}),
    "training.m_steps": ("", 3, {"settings"}),
    "training.optimiser": ("student-t", "l-bfgs", {"settings"}),
    "training.m_rate": ("", 0.1, {"settings", "rates"}),
    "training.trace_every": ("", 2, {"settings"}),
    "training.batch_size": ("", 60, {"settings", "draws", "scale"}),
    "training.rows": ("", 60, {"settings", "train", "basis", "draws", "scale"}),
    "training.learn": ("", ("kernel",), {"settings", "learn"}),
    "training.joint": ("adam", True, {"settings"}),
    "training.steps": ("", "guarded", {"settings"}),
    "training.until": ("", "settled", {"settings"}),
    "training.evaluation": ("", {"count": 3}, {"settings"}),
    "training.cool_down": ("", 0.5, {"settings"}),
    "training.online.iterations": ("online", 5, {"settings"}),
    "training.online.increment": ("online", 5, {"settings", "growth", "basis"}),
    "training.online.rates": ("online", (0.2,), {"settings", "rates"}),
    "training.online.trial": ("online", 3, {"settings"}),
    "training.online.decay": ("online", 0.3, {"settings"}),
    "training.online.trace_every": ("online", 3, {"settings"}),
    "method.name": ("", "q-svgp", {"method"}),
    "method.label": ("", "another", NOWHERE),
    "method.options": ("", {"tying": "untied"}, {"method"}),
    "backend.mode": ("", "eager", NOWHERE),  # these in a test of their own
    "jitter": ("", 1e-5, {"model"}),
    "seed": ("", 1, {"basis", "draws"}),
    "perturbation": ("", 1e-3, {"train"}),
    "threads": ("", 2, NOWHERE),
    "measures": ("", True, NOWHERE),
}
ELSEWHERE = {
    "data.path", "data.target", "data.task", "data.features", "data.outputs", "data.arrays",  # of a file
    "data.groups",  # of a file: tests/datasets/test_splits.py and below
    "data.header",  # of a file: tests/datasets/test_everyday_files.py
    "data.factors",  # of a grid: names and no numbers
    "split.test_fraction",  # of a random split
    "backend.name", "backend.dtype", "backend.device",
    "kernel.parts",  # of a sum or a product
}  # fmt: skip
"""Settings that tests of their own follow."""


def settings_of(model: BaseModel, prefix: str = "") -> Iterator[str]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from settings_of(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def changed(cell: CellConfig, key: str, value: Any) -> CellConfig:
    whole = cell.model_dump()
    *folders, name = key.split(".")
    inner = whole
    for folder in folders:
        inner = inner[folder]
    inner[name] = value
    return CellConfig.model_validate(whole)


def parts(run: Trainer) -> dict[str, list[Any]]:
    """What a built run holds, in parts that can be compared."""
    d, theta = run.data, run.theta(run.state)
    # the draws of a run that starts with one: those that follow it
    rows = run.batches.sample()
    return {
        "train": [np.asarray(d.X), d.y],
        "test": [np.asarray(d.X_test), d.y_test],
        "units": [d.y_scale],
        "kernel θ": list(theta.kernel),
        "likelihood θ": [type(theta.likelihood), *theta.likelihood],
        "mean": list(np.ravel(theta.mean)),
        "basis": [x for _, x in named_leaves(theta.inducing)],
        "draws": [rows],
        "model": [run.model],
        "method": [run.method],
        "settings": [run.settings],
        "learn": [run.learn],
        "scale": [float(run.scale)],
        "rates": [float(run.e_rate(1)), float(run.m_rate), run.state.online_rate],
        "growth": [getattr(run, "growth", None)],
        "trainer": [type(run)],
    }


def differences(one: CellConfig, other: CellConfig) -> set[str]:
    ours, theirs = (parts(build_trainer(each)[0]) for each in (one, other))
    return {name for name in ours if not _equal(ours[name], theirs[name])}


def _equal(ours: list[Any], theirs: list[Any]) -> bool:
    return len(ours) == len(theirs) and all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(ours, theirs, strict=True)
    )


def test_the_table_has_every_setting_of_a_cell() -> None:
    """A new setting: say here, or in a test of its own, which part of a run it reaches."""
    ours = [cls for cls in likelihoods().values() if cls.__module__.startswith("svgpbench.")]
    options = {f"likelihood.{option}" for cls in ours for option in option_names(cls)}
    assert {*settings_of(CELLS[""]), *options} == REACHES.keys() | ELSEWHERE


@pytest.mark.parametrize("key", REACHES)
def test_a_setting_reaches_its_parts_and_no_other(key: str) -> None:
    name, value, reached = REACHES[key]
    cell = CELLS[name]
    other = changed(cell, key, value)
    assert other != cell
    assert differences(cell, other) == reached
    assert differences(other, other) == set()


def test_groups_of_a_file_decide_its_split(tmp_path: Path) -> None:
    file = tmp_path / "sites.csv"
    rows = np.random.default_rng(0).normal(size=(60, 2))
    sites = [f"{i % 7}" for i in range(60)]
    lines = [f"{site},{x},{y}" for site, (x, y) in zip(sites, rows, strict=True)]
    file.write_text("\n".join(["site,x,y", *lines]))
    data = DataConfig(name="sites", path=str(file), target="y", task="regression", groups="site")
    dataset = load_data(data)
    assert dataset.feature_names == ("x",)
    tests = {}
    for kind in ("groups", "blocks", "column", "k-fold"):
        how = CELLS[""].split.model_copy(update={"kind": kind, "folds": 3, "fold": 1})
        split = split_rows(data, how, 60, dataset.groups)
        cell = CELLS[""].model_copy(update={"data": data, "split": how})
        assert prepare_data(cell, dataset).split_hash == split.hash
        tests[kind] = split.test
    assert {sites[row] for row in tests["groups"]}.isdisjoint(
        sites[row] for row in set(range(60)) - set(tests["groups"])
    )
    assert tests["blocks"].tolist() == list(range(20, 40))
    assert {sites[row] for row in tests["column"]} == {"1"}
    with pytest.raises(UserError, match="'groups' needs a column of groups"):
        split_rows(data, CELLS[""].split.model_copy(update={"kind": "groups"}), 60)


def test_the_test_fraction_is_that_of_a_random_split() -> None:
    cell = changed(CELLS[""], "split.kind", "random")
    for fraction, count in ((0.1, 51), (0.3, 152)):
        run, ready = build_trainer(changed(cell, "split.test_fraction", fraction))
        assert (len(run.data.y_test), len(ready.y_test), len(run.data.y)) == (
            count,
            count,
            506 - count,
        )


def test_a_random_split_is_that_of_its_seed() -> None:
    cell = changed(CELLS[""], "split.kind", "random")
    found = [
        split_rows(cell.data, changed(cell, "split.seed", seed).split, 100).test for seed in (0, 3)
    ]
    for seed, test in zip((0, 3), found, strict=True):
        assert np.array_equal(test, random_split(100, cell.split.test_fraction, seed).test)
    assert not np.array_equal(*found)


def test_the_backend_is_loaded_with_its_mode_dtype_and_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    def load(*words: str) -> Ops:
        asked.append(words)
        return load_backend("numpy")

    monkeypatch.setattr("svgpbench.experiments.cell.load_backend", load)
    backend = {"name": "torch", "mode": "compile", "dtype": "float32", "device": "cuda"}
    build_trainer(CellConfig.model_validate(CELLS[""].model_dump() | {"backend": backend}))
    assert ("torch", "compile", "float32", "cuda") in asked
    assert set(asked) <= {
        ("torch", "compile", "float32", "cuda"),
        ("numpy",),
    }  # bases start on NumPy


def test_the_run_is_on_the_backend_that_was_loaded() -> None:
    run, _ = build_trainer(CELLS[""])
    assert run.ops is load_backend("numpy", "", "float64", "cpu")


def trace(cell: CellConfig) -> list[dict[str, Any]]:
    run = build_trainer(cell)[0].run()
    assert run.status == "ok"
    return [{k: v for k, v in point.items() if k != "seconds"} for point in run.trace]


EM = config(
    inducing=InducingConfig(count=5, init="random"),
    training=TrainingConfig(em_iterations=4, e_steps=2, e_rate=0.6, m_steps=2, m_rate=0.05),
)
DECIDES_WHICH = {
    "training.online.trial",  # which of several rates
    "training.until",  # when a longer run ends: tests/training/test_settled.py
}  # these have tests of their own


@pytest.mark.parametrize(
    "key", [key for key in REACHES if key.startswith("training.") and key not in DECIDES_WHICH]
)
def test_every_setting_of_training_shows_in_the_numbers(key: str) -> None:
    name, value, _ = REACHES[key]
    cell = CELLS[name] if name in ("online", "adam") else EM
    value = {"training.trace_every": 3, "training.e_steps": 3}.get(key, value)
    assert trace(changed(cell, key, value)) != trace(cell)


def test_the_run_holds_both_parts_of_the_split_each_in_its_place() -> None:
    run, ready = build_trainer(CELLS[""])
    raw = load_data(DataConfig(name="boston"))
    split = split_rows(CELLS[""].data, CELLS[""].split, len(raw.y))
    mean, scale = raw.y[split.train].mean(), raw.y[split.train].std()
    middle, spread = raw.X[split.train].mean(axis=0), raw.X[split.train].std(axis=0)
    for X, y, rows in (
        (run.data.X, run.data.y, split.train),
        (run.data.X_test, run.data.y_test, split.test),
    ):
        np.testing.assert_allclose(
            np.asarray(X), (raw.X[rows] - middle) / spread, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(y, (raw.y[rows] - mean) / scale, rtol=0, atol=1e-12)
    assert run.data.y_scale == ready.y_scale == pytest.approx(scale, rel=1e-14)


def test_a_subset_of_rows_keeps_inputs_and_targets_together_and_tests_on_all() -> None:
    whole, _ = build_trainer(CELLS[""])
    run, _ = build_trainer(changed(CELLS[""], "training.rows", 60))
    assert (run.data.X.shape[0], run.data.y.shape[0]) == (60, 60)
    table = {tuple(x): y for x, y in zip(np.asarray(whole.data.X), whole.data.y, strict=True)}
    assert [table[tuple(x)] for x in np.asarray(run.data.X)] == list(run.data.y)
    np.testing.assert_array_equal(np.asarray(run.data.X_test), np.asarray(whole.data.X_test))
    another, _ = build_trainer(changed(changed(CELLS[""], "training.rows", 60), "seed", 1))
    assert not np.array_equal(another.data.y, run.data.y)
