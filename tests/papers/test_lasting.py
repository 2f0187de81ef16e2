"""The rule by which a grade lasts, tried on the committed runs: cut off early, and held against their end."""

from __future__ import annotations

from pathlib import Path

import pytest
from lasting_check import table

DOCS = Path(__file__).parents[2] / "docs" / "claim-rules.md"


@pytest.mark.slow
def test_the_table_of_the_docs_is_what_the_committed_runs_say() -> None:
    found = [
        "| " + " | ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in line) + " |"
        for line in table()
    ]
    shown = DOCS.read_text("utf-8").splitlines()
    assert [line for line in found if line not in shown] == []
    assert len(found) == 40
