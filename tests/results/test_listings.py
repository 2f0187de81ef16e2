"""README and the page of grades say what the ledger says."""

import csv
import runpy
import shlex
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
QUICK = ("speed", "compare", "learn")
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
    assert SCRIPT["with_listings"](page, False) == page


def test_a_listing_ends_where_it_says_and_text_after_it_stays() -> None:
    listing = "<!-- svgpbench list backends -->\n\nold\n"
    page = f"a\n\n{listing}\n<!-- end -->\n\nb\n\n{listing}"
    listed = SCRIPT["svgpbench"]("list", "backends").strip()
    written = SCRIPT["with_listings"](page, True)
    assert written == page.replace("old", listed)
    assert SCRIPT["with_listings"](page, False) == page


def test_the_listings_of_committed_records_are_what_their_commands_print() -> None:
    """Those that take seconds; the others are the ledger's."""
    listings = [
        listing
        for path in sorted((ROOT / "docs").glob("*.md"))
        for listing in SCRIPT["LISTING"].finditer(path.read_text("utf-8"))
        if listing["command"].split()[0] in QUICK
    ]
    assert listings
    for listing in listings:
        command, _, _ = listing["command"].partition(" --figure")  # which writes into the results
        assert SCRIPT["svgpbench"](*shlex.split(command)).strip() in listing[0]


def test_the_shares_that_the_docs_open_with_are_those_of_the_ledger(
    ledger: list[dict[str, str]],
) -> None:
    words = " ".join((ROOT / "docs" / "claims.md").read_text("utf-8").split())
    ledger = [row for row in ledger if row["kind"] != "ours"]
    counts = Counter(row["grade"] for row in ledger)
    held, claims = counts["holds"] + counts["holds, corrected"], len(ledger)
    papers = len({row["id"].rpartition("-")[0] for row in ledger}) - 1
    sources = f"{NUMBERS[papers]} papers and a repository of results"
    assert f"of the {claims} claims of {sources} hold" in words
    assert abs(held / claims - 3 / 5) < 0.05, "Three in five"
    assert f"{NUMBERS[counts['fails']].capitalize()} fail" in words
    assert abs(counts["mixed"] / claims - 1 / 4) < 0.03, "a quarter"
    assert f"{NUMBERS[counts['open']]} are open" in words
