"""`svgpbench claims` on records that are committed, and where there are none."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from another_paper import FIFTH, fifth_paper
from command_line import Cli
from committed_records import RESULTS

from svgpbench.papers import Claim, load_paper, paper_folders
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import Judged, judge
from svgpbench.stats.effects import Effect
from svgpbench.stats.rules import VARIANTS


def judged(claim_id: str, results: Path) -> Judged:
    paper = load_paper("adam2021")
    (one,) = judge(paper, [claim for claim in paper.claims if claim.id == claim_id], results)
    return one


@pytest.fixture(scope="module")
def figure3() -> Judged:
    """A claim that rests on Figure 3 alone, graded by the committed records."""
    return judged("adam2021-16", RESULTS)


def test_a_claim_at_an_equal_budget_is_graded_by_non_inferiority(figure3: Judged) -> None:
    """Five starts a split; t-SVGP is worse nowhere."""
    assert figure3.grade == Grade.holds
    assert figure3.kind == "experiments"
    core = [effect for part in figure3.parts_of_role("core") for effect in part.judgement.effects]
    assert {effect.outcome for effect in core} <= {"no worse", "undecided"}
    assert all(effect.held for effect in core if effect.outcome == "no worse")
    cells_of_a_method = (5 + 1) * 6 * 5  # starts and a replica, data sets, folds
    assert {len(part.records) for part in figure3.parts_of_role("core")} == {2 * cells_of_a_method}
    assert set(figure3.steadiness) == set(VARIANTS)


def test_a_claim_with_a_core_part_that_has_not_run_is_not_run(tmp_path: Path) -> None:
    one = judged("adam2021-16", tmp_path)
    assert (one.grade, one.finding) == ("not run", f"no records of adam2021-fig3 in {tmp_path}")
    assert one.steady == ""


def test_a_file_of_records_that_is_cut_off_is_one_line_and_no_grade(
    cli: Cli, tmp_path: Path
) -> None:
    whole = (RESULTS / "adam2021-fig3.parquet").read_bytes()
    (tmp_path / "adam2021-fig3.parquet").write_bytes(whole[:-9])
    done = cli("claims", "adam2021-16", "--results", tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "adam2021-fig3.parquet is damaged: " in done.err


def test_beside_an_ordering_over_data_sets_stand_the_ranks_of_its_methods(figure3: Judged) -> None:
    (ranks,) = {part.judgement.ranks for part in figure3.parts_of_role("core")[:1]}
    assert ranks is not None
    assert ranks.data_sets == 6
    assert [rank.method for rank in ranks.by_method] == ["t-SVGP", "q-SVGP natgrad"]
    entry = next(part for part in figure3.to_json()["parts"] if part["role"] == "core")
    assert entry["ranks"]["data_sets"] == 6


def test_an_entry_fits_one_screen_with_its_finding_evidence_and_conditions(
    figure3: Judged, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = cli("claims", "adam2021-16", "--results", RESULTS).out
    assert len(out.splitlines()) <= 50
    said = " ".join(out.split())
    for text in (figure3.finding, figure3.fidelity, "steadiness", "conditions tried beside"):
        assert " ".join(text.split()) in said
    assert "svgpbench claims adam2021-16 --results" in said


def test_the_docs_show_lines_that_the_command_prints(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    page = (RESULTS.parent / "docs" / "claims.md").read_text("utf-8")
    shown = page.partition("prints, among other lines:\n")[2].partition("\n* ")[0]
    printed = " ".join(cli("claims", "adam2021-16", "--results", RESULTS).out.split())
    lines = [" ".join(line.split()) for line in shown.splitlines() if line]
    assert len(lines) > 8
    assert [line for line in lines if line not in printed] == []


def test_every_claim_has_a_row_that_fits_and_says_why_it_is_not_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    claims = _claims_that_need_records()
    done = cli("claims", *(claim.id for claim in claims), "--results", "runs")
    assert done.code == 0, done.err
    rows = done.out.splitlines()
    assert max(map(len, rows)) <= 100
    of_papers = [claim for claim in claims if not claim.ours]
    untestable = sum(claim.untestable != "" for claim in of_papers)
    assert f"{len(of_papers)} claims: " in rows[-1]
    assert f"{len(of_papers) - untestable} not run" in rows[-1]
    assert f"{len(claims) - len(of_papers)} findings of ours" in rows[-1]
    assert "adam2021-fig3 in runs" in " ".join(done.out.split())


def _claims_that_need_records() -> list[Claim]:
    """All but those with a part that is computed, which takes minutes."""
    return [
        claim
        for paper in map(load_paper, paper_folders())
        for claim in paper.claims
        if not any(paper.artefact(part.artefact).computed for part in claim.parts)
    ]


def test_records_of_some_of_the_cells_decide_nothing(cli: Cli, quick_results: Path) -> None:
    done = cli("claims", "adam2021-16", "--results", quick_results)
    said = " ".join(done.out.split())
    assert "not run" in said
    assert "864 of 900 cells of adam2021-fig3 have not run" in said


def test_one_claim_shows_its_whole_entry_and_how_to_run_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    done = cli("claims", "adam2021-16", "--results", "mine")
    said = " ".join(done.out.split())
    assert "Adam, Chang, Khan, Solin 2021, Fig. 3" in said
    assert "no records of adam2021-fig3 in mine" in said
    assert "svgpbench run adam2021-fig3 --preset starts --backend jax --results mine" in said
    assert "svgpbench claims adam2021-16 --results mine" in said


def test_a_paper_shows_what_it_says_where_it_errs_and_what_we_do_otherwise(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifth_paper("kobe2021", tmp_path, monkeypatch)  # nothing computes its claims
    said = " ".join(cli("claims", "--paper", FIFTH, "--results", "runs").out.split())
    assert "Yuriko Kobe, MPhil thesis, University of Cambridge 2021" in said
    assert f"{len(load_paper('kobe2021').claims)} claims: " in said
    assert "not run errata" in said
    assert "Eq. 2.34 F = dη/dθ" in said
    assert "which cells of the grid Figs. 4.3 to 4.5 show" in said


def test_json_has_the_whole_entries_of_one_paper(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifth_paper("cheng2017", tmp_path, monkeypatch)  # nothing computes its claims
    done = cli("claims", "--paper", FIFTH, "--json")
    entries = json.loads(done.out)
    known = load_paper("cheng2017").claims
    assert [entry["id"][-2:] for entry in entries] == [claim.id[-2:] for claim in known]
    assert {entry["grade"] for entry in entries} == {"not run", "not testable here"}
    assert all(entry["paper"] == FIFTH for entry in entries)
    keys = {"grade", "fidelity", "finding", "steadiness", "response", "parts", "commands"}
    assert all(keys <= entry.keys() for entry in entries)


def test_numbers_of_any_kind_are_written_as_json(tmp_path: Path) -> None:
    """A count is NumPy's, and an interval may be open to one side."""
    one = judged("adam2021-18", tmp_path)
    counted = Effect("M = 25", "more", np.int64(7), -math.inf, np.float64(2.5))  # type: ignore[arg-type]
    part = replace(one.parts[0], judgement=Judgement(one.grade, (counted,)))
    written = json.loads(json.dumps(replace(one, parts=(part,)).to_json(), allow_nan=False))
    (effect,) = written["parts"][0]["effects"]
    assert (effect["value"], effect["low"], effect["high"]) == (7, None, 2.5)


