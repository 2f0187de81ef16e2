"""`svgpbench reproduce` on a paper of another package, run for real, and on records that are committed."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Cli, Outcome
from scipy.stats import t as student

from svgpbench.cli.application import exit_code
from svgpbench.results.records import Record, read_record, record_files, write_record


class Reproduced:
    """What one run of the whole paper printed, and its folders."""

    def __init__(self, folder: Path, printed: Outcome) -> None:
        self.printed, self.results, self.out = printed, folder / "runs", folder / "made"
        self.artefact = self.out / "tides2030" / "fig1"

    def records(self, method: str) -> list[Record]:
        found = [read_record(path) for path in record_files(self.results)]
        return [record for record in found if record.config.method.title == method]


@pytest.fixture(scope="module")
def reproduced(paper: Path, tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """The whole paper, in an empty folder."""
    folder = tmp_path_factory.mktemp("reproduced")
    where = ("--results", str(folder / "runs"), "--out", str(folder / "made"))
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as error:
        code = exit_code(["reproduce", "tides2030", *where])
    return Reproduced(folder, Outcome(code, out.getvalue(), error.getvalue()))


def test_each_artefact_has_a_line_and_what_is_not_there_is_no_failure(
    reproduced: Reproduced,
) -> None:
    code, out, err = reproduced.printed
    assert code == 0, err
    fig1, inset, fig2, algebra, proof, claims = out.splitlines()
    files = "progress.png, progress.pdf, progress.txt, scores.md, scores.tex, scores.csv"
    why = "no record of tides2030-fig1 on numpy has error rate to draw"
    of_inset = reproduced.artefact.with_name("inset")
    assert inset == (
        f"tides2030/inset: {of_inset}: {files}; {why}; cells: 2 run, 0 reused, 0 failed"
    )
    files += ", printed-beside-ours.md, printed-beside-ours.tex, printed-beside-ours.csv"
    assert fig1 == (
        f"tides2030/fig1: {reproduced.artefact}: {files}; {why}; cells: 6 run, 0 reused, 0 failed"
    )
    assert fig2 == "tides2030/fig2: no experiment makes it; the sea"
    assert algebra == (
        f"tides2030/algebra: {reproduced.out / 'tides2030' / 'algebra'}: sums.png, sums.pdf, sums.txt, "
        "sums.csv, printed-beside-ours.md, printed-beside-ours.tex, printed-beside-ours.csv; "
        "nothing computes algebra/products; computed afresh, no records"
    )
    assert proof == "tides2030/proof: computed afresh, no records"
    assert not (reproduced.out / "tides2030" / "proof").exists()
    assert claims.startswith(
        f"{reproduced.out}/claims.md, {reproduced.out}/claims.json: 4 claims: "
    )
    assert {path.name for path in reproduced.artefact.iterdir()} == set(files.split(", "))


def test_the_figure_is_in_both_formats_with_a_caption_that_says_what_is_smaller(
    reproduced: Reproduced,
) -> None:
    assert (reproduced.artefact / "progress.png").read_bytes().startswith(b"\x89PNG")
    assert (reproduced.artefact / "progress.pdf").read_bytes().startswith(b"%PDF")
    caption = (reproduced.artefact / "progress.txt").read_text("utf-8")
    assert "Drawn: numpy." in caption
    smaller = "preset paper; smaller than in the paper: three folds in place of ten"
    assert smaller in caption
    for suffix in ("md", "tex"):
        assert smaller in (reproduced.artefact / f"scores.{suffix}").read_text("utf-8")
        assert smaller in (reproduced.artefact / f"printed-beside-ours.{suffix}").read_text("utf-8")


def test_a_figure_of_what_is_computed_lies_beside_its_numbers_and_caption(
    reproduced: Reproduced,
) -> None:
    folder = reproduced.out / "tides2030" / "algebra"
    assert (folder / "sums.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "sums.pdf").read_bytes().startswith(b"%PDF")
    caption = "tides2030/algebra: sums of the first n numbers. Computed afresh.\n"
    assert (folder / "sums.txt").read_text("utf-8") == caption
    assert pd.read_csv(folder / "sums.csv")["total"].tolist() == [1, 2, 3, 2, 4, 6]
    beside = pd.read_csv(folder / "printed-beside-ours.csv")
    assert list(beside["note"]) == ["counted", "added"]  # of three threes there is nothing
    assert list(beside["ours"]) == [3.0, 3.0]
    assert list(beside["difference"]) == [1.0, 1.0]
    text = (folder / "printed-beside-ours.md").read_text("utf-8")
    assert "1 of 2 printed figures beside ours, computed." in text


def test_the_table_has_the_records_means_in_every_form(reproduced: Reproduced) -> None:
    whole = pd.read_csv(reproduced.artefact / "scores.csv").set_index("method")
    lines = {suffix: (reproduced.artefact / f"scores.{suffix}").read_text("utf-8").splitlines()
             for suffix in ("md", "tex")}  # fmt: skip
    for method in ("five", "two"):
        mean = np.mean([record.metrics["nlpd"] for record in reproduced.records(method)])
        assert whole.loc[method, "nlpd_mean"] == pytest.approx(mean, rel=1e-12)
        (of_markdown,) = (line for line in lines["md"] if line.startswith(f"| tides | {method} |"))
        (of_latex,) = (line for line in lines["tex"] if line.startswith(f"tides & {method} &"))
        shown = of_markdown.split("|")[4].split("±")[0].strip()
        assert shown == f"{mean:.{len(shown.partition('.')[2])}f}"  # to the digits that are shown
        plain = of_latex.replace(r"$\pm$", "±").replace("$-$", "-").removesuffix(r" \\")
        assert plain.split(" & ") == of_markdown.strip("| ").split(" | ")


def test_printed_figures_stand_beside_ours_with_the_corrected_interval(
    reproduced: Reproduced,
) -> None:
    rows = pd.read_csv(reproduced.artefact / "printed-beside-ours.csv", dtype={"printed": str})
    assert list(rows["setting"]) == ["five", "two, tides"]  # of `ten` there is no record
    first, bound = rows.to_dict(orient="records")
    values = [record.metrics["nlpd"] for record in reproduced.records("five")]
    half = student.ppf(0.975, 2) * np.std(values, ddof=1) * math.sqrt(1 / 3 + 15 / 30)
    assert first["ours"] == pytest.approx(np.mean(values), rel=1e-12)
    assert first["ours_half_interval"] == pytest.approx(half, rel=1e-9)
    assert (first["n"], first["unit"]) == (3, "splits")
    assert first["difference"] == pytest.approx(np.mean(values) - 9.5, rel=1e-12)
    assert (bound["printed"], math.isnan(bound["difference"])) == ("<1", True)
    text = (reproduced.artefact / "printed-beside-ours.md").read_text("utf-8")
    assert "| five | nlpd | tides2030-02: fails | 9.5±0.01 |" in text
    assert "2 of 3 printed figures" in text


def test_the_ledger_is_that_of_the_claims_command(cli: Cli, reproduced: Reproduced) -> None:
    printed = cli("claims", "--paper", "tides2030", "--json", "--results", reproduced.results)
    entries = json.loads((reproduced.out / "claims.json").read_text("utf-8"))
    assert entries == json.loads(printed.out)
    grades = {entry["id"]: entry["grade"] for entry in entries}
    assert grades["tides2030-02"] == "fails"
    assert grades["tides2030-03"] == "holds"  # computed
    assert grades["tides2030-04"] == "not run"
    text = (reproduced.out / "claims.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    shown = {row[0]: row[rows[0].index("grade")] for row in rows[2:]}
    assert shown == grades
    assert "- core: the sum: holds. largest residual, +0" in text
    assert text.count("smallest effect these runs could show: ") == 1  # of the one ordering


def test_a_claim_brings_its_artefact_alone_and_cells_that_ran_are_kept(
    cli: Cli, reproduced: Reproduced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    before = {path: path.stat().st_mtime_ns for path in record_files(reproduced.results)}
    done = cli("reproduce", "tides2030-01", "--results", reproduced.results, "--out", tmp_path)
    assert done.code == 0, done.err
    (fig1, claims) = done.out.splitlines()
    assert fig1.endswith("cells: 0 run, 6 reused, 0 failed")
    assert "1 claim: " in claims
    assert {path: path.stat().st_mtime_ns for path in record_files(reproduced.results)} == before


def test_a_smaller_preset_says_so_and_decides_no_claim(
    cli: Cli, reproduced: Reproduced, tmp_path: Path
) -> None:
    results = tmp_path / "quick"
    for record in [read_record(path) for path in record_files(reproduced.results)]:
        if record.config.split.fold == 0:
            write_record(results, record)
    done = cli("reproduce", "tides2030/fig1", "--preset", "quick", "--from-records",
               "--results", results, "--out", tmp_path)  # fmt: skip
    assert "cells: 0 run, 2 reused, 0 failed\n" in done.out
    caption = (tmp_path / "tides2030" / "fig1" / "progress.txt").read_text("utf-8")
    assert "preset quick, smaller than preset paper: 1 of 3 splits; smaller than in" in caption
    entries = json.loads((tmp_path / "claims.json").read_text("utf-8"))
    assert {entry["id"]: entry["finding"] for entry in entries} == dict.fromkeys(
        ("tides2030-01", "tides2030-02"), "4 of 6 cells of tides2030-fig1 have not run"
    )


def test_from_records_computes_no_cell(cli: Cli, paper: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = cli("reproduce", "tides2030", "--from-records", "--results", "empty", "--out", "made")
    assert done.code == 0, done.err
    assert "tides2030/fig1: no records of tides2030-fig1 in empty" in done.out
    assert "0 run, 0 reused, 0 failed, 6 missing" in done.out
    assert not list(record_files(tmp_path / "empty"))
    assert (tmp_path / "made" / "claims.md").exists()


def test_a_failed_cell_is_counted_and_ends_with_1(
    cli: Cli, reproduced: Reproduced, tmp_path: Path
) -> None:
    results = tmp_path / "damaged"
    shutil.copytree(reproduced.results, results)
    one = reproduced.records("two")[0]
    write_record(results, one.model_copy(update={"status": "not_pd", "metrics": {}}))
    done = cli("reproduce", "tides2030/fig1", "--results", results, "--out", tmp_path)
    assert done.code == 1
    assert "cells: 0 run, 6 reused, 1 failed" in done.out
    shown = cli(
        "reproduce", "tides2030/fig1", "--from-records", "--results", results, "--out", tmp_path
    )
    assert shown.code == 0, shown.out  # the failure is a recorded result
    assert "cells: 0 run, 6 reused, 1 failed" in shown.out
    beside = (tmp_path / "tides2030" / "fig1" / "printed-beside-ours.md").read_text("utf-8")
    assert "1 of 3 cells without it" in beside


STOPPABLE = """
import signal
import sys
from svgpbench.cli import main

# a shell that runs the tests in the background has turned Ctrl-C off
signal.signal(signal.SIGINT, signal.default_int_handler)
main(sys.argv[1:])
"""


def test_ctrl_c_makes_nothing_of_half_the_cells(paper: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(paper), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        [sys.executable, "-c", STOPPABLE, "reproduce", "tides2030"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert running.stderr is not None
    # a note on cores that another run has may come first
    assert any(line.startswith("6 cells to run") for line in running.stderr)
    time.sleep(0.2)  # the cells have begun; a worker takes longer to start
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert (running.returncode, out) == (130, "interrupted; the same command goes on from here\n")
    assert not list((tmp_path / "runs").glob("reproduced/*"))
