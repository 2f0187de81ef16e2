"""A cell: what its identity rests on, what it refuses, what it leaves."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_cell import config, own

from svgpbench.backends import forget_changed
from svgpbench.config import (
    BackendConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    SplitConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.experiments.cell import (
    build_trainer,
    identify,
    load_data,
    prepare_data,
    run_cell,
)
from svgpbench.plugins import registries
from svgpbench_datasets import REGISTRY


def test_identity_follows_the_content_of_a_file_and_not_its_folder(tmp_path: Path) -> None:
    ids = []
    for folder, last in (("a", "9.0"), ("b", "9.0"), ("c", "8.0")):
        path = tmp_path / folder / "mine.csv"
        path.parent.mkdir()
        path.write_text(f"x,y\n1.0,2.0\n3.0,4.0\n5.0,6.5\n7.0,{last}\n")
        data = DataConfig(name="mine", path=str(path), target="y", task="regression")
        ids.append(identify(config(data=data)).cell_id)
    assert ids[0] == ids[1] != ids[2]


def test_a_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    """A notebook lives on while its table is corrected: the old records are not those of the new one."""
    path = tmp_path / "mine.csv"
    data = DataConfig(name="mine", path=str(path), target="y", task="regression")
    ids = []
    for last in ("9.0", "8.25"):
        path.write_text(f"x,y\n1.0,2.0\n3.0,4.0\n5.0,6.5\n7.0,{last}\n")
        assert load_data(data).y[-1] == float(last)
        ids.append(identify(config(data=data)).cell_id)
    assert ids[0] != ids[1]
    assert load_data(data) is load_data(data)


REGISTRY_OF_ANOTHER = """
import numpy as np
from types import SimpleNamespace
from svgpbench_datasets import Dataset

X, Y = np.arange(4.0)[:, None], np.array([2.0, 4.0, 6.5, 9.0])

class Registry:
    def names(self):
        return ["waves"]
    def describe(self, name):
        return SimpleNamespace(fingerprint=None, class_labels=None)
    def load(self, name):
        return Dataset("waves", "regression", X, Y, ("x",), "y", "here")