def test_effects_are_shown_beside_what_matters_and_drawn(cli: Cli, tmp_path: Path) -> None:
    done = cli("claims", "--paper", "titsias2025", "--forest", "--results", RESULTS)
    assert "titsias2025-05   holds" in done.out
    assert "titsias2025-12" not in done.out  # ours
    file = tmp_path / "effects.png"
    done = cli("claims", "--paper", "titsias2025", "--figure", file, "--results", RESULTS)
    assert file.stat().st_size > 5000
    assert "effects.png: 7 effects" in " ".join(done.out.split())


def test_our_findings_stand_alone(cli: Cli) -> None:
    done = cli("claims", "--ours", "--markdown")
    assert [line.split("|")[1].strip() for line in done.out.splitlines()[2:]] == [
        "cortinovis2026-09",
        "titsias2025-11",
        "titsias2025-12",
    ]
    assert "3 findings of ours" in cli("claims", "--ours").out
    assert "titsias2025-12" not in cli("claims", "--released", "--markdown").out


def test_a_claim_is_one_line_with_its_grade(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = cli("claims", "--released").out
    rows = out.splitlines()[1 : out.splitlines().index("")]
    assert len(rows) == len({row.split()[0] for row in rows}) > 90
    assert "effect, 95" not in out and all(len(row) <= 80 for row in rows)
    monkeypatch.setenv("COLUMNS", "120")
    assert "effect" in cli("claims", "--released").out.splitlines()[0]
