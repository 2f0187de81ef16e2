"""A stranger's backend without autodiff and method, from the docs alone: no line of the core is theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from installed import HERE, Place

from svgpbench.checks.identities import IDENTITIES
from svgpbench.results.records import Record, read_record, record_files

WAVES = """
name = "waves"
backends = ["numpy", "slate"]
inducing = { count = 10 }
training = { em_iterations = 3, m_steps = 2 }
split = { kind = "k-fold", folds = 5, run_folds = [0] }
problems = [{ data = ["airfoil"], likelihood = { name = "gaussian" } }]
methods = [{ name = "t-svgp" }, { name = "mean-field" }]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    there = Place(tmp_path_factory.mktemp("stranger"), HERE / "slate")
    (there.folder / "waves.toml").write_text(WAVES)
    (there.folder / "still.toml").write_text(WAVES.replace("m_steps = 2", "m_steps = 0"))
    return there


@pytest.fixture(scope="module")
def report(place: Place) -> dict[str, Any]:
    found: Any = place.json("check", "--backend", "slate")
    assert isinstance(found, dict)
    return found


def compared(report: dict[str, Any], dtype: str) -> set[str]:
    return {row["case"] for row in report["matrix"] if row["case"].endswith(dtype)}


def test_its_float64_rows_are_filled_and_float32_is_skipped_by_name(report: dict[str, Any]) -> None:
    assert report["ok"] is True and report["failures"] == []
    pairs = {tuple(row["pair"]) for row in report["matrix"] if row["group"] == "values"}
    assert pairs == {("numpy", "slate")}
    assert any(case.startswith("t-svgp tied-projected") for case in compared(report, "float64"))
    assert not compared(report, "float32")
    of_float32 = {skip["why"] for skip in report["skipped"] if skip["what"].endswith("float32")}
    assert of_float32 == {"it offers float64 alone"}


def test_what_needs_autodiff_is_skipped_and_closed_forms_are_compared(
    report: dict[str, Any],
) -> None:
    groups = {
        method: {x["group"] for x in report["matrix"] if x["case"].startswith(f"{method} |")}
        for method in ("t-svgp tied-projected", "mean-field", "q-svgp natgrad autodiff")
    }
    steps = {"values", "e_step", "e_trajectory"}
    assert groups["t-svgp tied-projected"] == steps | {"gradients", "m_trajectory", "dense"}
    assert groups["mean-field"] == steps
    assert groups["q-svgp natgrad autodiff"] == {"dense"}
    on_slate = {x["name"] for x in report["identities"] if x["backend"] == "slate"}
    left_out = {x["what"] for x in report["skipped"] if x["what"].startswith("identity")}
    assert {
        "inducing at data gives gpr",
        "tyings agree at fixed theta",
        "coupled inside decoupled",
        "whitening keeps values",
    } <= on_slate
    assert left_out == {f"identity {n}" for n in set(IDENTITIES) - on_slate}
    assert report["rounding"]


@pytest.fixture(scope="module")
def records(place: Place) -> list[Record]:
    for file in ("waves.toml", "still.toml"):
        done = place.run("run", file, "--jobs", "1", "--results", file.removesuffix(".toml"))
        assert done.returncode == 0, done.stdout + done.stderr
    return [read_record(x) for x in record_files(place.folder / "waves")]


def test_closed_form_training_equals_numpy_and_the_rest_is_skipped(records: list[Record]) -> None:
    of = {(x.config.method.name, x.config.backend.name): x for x in records}
    ours, theirs = (of["t-svgp", backend].trace for backend in ("numpy", "slate"))
    assert theirs["elbo"] == pytest.approx(ours["elbo"], rel=1e-10)
    assert len(theirs["elbo"]) == 3
    without = of["mean-field", "slate"]
    assert without.status == "skipped"
    assert without.message.startswith("backend 'slate' has no autodiff")
    assert of["mean-field", "numpy"].status == "ok"


def test_e_steps_alone_run_without_autodiff_and_a_table_shows_both(
    place: Place, records: list[Record]
) -> None:
    still = [read_record(x) for x in record_files(place.folder / "still")]
    assert {(x.config.method.name, x.config.backend.name) for x in still if x.status == "ok"} == {
        (method, backend) for method in ("t-svgp", "mean-field") for backend in ("numpy", "slate")
    }
    printed = place.run("table", "still.toml", "--results", "still")
    assert printed.returncode == 0, printed.stderr
    assert "mean-field" in printed.stdout
    printed = place.run("table", "waves.toml", "--results", "waves")
    assert printed.returncode == 0, printed.stderr


@pytest.mark.long
def test_its_steps_are_timed_and_those_that_need_autodiff_refused(place: Place) -> None:
    asked = [
        "speed",
        "--problem",
        "tiny",
        "--repeats",
        "1",
        "--max-other-cores",
        "99",
        "--no-floor",
    ]
    backends = ["--backend", "numpy", "--backend", "slate"]
    methods = ["--method", "t-svgp", "--method", "mean-field"]
    steps = ["--step", "e_step", "--step", "m_step"]
    done = place.run(*asked, *backends, *methods, *steps, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    cells = {(x["source"], x["method"], x["step"]): x for x in json.loads(done.stdout)["cells"]}
    refused = {key for key, x in cells.items() if x["refused"]}
    assert refused == {("slate", "mean-field", "m_step")}
    assert all(x["seconds"] for key, x in cells.items() if key not in refused)
    assert cells["slate", "t-svgp", "m_step"]["difference"] < 1e-6


def test_what_ran_is_recorded(records: list[Record]) -> None:
    for record in records:
        assert record.environment is not None
        assert record.environment.versions["slate"] == "0.7"


def test_it_is_listed(place: Place) -> None:
    listed: Any = place.json("list")
    (backend,) = [row for row in listed["backends"] if row["name"] == "slate"]
    assert (backend["installed"], backend["version"]) == (True, "0.7")
    assert "mean-field" in {row["name"] for row in listed["methods"]}
