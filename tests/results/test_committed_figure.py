"""Figure 3 comes from the committed records as they lie there."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from committed_records import RESULTS

from svgpbench.cli.application import exit_code
from svgpbench.papers import load_paper, paper_folders
from svgpbench.papers.grades import Grade
from svgpbench.papers.ledger import COLUMNS, released


def test_the_committed_records_give_figure_3_and_its_grade(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--results", str(RESULTS), "--out", str(tmp_path))
    code = exit_code(["reproduce", "adam2021-16", "--from-records", *where])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    fig3, *_, claims = printed.out.splitlines()  # a line for each artefact of the claim
    assert "fig3.png, fig3.pdf, fig3.txt, fig3.md, fig3.tex, fig3.csv" in fig3
    assert fig3.endswith("cells: 0 run, 900 reused, 0 failed")
    assert claims.endswith("1 claim: 1 holds")
    header, row = csv.reader((tmp_path / "claims.csv").read_text("utf-8").splitlines())
    assert header == [*COLUMNS]
    assert dict(zip(header, row, strict=True)) in released("adam2021")


def test_what_is_released_is_every_claim_and_tells_of_these_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    papers = [load_paper(name) for name in paper_folders()]
    rows = released()
    titles = [(c.id, c.title) for paper in papers for c in paper.claims]
    assert [(row["id"], row["claim"]) for row in rows] == titles
    assert {row["grade"] for row in rows} <= {*Grade}
    assert exit_code(["claims", "--released", "--paper", "cheng2017"]) == 0
    printed = capsys.readouterr().out
    assert "cheng2017-04" in printed
    assert "adam2021-01" not in printed
    assert "from its repository's records" in printed
    assert exit_code(["claims", "adam2021-01", "--released"]) == 2
    assert "--released stands alone but for --paper" in capsys.readouterr().err


def test_a_ledger_of_verdicts_stays_readable() -> None:
    """Version 0.1 had a verdict and a condition."""
    old = (
        'id,claim,verdict,"effect, 95 %",condition\n'
        'adam2021-16,at least as good,undecided,+1 [0; 2],"6 data sets, jax"\n'
    )
    (row,) = released(text=old)
    assert list(row) == [*COLUMNS]
    assert (row["id"], row["grade"], row["effect"]) == ("adam2021-16", "undecided", "+1 [0; 2]")
    assert row["finding"] == "6 data sets, jax"
