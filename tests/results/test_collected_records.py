"""Which records belong in a table, in which order, and what a reader of them is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_records import cell, identified

from svgpbench.config import BackendConfig, CellConfig, MethodConfig, SplitConfig
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment
from svgpbench.experiments.plan import Plan
from svgpbench.output.result_table import Finals
from svgpbench.results.collect import Collected, collect, collect_each
from svgpbench.results.records import Record, read_record, write_record
from svgpbench.results.store import records_by_experiment

METHODS = {"A": "t-svgp", "B": "sgpr", "Z": "q-svgp"}
EXPERIMENT = Experiment.model_validate(
    {
        "name": "by-hand",
        "backends": ["torch:compile", "jax", "numpy"],
        "problems": [
            {"data": [{"name": "yacht"}], "likelihood": {"name": "gaussian"}},
            {"data": [{"name": "boston"}, {"name": "airfoil"}], "likelihood": {"name": "gaussian"}},
        ],
        "methods": [{"name": "q-svgp", "label": "Z"}, {"name": "t-svgp", "label": "A"}],
    }
)


def plan(*configs: CellConfig) -> Plan:
    return Plan(EXPERIMENT, configs)


def stored(folder: Path, *configs: CellConfig, **of_record: Any) -> list[CellConfig]:
    """Records of cells under their ids."""
    for config in configs:
        write_record(folder, identified(config, -1.0, **of_record))
    return list(configs)


def rows(found: Collected) -> list[tuple[object, ...]]:
    def of(r: Record) -> tuple[object, ...]:
        c = r.config
        return (c.data.name, c.method.title, c.backend.title, c.split.seed, c.split.fold, c.seed)

    return [of(r) for r in found.records]


def test_rows_come_in_the_order_of_the_experiment_and_strangers_last(tmp_path: Path) -> None:
    methods = {label: MethodConfig(name=n, label=label) for label, n in METHODS.items()}
    of_data = [cell(data) for data in ("airfoil", "boston", "sonar")]
    stored(
        tmp_path,
        *(each.model_copy(update={"method": m}) for each in of_data for m in methods.values()),
    )
    found = collect(tmp_path, EXPERIMENT)
    names = ("boston", "airfoil", "sonar")  # as the file has them, and what it lacks
    assert [row[:2] for row in rows(found)] == [(d, m) for d in names for m in ("Z", "A", "B")]
    table = Finals().build(found).frame
    assert list(zip(table["data"], table["method"], strict=True)) == [x[:2] for x in rows(found)]


def test_backends_come_as_the_experiment_names_them_then_splits_folds_and_seeds(
    tmp_path: Path,
) -> None:
    stored(
        tmp_path,
        *(cell(backend=b) for b in ("jax", "numpy", "torch:compile", "torch")),
        cell(fold=1, backend="torch"),
        cell(fold=2, backend="jax"),
        cell(fold=1, backend="jax", seed=1),
        cell(fold=1, backend="jax"),
    )
    assert [row[2:] for row in rows(collect(tmp_path, EXPERIMENT))] == [
        ("torch", 0, 0, 0),
        ("torch", 0, 1, 0),
        ("torch:compile", 0, 0, 0),
        ("jax", 0, 0, 0),
        ("jax", 0, 1, 0),
        ("jax", 0, 1, 1),
        ("jax", 0, 2, 0),
        ("numpy", 0, 0, 0),
    ]
    # a fold says nothing of a random split
    random = [SplitConfig(kind="random", seed=seed, fold=2 - seed) for seed in (2, 1)]
    stored(tmp_path / "random", *(cell(split=split, backend="jax") for split in random))
    assert [row[3] for row in rows(collect(tmp_path / "random", EXPERIMENT))] == [1, 2]


def test_of_the_cells_that_were_to_run_those_missing_are_counted(tmp_path: Path) -> None:
    cells = [cell(fold=fold) for fold in range(5)]
    stored(tmp_path, *cells[:2], cell("boston"))
    found = collect(tmp_path, plan(*cells))
    assert (found.missing, found.notes) == (3, ("3 of 5 cells have not run",))
    assert [row[0] for row in rows(found)] == ["airfoil"] * 2  # what was not asked for stays out
    complete = collect(tmp_path, plan(*cells[:2]))
    assert (complete.missing, complete.notes) == (0, ())
    assert (collect(tmp_path, EXPERIMENT).missing, len(collect(tmp_path, EXPERIMENT).records)) == (
        0,
        3,
    )


def test_a_method_has_the_label_that_the_experiment_gives_it_today(tmp_path: Path) -> None:
    old, new = (
        cell().model_copy(update={"method": MethodConfig(name="t-svgp", label=label)})
        for label in ("old", "new")
    )
    stored(tmp_path, old)
    assert [row[1] for row in rows(collect(tmp_path, plan(old)))] == ["old"]
    assert [row[1] for row in rows(collect(tmp_path, plan(new)))] == ["new"]


def test_nothing_to_show_is_one_line(tmp_path: Path) -> None:
    for cells in (EXPERIMENT, plan(cell())):
        with pytest.raises(UserError, match=r"no records of by-hand in .*; run it first") as caught:
            collect(tmp_path, cells)
        assert "\n" not in str(caught.value)


def test_records_of_other_cells_are_named_where_a_preset_has_none(tmp_path: Path) -> None:
    run, asked = cell(), cell().model_copy(update={"backend": BackendConfig(name="torch")})
    stored(tmp_path, run)
    said = f"which has 1 of other cells, on {run.backend.title}; give --backend {run.backend.title}"
    with pytest.raises(UserError, match=said):
        collect(tmp_path, plan(asked))


def test_data_that_are_not_at_hand_keep_no_others_from_being_shown(tmp_path: Path) -> None:
    far = {"name": "far", "path": str(tmp_path / "far.csv"), "target": "y", "task": "regression"}
    declared = EXPERIMENT.model_dump(exclude_unset=True)
    declared["problems"] += ({"data": [far], "likelihood": {"name": "gaussian"}},)
    declared["presets"] = {"near": {"data": ["airfoil"]}, "all": {"data": ["airfoil", "far"]}}
    stored(tmp_path / "results", cell())
    found = collect(tmp_path / "results", Experiment.model_validate(declared))
    assert [row[0] for row in rows(found)] == ["airfoil"]


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ((), ["torch", "torch:compile", "jax"]),
        (("jax",), ["jax"]),
        (("torch",), ["torch", "torch:compile"]),
        (("torch:compile", "jax"), ["torch:compile", "jax"]),
    ],
)
def test_backends_are_kept_by_name_or_with_their_mode(
    tmp_path: Path, wanted: tuple[str, ...], kept: list[str]
) -> None:
    stored(tmp_path, *(cell(backend=b) for b in ("jax", "torch", "torch:compile")))
    assert [row[2] for row in rows(collect(tmp_path, EXPERIMENT, backends=wanted))] == kept


def test_a_mixture_is_refused_before_anything_is_shown(tmp_path: Path) -> None:
    stored(tmp_path, cell(fold=0), cell(fold=1, jitter=1e-5))
    with pytest.raises(UserError, match="airfoil, A differ in jitter"):
        collect(tmp_path, EXPERIMENT)


def test_packages_of_several_versions_are_told_each_and_no_other(tmp_path: Path) -> None:
    stored(tmp_path, cell(fold=0), versions={"numpy": "2.1", "jax": "0.6", "scipy": "1"})
    stored(tmp_path, cell(fold=1), versions={"numpy": "2.0", "jax": "0.6"})
    stored(tmp_path, cell(fold=2), versions={"numpy": "2.1", "jax": "0.7"})
    stored(tmp_path, cell(fold=3))  # of a worker that died it is not known
    assert sorted(collect(tmp_path, EXPERIMENT).notes) == [
        "records were made with jax 0.6 and 0.7",
        "records were made with numpy 2.0 and 2.1",
    ]


def test_settings_in_which_rows_differ_are_told_with_their_rows(tmp_path: Path) -> None:
    stored(
        tmp_path, cell("airfoil"), cell("boston", jitter=1e-5), cell("boston", "Z"), cell("sonar")
    )
    (note,) = collect(tmp_path, EXPERIMENT).notes
    head, _, detail = note.partition(" (")
    assert head == "rows differ in jitter"
    assert sorted(detail.rstrip(")").split("; ")) == [
        "1e-05: boston, A",
        "1e-06: airfoil, A / boston, Z and 1 more",
    ]


def test_two_rows_are_both_named(tmp_path: Path) -> None:
    stored(tmp_path, cell("airfoil"), cell("boston", jitter=1e-5), cell("boston", "Z"))
    (note,) = collect(tmp_path, EXPERIMENT).notes
    assert "1e-06: airfoil, A / boston, Z)" in note or "1e-06: airfoil, A / boston, Z;" in note


def test_a_folder_tells_what_it_leaves_out_of_an_experiment_of_the_user_too(tmp_path: Path) -> None:
    mine = {"experiment": "mine"}
    configs = [cell(seed=seed).model_copy(update=mine) for seed in (0, 1)]
    stored(tmp_path, *configs)
    path = next(iter(sorted(tmp_path.rglob("*.json"))))
    write_record(tmp_path, read_record(path).model_copy(update={"method_version": 0}))
    ((found,), left_out) = collect_each(tmp_path, records_by_experiment(tmp_path))
    assert (found.experiment, len(found.records), left_out) == ("mine", 1, [])
    (note,) = found.notes
    assert note.startswith("1 records left out: made by version 0 of ")
