"""What experiment files resolve to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from another_paper import fifth_paper
from own_experiment import write_own

from svgpbench.config import CellConfig, Decay, LogLinear, OnlineConfig, TrainingConfig
from svgpbench.errors import UserError
from svgpbench.experiments import (
    Experiment,
    Selection,
    load_experiment,
    resolve,
    shipped_experiments,
)
from svgpbench.experiments.cell import identify, load_data
from svgpbench.experiments.resolve import overlay, shown_names
from svgpbench.experiments.validation import checked_plan

AUTHORS_RAN = {"airfoil", "boston:no-rad", "concrete:5", "sonar", "ionosphere", "pima"}


def fig3(preset: str | None = None, **selection: object) -> list[CellConfig]:
    return resolve(load_experiment("adam2021-fig3"), preset, Selection(**selection))  # type: ignore[arg-type]


def test_fig3_at_paper_size_is_6_sets_5_folds_5_methods_3_backends_and_replicas() -> None:
    cells = fig3("paper")
    plain = [cell for cell in cells if not cell.perturbation]
    replicas = [cell for cell in cells if cell.perturbation]
    assert len(plain) == 6 * 5 * 5 * 3
    assert len(replicas) == 6 * 5 * 5
    assert {cell.data.name for cell in plain} == AUTHORS_RAN
    assert {(cell.backend.name, cell.perturbation) for cell in replicas} == {("jax", 1e-15)}


def test_fig3_has_five_starts_a_split_and_replicas_of_the_first() -> None:
    cells = fig3("starts")
    plain = [cell for cell in cells if not cell.perturbation]
    assert len(plain) == 6 * 5 * 5 * 5
    assert {cell.seed for cell in plain} == {0, 1, 2, 3, 4}
    assert {cell.seed for cell in cells if cell.perturbation} == {0}
    assert len(cells) == len(plain) + 6 * 5 * 5


def test_fig3_is_quick_unless_told_otherwise_and_quick_cells_are_cells_of_the_paper() -> None:
    quick = fig3()
    assert len(quick) == 6 * 2 * 3 * 3
    paper = fig3("paper")
    assert all(cell in paper for cell in quick)


def test_fig3_has_the_settings_of_the_paper() -> None:
    for cell in fig3("paper"):
        training, kernel = cell.training, cell.kernel
        assert (kernel.name, kernel.ard, kernel.variance) == ("matern52", True, 1.0)
        assert (cell.inducing.count, cell.inducing.init, cell.jitter) == (50, "k-means", 1e-6)
        assert (training.em_iterations, training.m_steps, training.m_rate) == (20, 15, 0.2)
        assert training.batch_size is None
        regression = cell.likelihood.name == "gaussian"
        options = dict(cell.likelihood.options)
        assert options.pop("integrals") == (
            "adaptive" if regression else "fixed"
        )  # a closed form has none
        assert options == ({"noise_variance": 1.0} if regression else {})
        if cell.method.title != "q-SVGP Adam (fair)":
            assert (training.e_steps, training.e_rate) == ((1, 1.0) if regression else (8, 0.7))


def test_a_name_selects_each_output_of_a_table_unless_it_is_a_data_sets_own(tmp_path: Path) -> None:
    own = '{ name = "arm", path = "rows.csv", target = ["y", "z"], task = "regression" }'
    registered = '"kuka", "kuka@torque2"'
    file = write_own(
        tmp_path,
        (
            '{ name = "rows", path = "rows.csv", target = "y", task = "regression" }',
            f"{own}, {registered}",
        ),
        ("run_folds = [0, 1]", "run_folds = [0]"),
        ('name = "t-svgp"\n', 'name = "t-svgp"\n[presets.arms]\ndata = ["arm"]\n'),
    )
    experiment = load_experiment(str(file))
    assert [cell.data.name for cell in resolve(experiment, "arms")] == ["arm@y", "arm@z"]
    for name, expected in (
        ("arm", ["arm@y", "arm@z"]),
        ("arm@z", ["arm@z"]),
        ("kuka", ["kuka"]),
        ("kuka@torque2", ["kuka@torque2"]),
    ):
        cells = resolve(experiment, "arms", Selection(data=(name,)))
        assert [cell.data.name for cell in cells] == expected
    with pytest.raises(UserError, match="data set of mine 'arn'; did you mean 'arm'"):
        resolve(experiment, None, Selection(data=("arn",)))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('task = "regression", typo = 1', "unknown key 'typo' in [[problems]] no. 1: data no. 2;"),
        ('task = "regresion"', "data no. 2.task must be 'regression', 'classification' or"),
        ('header = true', "data no. 2: data 'b' has a path, so it needs `target` and `task` too"),
    ],
)  # fmt: skip
def test_a_mistake_after_a_table_of_several_targets_is_found_in_its_place(
    tmp_path: Path, wrong: str, says: str
) -> None:
    """The table is one in the file, and a data set for each target where it is checked."""
    good = 'name = "arm", path = "rows.csv", target = ["y", "z"], task = "regression"'
    last = 'name = "rows", path = "rows.csv", target = "y", task = "regression"'
    for entries in (last, f"{last} }}, {{ {last.replace('rows', 'c', 1)}"):
        two = f'{good} }}, {{ name = "b", path = "rows.csv", target = "y", {wrong}'
        file = write_own(tmp_path, (last, entries.replace(last, two, 1)))
        with pytest.raises(UserError, match=re.escape(says)):
            load_experiment(str(file))


def test_each_file_of_a_grid_is_checked_whatever_its_name(tmp_path: Path) -> None:
    entry = '{ name = "rows", path = "rows.csv", target = "y", task = "regression"'
    both = [f"{entry}, factors = {{ N = {N} }} }}" for N in (40, 8)]
    grid = ", ".join(both).replace("rows.csv", "few.csv").replace("few.csv", "rows.csv", 1)
    file = write_own(tmp_path, (f"{entry} }}", grid), ("count = 5", "count = 7"))
    lines = (tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "few.csv").write_text("".join(lines[:9]))
    with pytest.raises(UserError, match=r"inducing\.count = 7 is more than the 6 training rows"):
        checked_plan(str(file), None)


def test_a_method_is_selected_in_any_case_and_a_preset_has_its_labels_exactly(
    tmp_path: Path,
) -> None:
    two = 'label = "gp"\nname = "MyMethod"\n[[methods]]\nlabel = "GP"\nname = "t-svgp"\n'
    preset = '[presets.one]\nmethods = ["gp"]\n'
    file = write_own(tmp_path, ('label = "t-SVGP"\nname = "t-svgp"\n', two + preset))
    experiment = load_experiment(str(file))

    def selected(preset: str | None, *methods: str) -> set[str]:
        return {
            cell.method.name for cell in resolve(experiment, preset, Selection(methods=methods))
        }

    assert selected("one") == {"MyMethod"}
    assert selected(None, "gp") == selected(None) == {"MyMethod", "t-svgp"}
    assert selected(None, "MyMethod") == selected(None, "mymethod") == {"MyMethod"}
    assert selected(None, "T-SVGP") == {"t-svgp"}


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"backends": "numpy"}, "backends are one text 'numpy'; give a list of names"),
        ({"methods": "t-svgp"}, "methods are one text 't-svgp'; give a list of names"),
        ({"seeds": [0, -1]}, "seed -1: give whole numbers, 0 or more"),
        ({"seeds": [0.5]}, r"seed 0\.5: give whole numbers, 0 or more"),
    ],
)
def test_a_choice_in_python_that_cannot_be_is_one_line(choices: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=f"^{says}$"):
        Selection(**choices)


def test_another_package_s_copy_of_a_paper_does_not_replace_our_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = shipped_experiments()
    copy = fifth_paper("adam2021", tmp_path, monkeypatch)
    (copy / "experiments" / "adam2021-fig3.toml").rename(copy / "experiments" / "fig3.toml")
    beside = shipped_experiments()
    assert {name: beside[name] for name in ours} == ours
    assert list(beside) == sorted(beside, key=lambda name: f"{name}.toml")
    assert set(beside) - set(ours) == {"fig3"}


TWO_FOR_A_ROW = """
[[methods]]
label = "fast"
name = "t-svgp"
row = "first"
training = { e_rate = 0.5 }

