"""`svgpbench speed --from-records`: stored reports as tables and as a roofline, mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from committed_records import RESULTS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from svgpbench.benchmarks.timing.floor import StepWork
from svgpbench.benchmarks.timing.rates import Rates
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.benchmarks.timing.roofline import draw_roofline
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError


def stored(tmp_path: Path, name: str = "a.json", *, rates: bool = True) -> Path:
    """A record of one step of two seconds' work in four."""
    made = TimedCell(
        "tiny", "e_step", "jax", "t-svgp", "t-svgp", False, first_call_s=1.5, figure=-1.0
    )
    made.rounds = [Round.measured((4.0,), 0.0, True)]
    made.work, made.dispatch_s = StepWork(1e10, 1e9, 1e9, 0.0, 1e9, 1e10), 0.25
    found = {"jax": Rates(1e10, 2e9, 2e9, 1e10, 5e9)}
    report = SpeedReport(
        [made], {"max_other_cores": 0.1}, {}, rates={"tiny": found} if rates else {}
    )
    path = tmp_path / name
    path.write_text(json.dumps(report.to_json()), encoding="utf-8")
    return path


def test_records_are_printed_each_under_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    one, other = stored(tmp_path), stored(tmp_path, "b.json", rates=False)
    assert exit_code(["speed", "--load", str(one), "--load", str(other)]) == 0
    first, second = capsys.readouterr().out.split(str(other))
    assert str(one) in first and "× floor" in first and "products, GFLOP/s" in first
    assert "jax t-svgp" in second and "× floor" not in second
    assert max(map(len, first.splitlines()[1:8])) <= 140
    (row,) = [line.split() for line in first.splitlines() if "tiny" in line and "83 8 8 0" in line]
    assert row[4:10] == ["4000", "2000", "2", "0", "250", "1750"]


def test_a_roofline_is_drawn_with_its_caption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = stored(tmp_path), tmp_path / "roof.svg"
    assert exit_code(["speed", "--load", str(path), "--roofline", str(out)]) == 0
    assert "Roofline: FLOPs as counted over the median time" in capsys.readouterr().out
    assert out.read_text(encoding="utf-8").startswith("<?xml")


def test_marks_of_one_problem_from_several_records_share_a_panel(tmp_path: Path) -> None:
    reports = [
        SpeedReport.from_json(json.loads(stored(tmp_path, name).read_text(encoding="utf-8")))
        for name in ("a.json", "b.json")
    ]
    one, both = tmp_path / "one.svg", tmp_path / "both.svg"
    draw_roofline(reports[:1], one)
    reports[1].cells[0].rounds[:] = [Round.measured((8.0,), 0.0, True)]
    reports[1].cells[0].kept_times = None
    draw_roofline(reports, both)
    assert both.read_text().count("axes_") == one.read_text().count("axes_")
    assert both.stat().st_size > one.stat().st_size


def test_the_lowest_panel_of_each_column_has_an_axis_with_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = []
    for problem in ("first", "second", "third"):
        report = SpeedReport.from_json(json.loads(stored(tmp_path).read_text(encoding="utf-8")))
        report.cells[0].problem, report.rates[problem] = problem, report.rates.pop("tiny")
        reports.append(report)
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *rest, **more: drawn.append(figure))
    draw_roofline(reports, tmp_path / "roof.svg")
    panels = [panel for panel in drawn[0].axes if panel.get_visible()]
    labelled = [(panel.get_xlabel() != "", _has_numbers(panel)) for panel in panels]
    assert labelled == [(False, False), (True, True), (True, True)]


def _has_numbers(panel: Axes) -> bool:
    return any(tick.label1.get_visible() for tick in panel.xaxis.get_major_ticks())


def test_nothing_of_a_roofline_is_cut_off(tmp_path: Path) -> None:
    record = json.loads((RESULTS / "speed" / "adam2021-fig4.json").read_text(encoding="utf-8"))
    out = tmp_path / "roof.png"
    draw_roofline([SpeedReport.from_json(record)], out)
    drawn = imread(out)[:, :, :3]
    for edge in (drawn[:2], drawn[-2:], drawn[:, :2], drawn[:, -2:]):
        assert (edge == 1.0).all()


def test_a_record_of_a_run_without_a_limit_on_other_processes_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The records of `timing.device` are of such runs."""
    path = stored(tmp_path)
    report = SpeedReport.from_json(json.loads(path.read_text(encoding="utf-8")))
    report.settings["max_other_cores"] = float("inf")
    report.write(path)
    assert exit_code(["speed", "--load", str(path)]) == 0
    assert "0 of 1 rounds discarded" in capsys.readouterr().out
    assert json.loads(path.read_text(encoding="utf-8"))["settings"]["max_other_cores"] is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [{}]}'])
def test_what_is_no_record_is_refused_in_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    assert exit_code(["speed", "--load", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"{path}: is no record" in told and told.count("\n") == 1


def test_a_roofline_needs_rates_and_a_place(tmp_path: Path) -> None:
    path = stored(tmp_path, rates=False)
    record = SpeedReport.from_json(json.loads(path.read_text(encoding="utf-8")))
    with pytest.raises(UserError, match="no rates of the machine"):
        draw_roofline([record], tmp_path / "x.png")
    with pytest.raises(UserError, match=r"name a file ending in \.png"):
        draw_roofline([record], tmp_path / "x.txt")
    assert exit_code(["speed", "--load", str(tmp_path / "none.json")]) == 2
    assert exit_code(["speed", "--load", str(path), "--json"]) == 2
