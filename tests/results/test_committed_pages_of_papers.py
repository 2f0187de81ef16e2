"""The committed pages of the papers are what the records give; what has records has its figure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from committed_records import RESULTS

from svgpbench.experiments import Selection, resolve
from svgpbench.experiments.cell import identify
from svgpbench.papers import Artefact, Paper, load_paper, paper_folders
from svgpbench.papers.page import PAGE, is_shown
from svgpbench.papers.published_values import as_text, compare_with_records
from svgpbench.papers.reproduction import plan
from svgpbench.papers.selection import all_of
from svgpbench.results.collect import collect

PAPERS = tuple(paper_folders())
LIMIT = 8e6
"""Bytes of all pictures."""


def sections(paper: str) -> dict[str, str]:
    """The page of a paper by artefact."""
    text = (RESULTS / paper / PAGE).read_text(encoding="utf-8")
    parts = re.split(r"^## ([^:\n]+): ", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", PAPERS)
def test_a_page_has_every_artefact_and_the_pictures_that_lie_beside_it(name: str) -> None:
    page = (RESULTS / name / PAGE).read_text(encoding="utf-8")
    pictures = [path.name for path in (RESULTS / name).glob("*.png")]
    assert sorted(re.findall(r"\]\(([^)/]+\.png)\)", page)) == sorted(pictures)
    shown = [x.id for x in load_paper(name).about.artefacts if is_shown(x)]
    assert list(sections(name)) == shown


def test_all_pictures_together_are_small() -> None:
    pictures = [path for name in PAPERS for path in (RESULTS / name).glob("*.png")]
    assert len(pictures) > 30
    assert sum(path.stat().st_size for path in pictures) < LIMIT


@functools.cache
def recorded(experiment: str) -> set[str]:
    """The ids of the committed cells of an experiment."""
    path = RESULTS / f"{experiment}.parquet"
    if not path.is_file():
        return set()
    return set(pq.read_table(path, columns=["cell_id"])["cell_id"].to_pylist())


def run(paper: Paper) -> Iterator[tuple[Artefact, int, int]]:
    """Each artefact of records that take no data made here: cells that ran, of how many, first backend."""
    for artefact in paper.about.artefacts:
        evidence = artefact.experiment
        if evidence is None or evidence.experiment == "cheng2017-table2-walker":
            continue
        experiment = paper.experiments[artefact.id]
        first = Selection(backends=experiment.backends[:1])
        ids = [identify(x).cell_id for x in resolve(experiment, evidence.preset, first)]
        yield artefact, sum(x in recorded(experiment.name) for x in ids), len(ids)


TABLES_ALONE = ("table1-authors", "table1-six-starts", "table2-large", "table2-leak")
"""Tables of methods, or of fewer data sets, than their experiment's figures are about."""


@pytest.mark.parametrize("name", PAPERS)
def test_what_has_records_has_its_figure_and_what_has_none_its_command(name: str) -> None:
    page = sections(name)
    for artefact, ran, of in run(load_paper(name)):
        section = page[artefact.id]
        assert ("Not measured yet: `" in section) == (ran < of), artefact.id
        if 0 < ran < of or (ran and artefact.id in TABLES_ALONE):
            assert "Every number of ours" in section, artefact.id
        elif ran:
            assert ".png)" in section or "Its figure is that of" in section, artefact.id


@pytest.mark.parametrize(
    ("name", "artefact"),
    [("adam2021", "table1"), ("kobe2021", "fig4.1"), ("salimbeni2018", "table1"), ("cheng2017", "table2")],
)  # fmt: skip
def test_printed_numbers_stand_beside_those_of_the_records(name: str, artefact: str) -> None:
    paper = load_paper(name)
    (planned,) = (x for x in plan(all_of(paper), None, ()) if x.artefact.id == artefact)
    found = collect(RESULTS, planned.plan)
    printed = [x for x in paper.printed if x.artefact == artefact]
    stand_in = bool(planned.artefact.missing)
    rows = compare_with_records(
        printed, found.records, [], planned.plan.experiment.methods, stand_in=stand_in
    )
    table = [line.strip("| ").split(" | ") for line in sections(name)[artefact].splitlines()]
    committed = {(row[0], row[1]): row[3:] for row in table if len(row) == 7}
    assert rows
    for row in as_text(rows).rows:
        assert committed[row[0], row[1]] == list(row[3:])
