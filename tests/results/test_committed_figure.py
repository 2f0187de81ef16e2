"""Figure 3 comes from the committed records as they lie there."""

from __future__ import annotations

from pathlib import Path

import pytest
from committed_records import RESULTS

from svgpbench.cli.application import exit_code


def test_the_committed_records_give_figure_3_and_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--results", str(RESULTS), "--out", str(tmp_path))
    code = exit_code(["reproduce", "adam2021-16", "--from-records", *where])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    fig3, claims = printed.out.splitlines()
    assert "fig3.png, fig3.pdf, fig3.txt, fig3.md, fig3.tex, fig3.csv" in fig3
    assert fig3.endswith("cells: 0 run, 900 reused, 0 failed")
    assert claims.endswith("1 claim: 1 undecided")
