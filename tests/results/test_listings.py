"""README and the page of grades say what the ledger says."""

import csv
import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
SCRIPT = runpy.run_path(str(ROOT / "docs" / "_build" / "listings.py"))


@pytest.fixture
def ledger() -> list[dict[str, str]]:
    with SCRIPT["LEDGER"].open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_tables_of_readme_are_those_of_the_ledger(ledger: list[dict[str, str]]) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert SCRIPT["with_tables"](readme, ledger) == readme
    for row in ledger:
        row["grade"], row["finding"] = "open", "another finding"
    changed = SCRIPT["with_tables"](readme, ledger)
    assert changed.count("another finding") == 5
    assert "| speed |  |  |  |  |  | 5 |  |  |" in changed


def test_the_page_of_grades_is_that_of_the_ledger() -> None:
    page = (ROOT / "docs" / "grades.md").read_text("utf-8")
    assert SCRIPT["with_listing"](page, False) == page


def test_the_shares_that_the_docs_open_with_are_those_of_the_ledger(
    ledger: list[dict[str, str]],
) -> None:
    words = " ".join((ROOT / "docs" / "claims.md").read_text("utf-8").split())
    counts = Counter(row["grade"] for row in ledger)
    held, claims = counts["holds"] + counts["holds, corrected"], len(ledger)
    papers = len({row["id"].rpartition("-")[0] for row in ledger})
    assert f"of the {claims} claims of {NUMBERS[papers]} papers hold" in words
    assert abs(held / claims - 1 / 2) < 0.05, "About half"
    assert f"{NUMBERS[counts['fails']].capitalize()} fail" in words
    assert abs(counts["mixed"] / claims - 1 / 6) < 0.02, "one in six"
    assert abs(counts["open"] / claims - 1 / 4) < 0.03, "a quarter"
