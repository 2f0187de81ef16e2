"""Pages of the docs that end in what a command prints of the committed records."""

from __future__ import annotations

from pathlib import Path

import pytest

from svgpbench.cli.application import exit_code

ROOT = Path(__file__).parents[2]
PAGES = {
    "grades": "svgpbench claims --released --markdown",
    "artefacts": "svgpbench claims --artefacts --results results",
    "contradictions": "svgpbench claims --contradictions --results results",
}


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_command_prints(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert exit_code(PAGES[name].split()[1:]) == 0
    assert page.partition(f"<!-- {PAGES[name]} -->\n\n")[2] == capsys.readouterr().out
