"""Times of one method over another's on planted records, with the crossover by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from committed_records import RESULTS

from svgpbench.benchmarks.timing import method_ratios
from svgpbench.benchmarks.timing.method_ratios import (
    AS_ONE,
    crossover,
    missing_sizes,
    notes_of,
    ratios_of,
    ratios_table,
    summary_table,
)
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.cli.application import exit_code

PAIR = ("t-svgp", "q-svgp")


def cell(method: str, step: str, *seconds: float, problem: str = "softmax10-M50") -> TimedCell:
    """A cell of undisturbed rounds of one call each."""
    made = TimedCell(problem, step, "jax", method, method, False, first_call_s=1.5, figure=-1.0)
    made.rounds = [Round.measured((s,), 0.0, True) for s in seconds]
    return made


def planted() -> SpeedReport:
    """E-steps of 1 s and 3 s, M-steps of 8 s and 3 s: t-SVGP saves 2 s an E-step and loses 5 s an M-step."""
    cells = [
        cell("t-svgp", "e_step", 1.0, 1.0, 9.0),
        cell("t-svgp", "m_step", 8.0, 8.0, 8.0),
        cell("q-svgp", "e_step", 3.0, 3.0, 3.0),
        cell("q-svgp", "m_step", 3.0, 3.0, 3.0),
        cell("t-svgp", "em_step", 11.0, 11.0),
        cell("q-svgp", "em_step", 10.0, 10.0),
    ]
    cells[0].rounds[2] = cells[0].rounds[2]._replace(clean=False)
    settings = {"max_other_cores": 0.1, "device": "cpu", "threads": 2}
    return SpeedReport(cells, settings, {})


def test_iterations_are_sums_of_steps_and_the_crossover_is_between_them() -> None:
    (row,) = ratios_of(planted(), "a", *PAIR)
    medians = {name: ratio.median for name, ratio in row.ratios.items()}
    # E 1 against 3, M 8 against 3: 9/6, 12/15, 16/27
    expected = {"E": 1 / 3, "M": 8 / 3, "1E+1M": 1.5, "4E+1M": 0.8, "8E+1M": 16 / 27, AS_ONE: 1.1}
    assert medians == pytest.approx(expected)
    assert row.ratios["E"].of == 2, "the disturbed round is left out"
    assert row.crossover == 2.5
    assert (row.shape.M, row.shape.b, row.family) == (50, 200, "softmax10")


def test_the_other_way_round_ratios_are_inverted_and_more_e_steps_never_pay() -> None:
    (row,) = ratios_of(planted(), "a", *PAIR[::-1])
    assert row.ratios["4E+1M"].median == pytest.approx(1.25)
    assert row.crossover == math.inf
    assert "never" in ratios_table([row], *PAIR).texts[0]


def test_a_crossover_is_the_longer_m_step_over_the_shorter_e_step() -> None:
    assert crossover(saved=2.0, extra=5.0) == 2.5
    assert crossover(saved=2.0, extra=-1.0) == 0.0
    assert crossover(saved=0.0, extra=1.0) == crossover(saved=-1.0, extra=-1.0) == math.inf


def test_a_problem_without_all_four_steps_has_no_ratio() -> None:
    report = planted()
    del report.cells[3]
    assert not ratios_of(report, "a", *PAIR)
    report = planted()
    report.cells[3].error = "not timed"
    assert not ratios_of(report, "a", *PAIR)
    report = planted()
    del report.cells[4:]
    (row,) = ratios_of(report, "a", *PAIR)
    assert AS_ONE not in row.ratios
    assert summary_table([row], *PAIR).texts[0][-2:] == ["–", "2.5"]


def test_sizes_without_a_record_are_named_and_none_is_made_up() -> None:
    rows = ratios_of(planted(), "a", *PAIR)
    assert missing_sizes(rows)["softmax10"] == [25, 100, 250, 500, 1000, 2000]
    told = " ".join(notes_of(rows, *PAIR))
    assert "10 classes, M = 25, 100, 250" in told
    assert "--problem softmax10-M25" in told and "--problem softmax10-M50 " not in told
    assert len(summary_table(rows, *PAIR).rows) == 1


def test_a_family_with_all_sizes_is_not_said_to_lack_any(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ratios_of(planted(), "a", *PAIR)
    monkeypatch.setattr(method_ratios, "SIZES", (50,))
    *_, sizes, command = notes_of(rows, *PAIR)
    assert sizes.endswith("no record has both methods at Gaussian, M = 50; Bernoulli, M = 50")
    assert "--problem reg-M50 --problem bern-M50 --no-floor" in command
    monkeypatch.setattr(method_ratios, "SIZES", ())
    assert notes_of(rows, *PAIR)[-1] == "b/M is 4 to 4"


def test_the_summary_has_the_least_and_the_most_over_backends() -> None:
    slower = planted()
    slower.cells[0].rounds[:2] = [Round.measured((2.0,), 0.0, True)] * 2
    rows = ratios_of(planted(), "a", *PAIR) + ratios_of(slower, "b", *PAIR)
    assert summary_table(rows, *PAIR).texts == [
        [
            *("softmax, 10 classes", "50", "200", "2 threads", "jax"),
            *("0.33–0.67", "2.67", "1.50–1.67", "0.80–1.07", "0.59–0.89", "1.10", "2.5–5.0"),
        ]
    ]


def test_an_iteration_of_one_e_step_is_as_reviewed_on_tensorflow() -> None:
    """By another program: medians over rounds of the times in the record, then the ratio."""
    record = json.loads((RESULTS / "speed" / "adam2021-fig5.json").read_text(encoding="utf-8"))
    rows = ratios_of(SpeedReport.from_json(record), "adam2021-fig5", *PAIR)
    ours = {r.shape.M: r.ratios["1E+1M"].median for r in rows if r.source == "tensorflow"}
    # the other program printed two decimals
    assert ours == pytest.approx({25: 1.01, 50: 1.01, 100: 1.05, 250: 1.19, 500: 1.25}, abs=0.0055)


def test_the_command_prints_and_draws_the_records_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(planted().to_json()), encoding="utf-8")
    figure = tmp_path / "b.svg"
    asked = ["speed", "--load", str(tmp_path), "--ratio", "t-svgp/q-svgp"]
    assert exit_code([*asked, "--figure", str(figure)]) == 0
    assert "0.80" in capsys.readouterr().out
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert exit_code([*asked, "--markdown"]) == 0
    assert "| 0.80 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--ratio", "t-svgp/q-svgp"], "give --load FILE and --ratio A/B"),
        (["--load", "{}", "--ratio", "t-svgp"], "give --load FILE and --ratio A/B"),
        (["--load", "{}", "--markdown"], "give --load FILE and --ratio A/B"),
        (["--load", "{}", "--ratio", "t-svgp/vgp"], "no record has times"),
    ],
)
def test_what_is_missing_is_told_in_one_line(
    asked: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(planted().to_json()), encoding="utf-8")
    assert exit_code(["speed", *(x.format(path) for x in asked)]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
