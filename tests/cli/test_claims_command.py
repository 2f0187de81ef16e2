"""`svgpbench claims` on records that are committed, and where there are none."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from another_paper import FIFTH, fifth_paper
from command_line import Cli
from committed_records import RESULTS

from svgpbench.papers import load_paper, paper_folders
from svgpbench.papers.grades import Effect, Judgement
from svgpbench.report.grading import judge


@pytest.fixture(scope="module")
def ledger() -> dict[str, Any]:
    """A claim of Figure 3 and one on rates, judged on the committed records."""
    paper = load_paper("adam2021")
    claims = [claim for claim in paper.claims if claim.id in ("adam2021-16", "adam2021-22")]
    return {one.claim.id: one for one in judge(paper, claims, RESULTS)}


def test_the_claim_that_rests_on_figure_3_alone_is_undecided(ledger: dict[str, Any]) -> None:
    """Five starts a split decide the bound; in NLPD two sets are equal, one is chaos, the others are open."""
    one = ledger["adam2021-16"]
    assert one.grade == "undecided"
    assert [part.grade for part in one.parts] == [
        "reproduced", "undecided", "undecided",
    ]  # fmt: skip
    bound, density, _ = (part.judgement for part in one.parts)
    assert [effect.of for effect in bound.effects if effect.outcome != "better"] == ["pima"]
    outcomes = {effect.of: effect.outcome for effect in density.effects}
    assert [data for data, outcome in outcomes.items() if outcome == "equal"] == [
        "ionosphere",
        "pima",
    ]
    assert next(e for e in density.effects if e.of == "airfoil").note.startswith("chaotic")
    cells_of_a_method = (5 + 1) * 6 * 5  # starts and a replica, data sets, folds
    assert len(one.records) == 2 * cells_of_a_method


def test_larger_rates_are_stood_where_a_peer_leaves_the_cone(ledger: dict[str, Any]) -> None:
    """Not larger ones than by the same step in other coordinates; three seeds each, rates on a grid."""
    one = ledger["adam2021-22"]
    assert one.grade == "partly"
    assert [part.grade for part in one.parts] == [
        "not reproduced", "reproduced", "not reproduced", "partly", "reproduced", "undecided",
    ]  # fmt: skip
    assert {effect.outcome for effect in one.parts[0].judgement.effects} == {"equal"}


def test_a_claim_with_a_part_that_has_not_run_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "adam2021-fig3.parquet").symlink_to(RESULTS / "adam2021-fig3.parquet")
    paper = load_paper("adam2021")
    (one,) = judge(paper, [claim for claim in paper.claims if claim.id == "adam2021-15"], tmp_path)
    why = f"no records of adam2021-table1 in {tmp_path}"
    assert (one.grade, one.condition) == ("not run", why)
    assert [part.grade for part in one.parts] == [
        "reproduced", "partly", "reproduced", "reproduced", *["not run"] * 4,
    ]  # fmt: skip


def test_a_file_of_records_that_is_cut_off_is_one_line_and_no_verdict(
    cli: Cli, tmp_path: Path
) -> None:
    whole = (RESULTS / "adam2021-fig3.parquet").read_bytes()
    (tmp_path / "adam2021-fig3.parquet").write_bytes(whole[:-9])
    done = cli("claims", "adam2021-16", "--results", tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "adam2021-fig3.parquet is damaged: " in done.err


def test_beside_an_ordering_over_data_sets_stand_the_ranks_of_its_methods(
    ledger: dict[str, Any], cli: Cli
) -> None:
    said = " ".join(cli("claims", "adam2021-16", "--results", RESULTS).out.split())
    density = ledger["adam2021-16"].parts[1].finding
    assert "average rank among 2 methods on 6 data sets: t-SVGP 1." in said
    assert density.ranks.text in said
    entry = ledger["adam2021-16"].to_json()["parts"][1]
    assert entry["ranks"]["data_sets"] == 6
    assert [rank["method"] for rank in entry["ranks"]["methods"]] == ["t-SVGP", "q-SVGP natgrad"]


def test_every_claim_has_a_row_that_fits_and_says_why_it_is_not_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ids = _ids_that_need_records()
    done = cli("claims", *ids)
    assert done.code == 0, done.err
    rows = done.out.splitlines()
    assert max(map(len, rows)) <= 100
    assert rows[-1].strip() == f"{len(ids)} claims: {len(ids)} not run"
    (row,) = (row for row in rows if row.startswith("salimbeni2018-11"))
    assert "no records of" in row
    assert "adam2021-fig3 in runs" in " ".join(done.out.split())


def _ids_that_need_records() -> list[str]:
    """All but those with a part that is computed, which takes minutes."""
    return [
        claim.id
        for paper in map(load_paper, paper_folders())
        for claim in paper.claims
        if not any(paper.artefact(part.artefact).computed for part in claim.parts)
    ]


def test_records_of_some_of_the_cells_decide_nothing(cli: Cli, quick_results: Path) -> None:
    done = cli("claims", "adam2021-16", "--results", quick_results)
    assert "not run (864 of 900 cells of adam2021-fig3 have not run)" in " ".join(done.out.split())


def test_one_claim_shows_its_whole_entry_and_how_to_run_it(cli: Cli) -> None:
    done = cli("claims", "adam2021-16", "--results", "mine")
    said = " ".join(done.out.split())
    assert "Adam, Chang, Khan, Solin 2021, Fig. 3, §6" in said
    assert "tying; clip; Adam state kept; M-rate" in said
    assert "not run (no records of adam2021-fig3 in mine)" in said
    assert "svgpbench run adam2021-fig3 --preset starts --backend jax --results mine" in said
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
    why = "KUKA₁: a stand-in serves for the order alone; no records of cheng2017-table2 in runs"
    assert entries[7]["condition"] == why
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


def test_numbers_of_any_kind_are_written_as_json(tmp_path: Path) -> None:
    """A count is NumPy's, and an interval may be open to one side."""
    paper = load_paper("adam2021")
    (one,) = judge(paper, [claim for claim in paper.claims if claim.id == "adam2021-18"], tmp_path)
    counted = Effect("M = 25", "more", np.int64(7), -math.inf, np.float64(2.5))  # type: ignore[arg-type]
    part = replace(one.parts[0], finding=Judgement(one.grade, (counted,)))
    written = json.loads(json.dumps(replace(one, parts=(part,)).to_json(), allow_nan=False))
    (effect,) = written["parts"][0]["effects"]
    assert (effect["value"], effect["low"], effect["high"]) == (7, None, 2.5)
