"""`svgpbench claims` on records that are committed, and where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from another_paper import FIFTH, fifth_paper
from command_line import Cli

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def ledger() -> dict[str, Any]:
    """Two claims of Figure 3, judged on the committed records."""
    from svgpbench.papers import load_paper
    from svgpbench.report.verdicts import judge

    paper = load_paper("adam2021")
    claims = [claim for claim in paper.claims if claim.id in ("adam2021-15", "adam2021-16")]
    return {one.claim.id: one for one in judge(paper, claims, RESULTS)}


def test_the_claim_that_rests_on_figure_3_alone_is_undecided(ledger: dict[str, Any]) -> None:
    """One start a split decides no bound; in NLPD two sets are equal, one is chaos, the others are open."""
    one = ledger["adam2021-16"]
    assert one.verdict == "undecided"
    bound, density, drop = (part.finding for part in one.parts)
    assert {effect.outcome for effect in (*bound.effects, *drop.effects)} == {"undecided"}
    assert all(effect.value > 0 for effect in bound.effects)
    outcomes = {effect.of: effect.outcome for effect in density.effects}
    assert [data for data, outcome in outcomes.items() if outcome == "equal"] == [
        "ionosphere",
        "pima",
    ]
    assert next(e for e in density.effects if e.of == "airfoil").note.startswith("chaotic")
    assert len(one.records) == 2 * 2 * 6 * 5  # methods, replicas, data sets, folds


def test_a_claim_with_a_part_that_nothing_runs_is_not_run(ledger: dict[str, Any]) -> None:
    one = ledger["adam2021-15"]
    assert (one.verdict, one.condition) == ("not run", "no experiment: table1")
    assert [part.finding.verdict for part in one.parts] == [
        "undecided", "undecided", "undecided", "reproduced", "not run",
    ]  # fmt: skip


def test_every_claim_has_a_row_that_fits_and_says_why_it_is_not_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = cli("claims", *_ids_that_need_records())
    assert done.code == 0, done.err
    rows = done.out.splitlines()
    assert max(map(len, rows)) <= 100
    assert rows[-1].strip() == "37 claims: 37 not run"
    (row,) = (row for row in rows if row.startswith("adam2021-17"))
    assert row.endswith("no experiment: table1".ljust(len(row) - row.index("no experiment")))
    assert "adam2021-fig3 in runs" in " ".join(done.out.split())


def _ids_that_need_records() -> list[str]:
    """All but those with a part that is computed, which takes minutes."""
    from svgpbench.papers import load_paper, paper_folders

    return [
        claim.id
        for paper in map(load_paper, paper_folders())
        for claim in paper.claims
        if not any(paper.artefact(part.artefact).computed for part in claim.parts)
    ]


def test_records_of_some_of_the_cells_decide_nothing(cli: Cli, quick_results: Path) -> None:
    done = cli("claims", "adam2021-16", "--results", quick_results)
    assert "not run (264 of 300 cells of adam2021-fig3 have not run)" in " ".join(done.out.split())


def test_one_claim_shows_its_whole_entry_and_how_to_run_it(cli: Cli) -> None:
    done = cli("claims", "adam2021-16", "--results", "mine")
    said = " ".join(done.out.split())
    assert "Adam, Chang, Khan, Solin 2021, Fig. 3, §6" in said
    assert "tying; clip; Adam state kept; M-rate" in said
    assert "not run (no records of adam2021-fig3 in mine)" in said
    assert "svgpbench run adam2021-fig3 --preset paper --backend jax --results mine" in said
    assert "svgpbench claims adam2021-16 --results mine" in said


def test_a_claim_of_a_number_shows_what_is_printed(cli: Cli) -> None:
    done = cli("claims", "salimbeni2018-11")
    assert "ORTHNAT: mean rank 1.833 ± 0.35" in done.out


def test_a_paper_shows_what_it_says_where_it_errs_and_what_we_do_otherwise(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifth_paper("kobe2021", tmp_path, monkeypatch)  # nothing computes its claims
    said = " ".join(cli("claims", "--paper", FIFTH).out.split())
    assert "Yuriko Kobe, MPhil thesis, University of Cambridge 2021" in said
    assert "19 claims: 19 not run errata" in said
    assert "Eq. 2.34 F = dη/dθ" in said
    assert "ours: the projected step's fixed point is not the optimum" in said
    assert "which cells of the grid Figs. 4.3 to 4.5 show" in said


def test_json_has_the_whole_entries_of_one_paper(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifth_paper("cheng2017", tmp_path, monkeypatch)  # nothing computes its claims
    done = cli("claims", "--paper", FIFTH, "--json")
    entries = json.loads(done.out)
    assert [entry["id"] for entry in entries] == [f"{FIFTH}-{n:02d}" for n in range(1, 13)]
    assert {entry["verdict"] for entry in entries} == {"not run"}
    assert entries[7]["condition"] == "KUKA₁ and MUJOCO₁: stand-ins serve for the order alone"
    assert entries[7]["paper"] == FIFTH


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("adam2021-99",), "unknown claim 'adam2021-99'; did you mean 'adam2021-"),
        (("kobe2021-01", "--paper", "adam2021"), "unknown claim 'kobe2021-01'"),
        (("--paper", "adam"), "unknown paper 'adam'; did you mean 'adam2021'?"),
    ],
)
def test_a_wrong_name_is_one_line(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    done = cli("claims", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
