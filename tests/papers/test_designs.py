"""A preset that can decide nothing: what each predicate needs, against what it makes of the clearest runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from own_paper import CLAIMS, PAPER, write_package
from planted_frames import planted
from planted_grades import part

from svgpbench.benchmarks.time_to_target.plan import shipped_plans
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.resolve import counts_of_runs
from svgpbench.papers.grades import Grade
from svgpbench.papers.loading import read_paper
from svgpbench.stats.designs import Design


def clearest(design: Design, metric: str, better: float) -> pd.DataFrame:
    """Runs of a design in which A is far better than B and C on each data set, a little different in each."""
    worse = {"A": 0.0, "B": better, "C": better}
    return pd.concat(
        planted(
            {
                x: [1.0 + by * (1 + at) + 1e-3 * (seed + fold + at) * (x == "A")]
                for x, by in worse.items()
            },
            metric,
            data=f"set {at}",
        ).assign(fold=fold, seed=seed)
        for at in range(design.sets)
        for fold in range(design.splits)
        for seed in range(design.starts)
    )


ALONE, SPLITS, STARTS = Design(1, 1, 1), Design(1, 2, 1), Design(1, 1, 5)
PAIR = {"methods": ("A", "B")}
NEEDS = [
    ("ordering", "nlpd", PAIR, [Design(5, 1, 4), ALONE], [SPLITS, STARTS, Design(6, 1, 1)]),
    ("ordering", "elbo", PAIR, [Design(5, 3, 4), SPLITS], [STARTS, Design(6, 2, 1)]),
    ("equality", "mae", PAIR, [Design(5, 1, 4)], [SPLITS, STARTS, Design(6, 1, 1)]),
    ("suffices", "nlpd", {"ladder": {"1": ("A", "B"), "2": ("A", "C")}}, [Design(6, 1, 4)], [SPLITS, STARTS]),
    ("number", "nlpd", {"method": "A", "printed": 2.0, "gap": 1.0}, [Design(1, 1, 4)], [SPLITS, STARTS]),
    ("leads", "nlpd", {"statistic": "mean", "method": "A", "field": ("A", "B")},
     [Design(4, 5, 5)], [Design(5, 1, 1)]),
    ("spread", "nlpd", PAIR, [SPLITS, Design(3, 1, 4)], [Design(3, 2, 1), Design(2, 1, 5)]),
    ("more-often", "nlpd", PAIR, [STARTS, Design(5, 1, 1)], [Design(1, 2, 3), Design(6, 1, 1)]),
    ("every-run", "nlpd", PAIR, [], [ALONE]),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "metric", "fields", "few", "enough"), NEEDS)
def test_a_part_lacks_runs_if_the_clearest_ones_leave_it_open(
    predicate: str, metric: str, fields: dict[str, Any], few: list[Design], enough: list[Design]
) -> None:
    asked = part(predicate, metric=metric, **fields)
    better = -1.0 if metric == "elbo" else 1.0
    for design in (*few, *enough):
        open_ = asked.judge(clearest(design, metric, better)).grade == Grade.open
        assert (bool(asked.lacks(design)), open_) == (design in few, design in few), design


def test_parts_on_rates_factors_and_learning_count_starts_and_runs() -> None:
    band = part("band", metric="elbo", wider=("A 1", "A 2"), narrower=("B 1", "B 2"))
    assert band.lacks(Design(4, 5, 2)) == "3 starts"
    assert not band.lacks(Design(1, 1, 3))
    reaches = part("reaches", metric="nlpd", methods=("A", "B"))
    assert reaches.lacks(Design(1, 1, 2)) == "3 starts"
    assert not reaches.lacks(Design(1, 1, 3))
    drives = part("drives", methods=("A", "B"), factor="m", factors=("m", "b"))
    assert drives.lacks(Design(3, 1, 1)) == "4 runs of each method"
    assert not drives.lacks(Design(2, 1, 2))


@pytest.mark.parametrize("name", ["adam2021-fig3", "salimbeni2018-table1", "kobe2021-grid"])
def test_the_runs_of_a_preset_are_counted_as_its_cells_are(name: str) -> None:
    experiment = load_experiment(name)
    for preset in experiment.presets:
        cells = resolve(experiment, preset)
        counted = (
            len({cell.data.title for cell in cells}),
            len({(cell.split.seed, cell.split.fold) for cell in cells}),
            len({cell.seed for cell in cells}),
        )
        assert counts_of_runs(experiment, preset) == counted


ONE_RUN = (
    "tides2030/claims.toml: claim 'tides2030-01': part 1: 'ordering' of artefact 'inset' can decide nothing: "
    "preset 'quick' has 1 data set, 1 split, 1 start; give it 2 splits or 5 starts or 6 data sets, or set "
    "core = false"
)
ONE_SEED = (
    "tides2030/claims.toml: claim 'tides2030-01': part 1: 'reaches' of artefact 'race' can decide nothing: "
    "{plan} has 1 data set, 1 split, 1 start; give it 3 starts, or set core = false"
)
RACE = """
[[artefacts]]
id = "race"
what = "NLPD against seconds"
settings = "one seed"
evidence = {{ kind = "training", plan = "{plan}" }}
"""


def claims_on(artefact: str) -> str:
    """The package's claims, the first of which is about another artefact."""
    claims = CLAIMS.replace('["fig1"]', f'["{artefact}"]', 1)
    return claims.replace('"fig1"\nmetric', f'"{artefact}"\nmetric', 1)


def test_a_core_part_of_a_preset_that_can_decide_nothing_is_refused(tmp_path: Path) -> None:
    write_package(tmp_path)
    folder = tmp_path / "tides_papers/tides2030"
    assert len(read_paper(folder).claims) == 4
    (folder / "claims.toml").write_text(claims_on("inset"), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_paper(folder)
    assert str(caught.value) == ONE_RUN


def test_a_core_part_of_a_learning_plan_with_too_few_seeds_is_refused(tmp_path: Path) -> None:
    write_package(tmp_path)
    folder, plan = tmp_path / "tides_papers/tides2030", tmp_path / "plan.toml"
    shipped = shipped_plans()["adam2021-fig4"].read_text(encoding="utf-8")
    plan.write_text(shipped.replace("seeds = [0, 1, 2]", "seeds = [0]"), encoding="utf-8")
    (folder / "paper.toml").write_text(PAPER + RACE.format(plan=plan), encoding="utf-8")
    claims = claims_on("race").replace('"ordering"', '"reaches"', 1)
    (folder / "claims.toml").write_text(claims, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_paper(folder)
    assert str(caught.value) == ONE_SEED.format(plan=plan)
