"""Commands of a user who has the wheel alone: no folder of records, and one line that says so."""

from __future__ import annotations

from command_line import Cli


def test_claims_are_answered_by_the_shipped_grades(cli: Cli) -> None:
    every, one = cli("claims"), cli("claims", "adam2021-16")
    assert every.code == one.code == 0
    assert every.err.startswith("no records here: ") and every.err.count("\n") == 1
    assert "not run" not in every.out.splitlines()[1] and "adam2021-16" in every.out
    assert one.out.startswith("adam2021-16  ") and "20 EM iterations" in one.out
    unknown = cli("claims", "adam2021-99")
    assert unknown.code == 2 and "unknown claim 'adam2021-99'" in unknown.err
