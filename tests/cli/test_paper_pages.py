"""`svgpbench reproduce --pages` on a paper of another package, run for real."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli
from PIL import Image

from svgpbench.papers.evidence.experiment import ExperimentEvidence
from svgpbench.papers.page import keep_picture, owner, plain
from svgpbench.papers.schema import Artefact


@pytest.mark.usefixtures("paper")
def test_a_page_has_figures_printed_numbers_grades_and_commands(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    runs, kept = tmp_path / "runs", tmp_path / "kept"
    done = cli("reproduce", "tides2030", "--results", runs, "--pages", kept)
    assert done.code == 0, done.err
    page = kept / "tides2030" / "printed-beside-ours.md"
    assert done.out.startswith(f"{page}: 3 pictures, ")
    text = page.read_text("utf-8")
    for picture in ("fig1-progress.png", "inset-progress.png", "algebra-sums.png"):
        assert f"]({picture})" in text
        with Image.open(page.with_name(picture)) as image:
            assert image.mode == "P"
            assert image.info["Description"].startswith("tides2030")
    assert "smaller than printed: three folds in place of ten" in text
    assert "| five | nlpd | tides2030-02: fails | 9.5±0.01 |" in text
    assert "| ten | nlpd |  | 0.2 |" in text  # printed, not run, and no claim is about it
    assert "## proof" not in text  # computed, with nothing to show
    assert "Not measured yet" not in text
    assert not (tmp_path / "made").exists()


@pytest.mark.usefixtures("paper")
def test_what_has_no_records_has_its_command(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    where = ("--results", tmp_path / "runs", "--pages", tmp_path / "kept")
    assert cli("reproduce", "tides2030/fig1", "--from-records", *where).code == 0
    text = (tmp_path / "kept" / "tides2030" / "printed-beside-ours.md").read_text("utf-8")
    assert "Not measured yet: `svgpbench reproduce tides2030/fig1 --preset paper" in text
    assert "| five | nlpd | tides2030-02: not run | 9.5±0.01 | – | – | – |" in text


def artefact(name: str, preset: str) -> Artefact:
    evidence = ExperimentEvidence(kind="experiment", experiment="e", preset=preset)
    return Artefact(id=name, what="a figure", settings="few", evidence=evidence)


def test_a_figure_of_the_same_runs_is_shown_once_where_its_name_belongs() -> None:
    table, figure, large = (
        artefact("table2", "small"),
        artefact("fig2", "small"),
        artefact("table2-large", "large"),
    )
    all_of_them = [table, figure, large]
    assert owner(all_of_them, table, "fig2-time") == figure
    assert owner(all_of_them, figure, "fig2") == figure
    assert owner(all_of_them, figure) == table  # the numbers of the runs
    assert owner(all_of_them, large, "fig2") == large


def test_a_kept_picture_looks_the_same_with_few_colours(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 40), (213, 94, 0))
    image.save(tmp_path / "whole.png", dpi=(200, 200))
    keep_picture(tmp_path / "whole.png", tmp_path / "kept.png")
    with Image.open(tmp_path / "kept.png") as kept:
        assert kept.size == (40, 40)
        assert kept.convert("RGB").getpixel((3, 3)) == (213, 94, 0)


def test_a_star_and_a_bound_are_no_markdown() -> None:
    assert plain("θ* of θ*, <1") == r"θ\* of θ\*, \<1"
