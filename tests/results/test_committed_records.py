"""What lies under `results/`: every record whole, current, and able to be run again from itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from committed_records import RESULTS, committed

from svgpbench.backends import framework_missing
from svgpbench.config import CellConfig
from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.cell import identify
from svgpbench.experiments.validation import check_cells
from svgpbench.plugins import registry_of
from svgpbench.results.difference import difference
from svgpbench.results.records import Record
from svgpbench.results.store import experiments
from svgpbench.results.validity import outdated_reason
from svgpbench.runs.pool import run_cells
from svgpbench.runs.verification import ROUNDING

LEFT_THE_CONE = {("pima", f"{method} 2", "not_pd") for method in ("t-SVGP", "q-SVGP natgrad")}
"""Of a band of rates, the ends."""
RAN_AWAY = {
    ("thesis-gp-sample:draw-1", "O(M), Z learned", "diverged"),
    ("thesis-gp-sample:draw-3", "O(M), M = 20", "diverged"),
}
"""Two of 500 cells whose natural steps in 2M numbers, of rate 0.5, leave every bound behind."""
STEPS_ON_T = {
    *(("banana:full", x, "diverged") for x in ("O(M) exact", "R-SVGP (P), Z learned")),
    *(("mnist", x, "diverged") for x in ("O(M) exact", "R-SVGP")),
}
"""Steps of rate 1 on a matrix that stands for an inverse, and natural steps in 2M numbers beside them."""


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [record for name in experiments(RESULTS) for record in committed(name)]


def test_there_are_records_and_each_lies_where_its_configuration_says(
    records: list[Record],
) -> None:
    assert len(records) >= 600
    for name in experiments(RESULTS):
        assert {record.config.experiment for record in committed(name)} == {name}
    ended = {(r.config.data.name, r.config.method.title, r.status) for r in records}
    assert {end for end in ended if end[2] != "ok"} == LEFT_THE_CONE | RAN_AWAY | STEPS_ON_T


def test_every_id_is_that_of_its_configuration_and_every_version_current(
    records: list[Record],
) -> None:
    told = {record.cell_id: why for record in records if (why := outdated_reason(record))}
    assert told == {}


def test_every_record_holds_a_complete_configuration_that_can_be_run(
    records: list[Record],
) -> None:
    """An option that came later is left out, and at its default."""
    for record in records:
        whole = identify(record.config).config
        kept = {name: whole.method.options[name] for name in record.config.method.options}
        method = whole.method.model_copy(update={"options": kept})
        assert whole.model_copy(update={"method": method}) == record.config
    configs = [record.config for record in records]
    check_cells([x for x in configs if registry_of(x.data.name).at_hand(x.data.name)])


def test_records_are_those_of_the_experiments_as_they_are_declared(records: list[Record]) -> None:
    """Nobody has edited an experiment away from the records that stand for it.

    Of its other data sets the files need not be at hand.
    """
    for name in {record.config.experiment for record in records}:
        experiment = load_experiment(name)
        recorded = {r.config.data.title for r in records if r.config.experiment == name}
        declared = {
            identify(cell).cell_id
            for preset in experiment.presets
            for cell in resolve(experiment, preset)
            if cell.data.title in recorded
        }
        assert {r.cell_id for r in records if r.config.experiment == name} <= declared


@pytest.mark.parametrize("preset", ["paper", "starts"])
def test_figure_3_is_there_whole(records: list[Record], preset: str) -> None:
    cells = resolve(load_experiment("adam2021-fig3"), preset)
    here = {record.cell_id for record in records}
    assert {identify(cell).cell_id for cell in cells} <= here


STABLE = (
    ("jax", "pima", "t-SVGP"),
    ("torch", "pima", "q-SVGP natgrad"),
    ("tensorflow", "concrete:5", "q-SVGP Adam"),
)
"""Cells that rounding carries less than 1e-8 away from themselves."""


@pytest.mark.parametrize(("backend", "data", "method"), STABLE)
def test_a_cell_run_again_says_what_its_record_says(
    records: list[Record], tmp_path: Path, backend: str, data: str, method: str
) -> None:
    if missing := framework_missing(backend):
        pytest.skip(missing)

    def is_it(config: CellConfig) -> bool:
        key = (config.backend.name, config.data.name, config.method.title)
        return key == (backend, data, method) and (config.split.fold, config.seed) == (1, 0)

    (record,) = (r for r in records if is_it(r.config) and not r.config.perturbation)
    (again,) = run_cells([record.config], results=tmp_path, jobs=1).records
    assert again.cell_id == record.cell_id
    assert difference(record, again) <= ROUNDING
