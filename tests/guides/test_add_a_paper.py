"""docs/add-a-paper.md and docs/tutorial.md, followed: a fifth paper and an idea are run and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guide import DOCS, Guide

FORMS = ("md", "tex", "csv")


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Guide:
    return Guide(tmp_path_factory.mktemp("sound"), "add-a-paper.md")


def test_the_commands_of_the_page_list_it_and_make_everything(guide: Guide) -> None:
    listed, made = guide.run_each(*guide.commands)
    assert listed.returncode == 0, listed.stderr
    assert "How Few Points Hear an Echo" in listed.stdout
    assert "2 claims: 2 not run" in listed.stdout
    assert made.returncode == 0, made.stderr
    folder = Path("runs") / "reproduced" / "echo2030" / "fig1"
    names = [path.name for path in (guide.folder / folder).iterdir()]
    tables = {f"{x}.{form}" for x in ("scores", "printed-beside-ours") for form in FORMS}
    assert set(names) == tables | {"bound.png", "bound.pdf", "bound.txt"}
    assert f"echo2030/fig1: {folder}: bound.png, " in made.stdout
    assert "cells: 6 run, 0 reused, 0 failed" in made.stdout
    assert "echo2030/fig2: no experiment makes it" in made.stdout
    caption = (guide.folder / folder / "bound.txt").read_text("utf-8")
    assert "smaller than in the paper: three folds of ten" in caption
    printed = (guide.folder / folder / "printed-beside-ours.md").read_text("utf-8")
    assert "1 of 2 printed figures beside ours" in printed
    entries = json.loads((guide.folder / "runs" / "reproduced" / "claims.json").read_text("utf-8"))
    assert [entry["id"] for entry in entries] == ["echo2030-01", "echo2030-02"]
    assert "not run" not in {entry["grade"] for entry in entries}


def test_a_mistake_in_the_folder_is_one_line(tmp_path: Path) -> None:
    guide = Guide(tmp_path, "add-a-paper.md")
    guide.changed("sound_papers/echo2030/claims.toml", ('method = "M = 5"', 'method = "M = 6"'))
    refused = guide.run("reproduce", "echo2030")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: echo2030/claims.toml: claim 'echo2030-01': part 1: unknown method 'M = 6'; "
        "did you mean 'M = 5'? (known: M = 20, M = 5)\n"
    )


TUTORIAL = (DOCS / "tutorial.md").read_text("utf-8")
LAST = "## Decide it"
"""The heading from which on there are more folds."""


@pytest.fixture(scope="module")
def ideas(tmp_path_factory: pytest.TempPathFactory) -> Guide:
    return Guide(tmp_path_factory.mktemp("ideas"), "tutorial.md")


@pytest.fixture(scope="module")
def printed(ideas: Guide) -> str:
    ran = ideas.run_each(*ideas.commands)
    assert [one.returncode for one in ran] == [0] * len(ideas.commands), [x.stderr for x in ran]
    assert Path(ideas.folder, "idea2026-points.png").is_file()
    return "\n".join(one.stdout for one in ran)


def missing(shown: str, printed: str) -> list[str]:
    """Return the output lines of a page that no command has printed."""
    lines = [line for line in shown.splitlines() if line.startswith("    ")]
    said = {" ".join(line.split()) for line in printed.splitlines()}
    outputs = [" ".join(line.split()) for line in lines if "pip install" not in line]
    assert len(outputs) > 4
    return [line for line in outputs if line not in said]


def test_what_the_page_shows_is_what_its_commands_print(printed: str) -> None:
    assert missing(TUTORIAL.partition(LAST)[0], printed) == []


def test_more_folds_decide_as_the_page_shows(ideas: Guide, printed: str) -> None:
    ideas.changed("ideas/idea2026/points.toml", ("folds = 5", "folds = 14"))
    ran = ideas.run_each(*ideas.commands[-2:])
    assert missing(TUTORIAL.partition(LAST)[2], "\n".join(one.stdout for one in ran)) == []


def test_the_command_that_runs_it_again_needs_no_path(printed: str) -> None:
    assert "svgpbench reproduce idea2026/points --results runs" in printed
