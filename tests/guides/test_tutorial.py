"""docs/tutorial.md, followed: each command runs, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from guide import DOCS, Guide


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    guide = Guide(tmp_path_factory.mktemp("hunches"), "tutorial.md")
    ran = guide.run_each(*guide.commands)
    assert [one.returncode for one in ran] == [0] * len(guide.commands), [x.stderr for x in ran]
    assert Path(guide.folder, "hunch2026-points.png").is_file()
    return "\n".join(one.stdout for one in ran)


def test_what_the_page_shows_is_what_its_commands_print(printed: str) -> None:
    page = (DOCS / "tutorial.md").read_text("utf-8")
    shown = [line.strip() for line in page.splitlines() if line.startswith("    ")]
    of_commands = [line for line in shown if not line.startswith("pip install")]
    said = {" ".join(line.split()) for line in printed.splitlines()}
    assert len(of_commands) == 8
    assert [line for line in of_commands if " ".join(line.split()) not in said] == []


def test_the_command_that_runs_it_again_needs_no_path(printed: str) -> None:
    assert "svgpbench reproduce hunch2026/points --preset paper --results runs" in printed