[[methods]]
label = "slow"
name = "t-svgp"
row = "first"
training = { e_rate = 0.1 }

[presets.rates]

[presets.paper]
"""


def with_rows(folder: Path, paper: str) -> Experiment:
    last = 'name = "t-svgp"\n'
    return load_experiment(str(write_own(folder, (last, f"{last}{TWO_FOR_A_ROW}{paper}"))))


def test_a_method_that_alone_stands_for_a_row_is_shown_by_it(tmp_path: Path) -> None:
    experiment = with_rows(tmp_path, 'chosen_from = "rates"\nmethods = ["t-SVGP", "slow"]')
    assert shown_names(experiment, "paper") == {"t-SVGP": "t-SVGP", "slow": "first"}
    assert shown_names(experiment, "rates") == {x: x for x in ("t-SVGP", "fast", "slow")}


@pytest.mark.parametrize(
    ("paper", "message"),
    [
        ('chosen_from = "rats"', "chosen_from: unknown preset 'rats'; did you mean 'rates'?"),
        ('chosen_from = "rates"', "has 2 methods of row 'first'; give it one"),
        ('chosen_from = "rates"\nmethods = ["t-SVGP"]', "has 0 methods of row 'first'"),
    ],
)
def test_a_chosen_preset_has_one_method_a_row(tmp_path: Path, paper: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        with_rows(tmp_path, paper)


@pytest.mark.parametrize("name", shipped_experiments())
def test_every_preset_of_every_shipped_experiment_resolves_to_distinct_cells(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    for preset in experiment.presets:
        cells = Counter(cell.model_dump_json() for cell in resolve(experiment, preset))
        assert max(cells.values()) == 1


def test_a_selection_goes_before_the_preset() -> None:
    cells = fig3(
        data=["boston"],
        methods=["t-svgp untied", "q-svgp"],
        backends=["numpy"],
        seeds=[3, 4],
        threads=2,
    )
    assert {cell.data.name for cell in cells} == {"boston"}
    assert {cell.method.title for cell in cells} == {
        "t-SVGP untied",
        "q-SVGP natgrad",
        "q-SVGP Adam",
        "q-SVGP Adam (fair)",
    }
    assert {(cell.backend.name, cell.seed, cell.threads) for cell in cells} == {
        ("numpy", 3, 2),
        ("numpy", 4, 2),
    }


def test_a_layer_overrides_only_the_keys_that_it_names() -> None:
    base = TrainingConfig(em_iterations=7, e_rate=0.5)
    assert overlay(base, TrainingConfig(e_rate=1.0)) == TrainingConfig(em_iterations=7, e_rate=1.0)


def test_a_layer_overrides_only_the_keys_of_a_table_within_it() -> None:
    base = TrainingConfig(online=OnlineConfig(iterations=7, increment=3))
    layer = TrainingConfig(online=OnlineConfig(increment=5))
    found = overlay(base, layer, TrainingConfig(em_iterations=2))
    assert found.online == OnlineConfig(iterations=7, increment=5)
    # a rate of another form is another rate
    rising = TrainingConfig(e_rate=LogLinear(start=0.1, end=1.0, steps=5))
    assert overlay(rising, TrainingConfig(e_rate=Decay(start=0.5))).e_rate == Decay(start=0.5)


def test_a_users_file_runs_as_declared_with_its_data_beside_it(tmp_path: Path) -> None:
    cells = resolve(load_experiment(str(write_own(tmp_path))))
    assert [cell.split.fold for cell in cells] == [0, 1]
    assert {cell.data.path for cell in cells} == {str(tmp_path / "rows.csv")}


def test_a_users_table_may_name_its_features(tmp_path: Path) -> None:
    asked = ('task = "regression" }', 'task = "regression", features = ["z"] }')
    cell = resolve(load_experiment(str(write_own(tmp_path, asked))))[0]
    assert load_data(cell.data).feature_names == ("z",)
    asked = ('task = "regression" }', 'task = "regression", features = [1] }')
    with pytest.raises(UserError, match=r"features no\. 1 must be a string, got 1"):
        load_experiment(str(write_own(tmp_path, asked)))


def test_repeats_of_a_random_split_are_splits_of_their_own(tmp_path: Path) -> None:
    path = write_own(tmp_path, ("folds = 4", 'kind = "random"\nseed = 10'))
    assert [cell.split.seed for cell in resolve(load_experiment(str(path)))] == [10, 11]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (
            "e_rate = { start = 1e-4, end = 0.1, steps = 40 }",
            LogLinear(start=1e-4, end=0.1, steps=40),
        ),
        ("e_rate = { start = 0.1, decay = 0.1 }", Decay(start=0.1, decay=0.1)),
        ("e_rate = { start = 0.1 }", Decay(start=0.1)),
        ("e_rate = 0.5", 0.5),
    ],
)
def test_the_rate_of_the_e_step_may_follow_a_schedule(
    tmp_path: Path, declared: str, expected: object
) -> None:
    changed = ("em_iterations = 2", f"em_iterations = 2\n{declared}")
    experiment = load_experiment(str(write_own(tmp_path, changed)))
    cells = resolve(experiment)
    assert [cell.training.e_rate for cell in cells] == [expected] * 2
    restored = CellConfig.model_validate_json(cells[0].model_dump_json())
    assert restored == cells[0]


def test_a_method_may_have_its_own_schedule(tmp_path: Path) -> None:
    own = 'name = "t-svgp"\ntraining = { e_rate = { start = 0.2, decay = 0.3 } }'
    common = "em_iterations = 2\ne_rate = { start = 1e-4, end = 0.1, steps = 40 }"
    file = write_own(tmp_path, ('name = "t-svgp"', own), ("em_iterations = 2", common))
    training = resolve(load_experiment(str(file)))[0].training
    assert training.e_rate == Decay(start=0.2, decay=0.3)


def test_fixed_splits_are_named_or_the_first(tmp_path: Path) -> None:
    path = write_own(
        tmp_path, ("folds = 4\nrun_folds = [0, 1]", 'kind = "fixed"\nrun_folds = [0, 9]')
    )
    splits = [cell.split for cell in resolve(load_experiment(str(path)))]
    assert [(split.kind, split.fold) for split in splits] == [("fixed", 0), ("fixed", 9)]
    path = write_own(tmp_path, ("folds = 4\nrun_folds = [0, 1]", 'kind = "fixed"'))
    splits = [cell.split for cell in resolve(load_experiment(str(path)))]
    assert [(split.kind, split.fold) for split in splits] == [("fixed", 0)]


def sampled(**selection: object) -> list[CellConfig]:
    fig3_ = load_experiment("adam2021-fig3")
    paper = fig3_.presets["paper"].model_copy(
        update={"spot_check_backends": ("torch", "tensorflow")}
    )
    changed = fig3_.model_copy(update={"presets": {"paper": paper}})
    return resolve(changed, "paper", Selection(**selection))  # type: ignore[arg-type]


def test_a_sampled_preset_runs_on_one_backend_and_a_tenth_of_its_cells_on_the_others() -> None:
    cells = sampled()
    on = {
        name: {
            cell.model_dump_json(exclude={"backend"}) for cell in cells if cell.backend.name == name
        }
        for name in ("jax", "torch", "tensorflow")
    }
    assert {name: len(found) for name, found in on.items()} == {
        "jax": 300, "torch": 15, "tensorflow": 15,  # 150 cells, each with its replica
    }  # fmt: skip
    assert on["torch"] == on["tensorflow"] < on["jax"]
    assert not any(cell.perturbation for cell in cells if cell.backend.name == "torch")
    assert len({cell.data.name for cell in cells if cell.backend.name == "torch"}) > 3  # a drawing
    assert cells == sampled()
    assert sampled(seeds=[0], data=["pima"])[-1].backend.name == "tensorflow"
    # a backend that is asked for runs all
    assert {cell.backend.name for cell in sampled(backends=["torch"])} == {"torch"}
    assert len(sampled(backends=["torch"])) == 150


def test_a_preset_may_have_another_number_of_folds_and_not_measure(tmp_path: Path) -> None:
    path = write_own(tmp_path)
    more = "[presets.p]\nfolds = 6\nmeasures = true\n[presets.q]\nfolds = 6\nrun_folds = [5]\n"
    path.write_text(f"{path.read_text()}\n{more}")
    experiment = load_experiment(str(path))
    assert {cell.split.folds for cell in resolve(experiment)} == {4}
    cells = resolve(experiment, "p")
    assert {(cell.split.folds, cell.split.fold) for cell in cells} == {(6, i) for i in range(6)}
    assert all(cell.measures for cell in cells)
    assert not any(cell.measures for cell in resolve(experiment))
    assert {cell.split.fold for cell in resolve(experiment, "q")} == {5}
    path.write_text(path.read_text().replace("run_folds = [5]", "run_folds = [6]"))
    with pytest.raises(UserError, match="fold 6 of 6"):
        load_experiment(str(path))


def test_a_preset_may_have_another_kernel_and_jitter(tmp_path: Path) -> None:
    path = write_own(tmp_path)
    path.write_text(
        path.read_text()
        + '\n[presets.p]\njitter = 1e-4\nkernel = { name = "se", variance = 3.0 }\n'
    )
    experiment = load_experiment(str(path))
    for before, now in zip(resolve(experiment), resolve(experiment, "p"), strict=True):
        assert (now.kernel.name, now.kernel.variance, now.jitter) == ("se", 3.0, 1e-4)
        assert now.kernel.lengthscale == before.kernel.lengthscale
        changed = {"kernel": now.kernel, "jitter": now.jitter}
        assert before.model_copy(update=changed) == now


GRID = (
    'data = [{ name = "boston", factors = { M = 5, noise = 0.1 } }, '
    '{ name = "boston", factors = { M = 7, noise = 0.1 } }]'
)


def test_factors_tell_problems_on_one_data_set_apart(tmp_path: Path) -> None:
    experiment = grid_of(tmp_path, "[presets.seven]\nwhere = { M = [7, 9], noise = [0.1] }\n")
    assert experiment.data_names == ("M=5, noise=0.1", "M=7, noise=0.1")
    (seven,) = {cell.data for cell in resolve(experiment, "seven")}
    assert (seven.name, dict(seven.factors)) == ("boston", {"M": 7.0, "noise": 0.1})
    (named,) = {cell.data for cell in resolve(experiment, None, Selection(data=["M=7, noise=0.1"]))}
    assert named == seven


def test_a_factor_that_no_problem_has_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown factor 'm'"):
        grid_of(tmp_path, "[presets.seven]\nwhere = { m = [7] }\n")


def test_factors_move_no_id_and_outlive_a_record(tmp_path: Path) -> None:
    one, other = resolve(grid_of(tmp_path, ""))[:2]
    assert identify(one).cell_id == identify(other).cell_id  # here they are nothing but names
    again = CellConfig.model_validate_json(one.model_dump_json(), strict=True)
    assert again.data == one.data
    assert hash(again.data) == hash(one.data)


def grid_of(folder: Path, preset: str) -> Experiment:
    path = folder / "grid.toml"
    path.write_text(
        'name = "grid"\nbackends = ["numpy"]\nsplit = { kind = "random", folds = 2, run_folds = [0] }\n'
        f'methods = [{{ name = "t-svgp" }}]\n[[problems]]\n{GRID}\n'
        f'likelihood = {{ name = "gaussian" }}\n{preset}'
    )
    return load_experiment(str(path))
