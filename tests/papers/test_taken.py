"""What each artefact took: cells and hours are those of its records, grades those of the claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from committed_records import RESULTS, committed
from planted_grades import graded

from svgpbench.cli.application import exit_code
from svgpbench.papers import load_paper
from svgpbench.papers.artefact_costs import costs_as_markdown
from svgpbench.papers.grades import Grade


def row(page: str, artefact: str) -> list[str]:
    """The texts of an artefact's row."""
    (line,) = (line for line in page.splitlines() if line.startswith(f"| `{artefact}`:"))
    return [text.strip() for text in line.strip("|").split(" | ")]


@pytest.fixture(scope="module")
def page() -> str:
    paper = load_paper("kobe2021")
    grades = {"kobe2021-15": Grade.mixed, "kobe2021-17": Grade.fails}
    judged = [(paper, graded(x, grades.get(x.id, Grade.open))) for x in paper.claims]
    return costs_as_markdown([paper], judged, RESULTS)


def test_cells_and_hours_are_those_of_the_records_that_decide(page: str) -> None:
    records = committed("kobe2021-fig4.1")
    hours = sum(record.wall_s for record in records) / 3600
    assert row(page, "fig4.1")[-2:] == [str(len(records)), f"{hours:.2g}"]


def test_a_preset_s_cells_are_counted_and_not_all_of_its_experiment(page: str) -> None:
    assert row(page, "fig4.5")[1] == "`kobe2021-grid`, `fig4.5`"
    assert row(page, "fig4.5")[-2] == "60" != str(len(committed("kobe2021-grid")))


def test_grades_are_of_the_claims_that_rest_on_it(page: str) -> None:
    resting = [x for x in load_paper("kobe2021").claims if "fig4.9" in x.artefacts]
    words = {"kobe2021-15": "mixed", "kobe2021-17": "fails"}
    listed = ", ".join(f"{x.id[-2:]} {words.get(x.id, 'open')}" for x in resting)
    assert row(page, "fig4.9")[3] == listed
    assert "one draw of each cell" in row(page, "fig4.3")[2]


def test_what_has_not_run_says_so_and_what_is_computed_has_no_cells(tmp_path: Path) -> None:
    paper = load_paper("kobe2021")
    empty = costs_as_markdown([paper], [], tmp_path)
    assert row(empty, "fig4.7")[-2:] == ["not run", ""]
    assert row(empty, "counting")[1:] == ["computed at each look", "", "", "", ""]


def test_it_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["claims", "kobe2021-01", "--artefacts"]) == 2
    assert exit_code(["claims", "--artefacts", "--contradictions"]) == 2
    assert capsys.readouterr().err.count("stands alone") == 2
