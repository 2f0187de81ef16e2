"""docs/records.md: its queries print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "records.md").read_text("utf-8")
SHOWN = re.findall(r"```sql\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("query", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_a_query_prints_what_the_page_shows(
    query: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(ROOT)
    answer = duckdb.sql(query)
    names, _, *rows = (
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in shown.splitlines()
        if line.startswith("│")
    )
    assert names == answer.columns
    assert rows == [[str(value) for value in row] for row in answer.fetchall()]
