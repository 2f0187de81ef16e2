"""Scaling laws: planted exponents and planted costs are found, predictions are sums by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from svgpbench.benchmarks.scaling.figure import draw_scaling
from svgpbench.benchmarks.scaling.laws import (
    Affine,
    Check,
    Law,
    exponents_of,
    fit_affine,
    fit_slope,
    laws_of,
    predict,
)
from svgpbench.benchmarks.scaling.measure import (
    MemoryGrowth,
    ScalingReport,
    run_scaling,
    rungs,
    title_of,
)
from svgpbench.benchmarks.scaling.tables import exponent_table
from svgpbench.benchmarks.timing.floor import StepWork, work_of
from svgpbench.benchmarks.timing.problems import Shape, problem_of
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.cli.application import exit_code
from svgpbench.cost import Size, count
from svgpbench.errors import UserError
from svgpbench.methods import build_method

CENTRE = Shape("gaussian", 4000, 4, 64, 256, 16)
MIB = 2**20


def planted(
    seconds: Callable[[Shape], float],
    axes: tuple[str, ...] = ("N", "M", "b", "D"),
    growth: Callable[[Shape], float] = lambda s: 8.0 * s.b * s.M + 5 * MIB,
) -> ScalingReport:
    """Ladders whose E-steps take so long, and whose FLOPs are M² b."""
    shapes = rungs(CENTRE, axes, 5)
    settings = {"axes": list(axes), "method": "t-svgp", "backend": "numpy", "max_other_cores": 0.1}
    cells, memory = [], {}
    for title, shape in shapes.items():
        cell = TimedCell(title, "e_step", "numpy", "t-svgp", "t-svgp", False, 1.0, -1.0)
        cell.rounds = [Round((seconds(shape),), 0.0, True)]
        cell.work = StepWork(shape.M**2 * shape.b, 0.0, 0.0, 0.0, 1.0, 1.0)
        cells.append(cell)
        memory[title] = {"e_step": MemoryGrowth(100 * MIB, 100 * MIB + round(growth(shape)))}
    return ScalingReport(CENTRE, shapes, SpeedReport(cells, settings, {}), memory)


def test_planted_exponents_are_found_beside_the_counted() -> None:
    report = planted(lambda s: 3e-9 * s.M**1.7 * s.b**0.8 * s.D**0.25)
    found = {e.axis: e for e in exponents_of(report)}
    assert {a: e.measured.slope for a, e in found.items()} == pytest.approx(
        {"N": 0.0, "M": 1.7, "b": 0.8, "D": 0.25}, abs=1e-12
    )
    assert {a: e.counted.slope for a, e in found.items()} == pytest.approx(
        {"N": 0.0, "M": 2.0, "b": 1.0, "D": 0.0}, abs=1e-12
    )
    assert found["M"].sizes == (16, 32, 64, 128, 256)


def test_the_table_has_each_exponent_with_its_own_interval() -> None:
    report = planted(lambda s: 3e-9 * s.M**1.7 * (1.3 if s.M in (32, 64) else 1.0))
    (found,) = [e for e in exponents_of(report) if e.axis == "M"]
    measured = found.measured
    assert measured.low + 0.2 < measured.slope < measured.high - 0.2
    (row,) = [row for row in exponent_table(report).texts if row[1] == "M"]
    first, last = (1000 * 3e-9 * m**1.7 for m in (16, 256))
    assert row[2:] == [
        "16–256",
        f"{first:.3g}–{last:.3g}",
        f"{measured.slope:.2f}",
        f"{measured.low:.2f} to {measured.high:.2f}",
        "2.00",
    ]


def test_an_interval_is_of_the_residuals() -> None:
    """Residuals 1/6, −1/3, 1/6 of a slope of 3/2; t at one degree of freedom is 12.706."""
    found = fit_slope([1.0, math.e, math.e**2], [1.0, math.e, math.e**3])
    half = 12.7062 * math.sqrt((1 / 6) / 2)
    assert found == pytest.approx((1.5, 1.5 - half, 1.5 + half, 3), rel=1e-5)


def test_intervals_cover_the_planted_exponent_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    x = 2.0 ** np.arange(5)
    fits = [fit_slope(x, x**1.3 * np.exp(0.05 * rng.standard_normal(5))) for _ in range(2000)]
    assert np.mean([f.low <= 1.3 <= f.high for f in fits]) == pytest.approx(0.95, abs=0.015)


def test_a_ladder_is_of_one_axis_and_of_cells_with_a_time() -> None:
    report = planted(lambda s: s.M * 1e-3)
    first, last = (report.ladder("M", "e_step")[i][1] for i in (0, -1))
    first.error = "the process ended"
    last.rounds = [Round((1.0,), 0.9, False)]
    assert [shape.M for shape, _ in report.ladder("M", "e_step")] == [32, 64, 128]
    assert all(shape.b == CENTRE.b for shape, _ in report.ladder("M", "e_step"))
    report.ladder("M", "e_step")[0][1].error = "too"
    assert "M" not in [e.axis for e in exponents_of(report)]


def test_the_work_of_a_shape_is_what_cost_counts() -> None:
    problem = problem_of(CENTRE)
    size = Size(n=CENTRE.n, M=CENTRE.M, D=CENTRE.D, b=CENTRE.b)
    cost = count(build_method("t-svgp", {}), problem.model(), size)
    for step, tally in (("e_step", cost.e_step), ("m_step", cost.m_step)):
        work = work_of(problem, "t-svgp", step)
        assert work.flops == pytest.approx(tally.flops, rel=1e-3)


def test_rungs_hold_the_centre_once_and_vary_one_size() -> None:
    found = rungs(CENTRE, ["M", "D"], 3)
    assert next(iter(found.values())) == CENTRE
    assert [(s.M, s.D) for s in found.values()] == [(64, 4), (32, 4), (128, 4), (64, 2), (64, 8)]
    softmax = Shape("softmax", 4000, 4, 64, 256, 16, 4, 10)
    assert [s.classes for s in rungs(softmax, ["P"], 3).values()] == [4, 2, 8]


@pytest.mark.parametrize(
    ("axes", "count", "words"),
    [
        (["M"], 2, "at least 3"),
        (["Q"], 3, "unknown axis of scaling 'Q'"),
        (["P"], 3, "one latent function"),
        (["D"], 9, "cannot be"),
        (["N"], 11, "a batch no more than the data"),
    ],
)
def test_rungs_that_cannot_be_are_refused(axes: list[str], count: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        rungs(CENTRE, axes, count)


def test_planted_costs_of_rows_are_found() -> None:
    rows = [128.0, 512.0, 4096.0]
    found = fit_affine(rows, [1e-3 + 2e-8 * b for b in rows])
    assert found == pytest.approx((1e-3, 2e-8), rel=1e-9)
    falling = fit_affine(rows, [3.0, 2.0, 1.0])
    assert falling.per_row == 0.0 and falling.fixed > 0


def test_a_law_is_checked_at_the_largest_batch_which_it_has_not_seen() -> None:
    (law,) = laws_of(planted(lambda s: 1e-3 + 1e-6 * s.b))
    assert law.seconds == pytest.approx((1e-3, 1e-6), rel=1e-9)
    assert law.growth == pytest.approx((5 * MIB, 8 * 64), rel=1e-6)
    assert law.flops == pytest.approx((0.0, 64**2), abs=1e-3)
    assert law.before == 100 * MIB
    assert law.check == pytest.approx((1024, 0.0, 0.0), abs=1e-6)
    (bent,) = laws_of(planted(lambda s: 1e-3 + 1e-6 * s.b + (0.5 if s.b == 1024 else 0.0)))
    assert bent.check.seconds == pytest.approx((1e-3 + 1e-6 * 1024) / (0.502024) - 1, rel=1e-6)


def test_a_law_needs_a_rung_to_hold_out() -> None:
    report = planted(lambda s: 1e-6 * s.b)
    for shape, cell in report.ladder("b", "e_step"):
        if shape.b >= 512:
            cell.error = "no"
    assert len(report.ladder("b", "e_step")) == 3
    assert laws_of(report) == []


def test_a_prediction_by_hand() -> None:
    law = Law(
        "e_step", Affine(0.5, 1e-6), Affine(3e6, 1e3), Affine(7e6, 2e4), 10**8, Check(1, 0, 0)
    )
    found = predict(law, CENTRE, 10**9, 1000, 1e6)
    reduced = 8 * (64**2 + 64)
    assert found.rounds == 10 and found.reduced_bytes == reduced
    assert found.seconds == pytest.approx(0.5 + 1.0 + 10 * reduced / 1e6)
    assert found.flops == pytest.approx(1000 * 7e6 + 2e13)
    held = 8 * 10**6 * (4 + 1)
    assert found.bytes_a_worker == pytest.approx(1e8 + 3e6 + 256e3 + held + 2 * reduced)
    alone = predict(law, CENTRE, 10**9, 1, 1e6)
    assert (alone.rounds, alone.reduced_bytes) == (0, 0)
    assert alone.seconds == pytest.approx(0.5 + 1000.0)
    softmax = predict(law, CENTRE._replace(classes=10), 10**9, 1000, 1e6)
    assert softmax.reduced_bytes == 10 * reduced


def test_cells_run_each_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.benchmarks.timing.compare.ROUND_S", 0.01)
    centre = Shape("gaussian", 60, 3, 6, 12, 16)
    unfinished: list[tuple[bool, int]] = []
    report = run_scaling(
        centre, "numpy", "t-svgp", ["b"], 3, 1, max_other_cores=1e9,
        on_step=lambda x: unfinished.append((x.speed.interrupted, len(x.speed.cells))),
    )  # fmt: skip
    assert unfinished == [(True, count) for count in range(1, 7)]
    assert report.speed.ok and not report.speed.interrupted
    assert [(c.problem, c.step) for c in report.speed.cells] == [
        (title_of(centre._replace(b=b)), step) for b in (12, 6, 24) for step in ("e_step", "m_step")
    ]
    sizes = [m for of in report.memory.values() for m in of.values()]
    assert len(sizes) == 6
    assert all(0 < m.before <= m.peak < 10**9 for m in sizes)
    assert len({m.peak for m in sizes}) > 1  # not one process's
    assert [e.sizes for e in exponents_of(report)] == [(6, 12, 24)] * 2
    record = json.loads(json.dumps(report.to_json(), allow_nan=False))
    again = ScalingReport.from_json(record)
    assert again.to_json() == record
    assert exponents_of(again) == exponents_of(report)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "scaling.json"
    report = planted(lambda s: 1e-3 + 1e-9 * s.M**2 * s.b, ("M", "b"))
    path.write_text(json.dumps(report.to_json()), encoding="utf-8")
    return path


def test_a_record_is_printed_and_drawn(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = record.with_suffix(".svg")
    arguments = ["scaling", "--load", str(record), "--figure", str(figure)]
    assert exit_code([*arguments, "--workers", "10", "--rows", "1000000"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if line.startswith("e_step ")]
    (row,) = [line for line in lines if line[1] == "M"]
    assert row[2] == "16–256" and row[-1] == "2.00"
    (row,) = [line for line in lines if line[1] == "10"]
    assert float(row[2]) == pytest.approx(1e-3 + 1e-9 * 64**2 * 1e5, rel=0.01)
    assert "b = 1024 is off by" in out and "median and quartiles" in out
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


def test_mistakes_are_one_line(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    for arguments in (
        ["--load", str(other)],
        ["--load", str(tmp_path / "none.json")],
        ["--axis", "Q"],
        ["--method", "no-such"],
        ["--likelihood", "poisson"],
        ["--rungs", "2"],
        ["--backend", "no-such"],
        ["--out", "/no/such/folder/x.json"],
        ["--load", str(record), "--figure", "x.txt"],
        ["--load", str(record), "--network", "0"],
    ):
        assert exit_code(["scaling", *arguments]) == 2, arguments
        told = capsys.readouterr().err
        assert told.startswith("error: ") and told.count("\n") == 1


def test_too_short_ladders_are_not_drawn(tmp_path: Path) -> None:
    report = planted(lambda s: 1.0, ("M",))
    for cell in report.speed.cells[2:]:
        cell.error = "no"
    with pytest.raises(UserError, match="nothing to draw"):
        draw_scaling(report, tmp_path / "x.png")