REGISTRY = Registry()
"""


def test_a_registry_of_another_package_that_was_edited_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "waves-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: waves\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[svgpbench.datasets]\nwaves = waves:REGISTRY\n")
    module = tmp_path / "waves.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("_loaded_here", "_codes"):
        monkeypatch.setattr(f"svgpbench.plugins.{name}", {})
    data = DataConfig(name="waves")
    ids = []
    registries.cache_clear()  # it was asked before this package came onto the path
    try:
        for last in ("9.0", "8.25"):
            module.write_text(REGISTRY_OF_ANOTHER.replace("9.0", last))
            forget_changed()
            assert load_data(data).y[-1] == float(last)
            ids.append(identify(config(data=data)).cell_id)
    finally:
        registries.cache_clear()
        sys.modules.pop("waves", None)
    assert ids[0] != ids[1]


def test_an_outcome_has_a_trace_metrics_and_the_facts_of_its_data() -> None:
    outcome = run_cell(config())
    assert outcome.status == "ok"
    assert outcome.trace["iteration"] == [1, 2]
    assert outcome.metrics["elbo"] == outcome.trace["elbo"][-1]
    know_nothing = 1.0237  # who predicts the training part's mean, 0 in these units
    assert (
        outcome.metrics["rmse"] is not None and 0.3 < outcome.metrics["rmse"] < 0.85 * know_nothing
    )
    assert outcome.data["n_train"] == 404
    assert outcome.data["dimensions"] == 13
    assert outcome.data["fingerprint"] == load_data(DataConfig(name="boston")).fingerprint


def test_float32_runs_where_a_backend_offers_it() -> None:
    single = run_cell(config(backend=BackendConfig(name="torch", dtype="float32")))
    double = run_cell(config(backend=BackendConfig(name="torch")))
    assert single.metrics["elbo"] == pytest.approx(double.metrics["elbo"], rel=1e-4)
    assert single.metrics["elbo"] != double.metrics["elbo"]
    with pytest.raises(UserError, match="offers no dtype 'float32'"):
        run_cell(config(backend=BackendConfig(name="numpy", dtype="float32")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"likelihood": LikelihoodConfig(name="bernoulli-logit")}, "is for classification"),
        ({"inducing": InducingConfig(count=405)}, "405 inducing inputs for 404 training rows"),
        (
            {"inducing": InducingConfig(count=6, gamma=400), "method": MethodConfig(name="orth")},
            "406 inducing inputs for 404 training rows",
        ),
        ({"training": TrainingConfig(batch_size=500)}, "batch_size 500 exceeds 404 rows"),
        ({"training": TrainingConfig(rows=9999)}, "training.rows 9999 exceeds 404"),
        ({"kernel": KernelConfig(lengthscale=(1.0, 2.0))}, "2 values for 13 lengthscales"),
        ({"data": DataConfig(name="bostom")}, "did you mean 'boston'"),
        ({"split": SplitConfig(fold=7)}, "fold 7 of 5"),
        ({"kernel": KernelConfig(variance=1e-7)}, "must be above 1e-06"),
    ],
)
def test_what_cannot_run_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        run_cell(config(**changes))
    assert "\n" not in str(caught.value)


def table(folder: Path, target: list[object]) -> Path:
    """30 rows of x, z and a target that repeats."""
    path = folder / "rows.csv"
    rng = np.random.default_rng(0)
    lines = [
        f"{a:.4f},{b:.4f},{target[i % len(target)]}"
        for i, (a, b) in enumerate(rng.normal(size=(30, 2)))
    ]
    path.write_text("\n".join(["x,z,y", *lines]) + "\n")
    return path


@pytest.mark.parametrize("name", ["softmax", "robust-max"])
def test_the_number_of_classes_is_the_data_s_where_it_is_not_said(
    tmp_path: Path, name: str
) -> None:
    path = table(tmp_path, ["a", "b", "c"])
    cell = own(path, "multiclass", LikelihoodConfig(name=name))
    trainer, _ = build_trainer(cell)
    assert trainer.model.latents == 3
    outcome = run_cell(cell)
    assert outcome.status == "ok"
    assert outcome.metrics["error_rate"] is not None  # labels without a pattern: of any size
    two = own(table(tmp_path, ["a", "b"]), "classification", LikelihoodConfig(name=name))
    assert build_trainer(two)[0].model.latents == 2


def test_counts_are_trained_on_as_they_are(tmp_path: Path) -> None:
    cell = own(
        table(tmp_path, [0, 3, 1]),
        "regression",
        LikelihoodConfig(name="poisson"),
        standardise_y=False,
    )
    assert run_cell(cell).status == "ok"


@pytest.mark.parametrize(
    ("target", "task", "likelihood", "message"),
    [
        (["a", "b", "c"], "multiclass", {"name": "bernoulli-probit"}, "labels 0 and 1, but row 3 holds 2"),
        (["a", "b", "c"], "multiclass", {"name": "softmax", "classes": 2}, "holds 2; set likelihood.classes"),
        ([0, 1.5], "regression", {"name": "poisson"}, "takes counts 0, 1, 2, …, but row 2 holds 1.5"),
        ([0, 1, -2], "regression", {"name": "poisson"}, "but row 3 holds -2; a count is a whole number"),
        ([0, 3], "regression", {"name": "poisson"}, "set standardise_y = false"),
        ([0, 3], "regression", {"name": "softmax"}, "'softmax' is for classification"),
        (["a", "b"], "classification", {"name": "student-t"}, "'student-t' is for regression"),
    ],
)  # fmt: skip
def test_targets_that_a_likelihood_does_not_take_are_one_line(
    tmp_path: Path, target: list[object], task: str, likelihood: dict[str, Any], message: str
) -> None:
    cell = own(table(tmp_path, target), task, LikelihoodConfig(**likelihood))
    with pytest.raises(UserError, match=message) as caught:
        run_cell(cell)
    assert "\n" not in str(caught.value)
    assert "'rows'" in str(caught.value)


def test_a_fixed_split_is_the_published_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not os.environ.get("SVGPBENCH_MIRROR"):
        pytest.skip("SVGPBENCH_MIRROR names no folder with copies of the upstream files")
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path))
    split = SplitConfig(kind="fixed", fold=3)
    data = DataConfig(name="airfoil:processed")
    outcome = run_cell(config(data=data, split=split))
    published = REGISTRY.fixed_split("airfoil:processed", 3)
    assert outcome.status == "ok"
    assert outcome.data["split_hash"] == published.hash
    assert outcome.data["n_test"] == len(published.test) == 151
    with pytest.raises(
        UserError, match="has 10 fixed splits, numbered from 0: there is no fold 10"
    ):
        run_cell(config(data=data, split=SplitConfig(kind="fixed", fold=10)))


def test_a_data_set_without_fixed_splits_is_one_line(tmp_path: Path) -> None:
    fixed = SplitConfig(kind="fixed")
    with pytest.raises(UserError, match="'boston' has no fixed splits; use split kind 'k-fold'"):
        run_cell(config(split=fixed))
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{row},{row * row}\n" for row in range(30)))
    own = DataConfig(name="mine", path=str(path), target="y", task="regression")
    with pytest.raises(UserError, match="'mine' is a file of your own and has no fixed splits"):
        run_cell(config(data=own, split=fixed))


def test_inputs_stay_as_they_are_where_that_is_wanted() -> None:
    raw = prepare_data(
        config(data=DataConfig(name="boston", standardise_x=False)),
        load_data(DataConfig(name="boston")),
    )
    scaled = prepare_data(config(), load_data(DataConfig(name="boston")))
    assert np.asarray(raw.X_train).max() == 711.0
    np.testing.assert_allclose(np.asarray(scaled.X_train).mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(raw.y_train, scaled.y_train)
    assert (
        identify(config()).cell_id
        != identify(config(data=DataConfig(name="boston", standardise_x=False))).cell_id
    )


@pytest.mark.parametrize(
    ("unit", "changes", "message"),
    [
        ((1.0, 1e-7), {"standardise_y": False}, "column 'y' .* rescale it, or set standardise_y"),
        ((1e-7, 1.0), {"standardise_x": False}, "column 'x' .* rescale it, or set standardise_x"),
        ((1e-7, 1e-7), {}, ""),
        ((1e-5, 1e-2), {"standardise_x": False, "standardise_y": False}, ""),
    ],
)
def test_raw_units_that_the_floors_of_parameters_cannot_follow_are_one_line(
    tmp_path: Path, unit: tuple[float, float], changes: dict[str, bool], message: str
) -> None:
    x = np.arange(20.0)
    rows = zip(unit[0] * x, unit[1] * np.sin(x), strict=True)
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{float(a)!r},{float(b)!r}\n" for a, b in rows))
    data = {"name": "t", "path": str(path), "target": "y", "task": "regression", **changes}
    cell = config(data=data, method={"name": "gpr"}, split={"kind": "none"})
    if not message:
        build_trainer(cell)
        return
    with pytest.raises(UserError, match=message):
        build_trainer(cell)
