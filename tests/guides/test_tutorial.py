"""docs/tutorial.md, followed: each command runs, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from guide import DOCS, Guide

PAGE = (DOCS / "tutorial.md").read_text("utf-8")
LAST = "## Decide it"
"""The heading from which on there are more folds."""


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Guide:
    return Guide(tmp_path_factory.mktemp("ideas"), "tutorial.md")


@pytest.fixture(scope="module")
def printed(guide: Guide) -> str:
    ran = guide.run_each(*guide.commands)
    assert [one.returncode for one in ran] == [0] * len(guide.commands), [x.stderr for x in ran]
    assert Path(guide.folder, "idea2026-points.png").is_file()
    return "\n".join(one.stdout for one in ran)


def missing(shown: str, printed: str) -> list[str]:
    """Return the output lines of a page that no command has printed."""
    lines = [line for line in shown.splitlines() if line.startswith("    ")]
    said = {" ".join(line.split()) for line in printed.splitlines()}
    outputs = [" ".join(line.split()) for line in lines if "pip install" not in line]
    assert len(outputs) > 4
    return [line for line in outputs if line not in said]


def test_what_the_page_shows_is_what_its_commands_print(printed: str) -> None:
    assert missing(PAGE.partition(LAST)[0], printed) == []


def test_more_folds_decide_as_the_page_shows(guide: Guide, printed: str) -> None:
    guide.changed("ideas/idea2026/points.toml", ("folds = 5", "folds = 14"))
    ran = guide.run_each(*guide.commands[-2:])
    assert missing(PAGE.partition(LAST)[2], "\n".join(one.stdout for one in ran)) == []


def test_the_command_that_runs_it_again_needs_no_path(printed: str) -> None:
    assert "svgpbench reproduce idea2026/points --results runs" in printed
