"""The least time of a step: its work against hand counts, its rates measured, its shares added up."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svgpbench.backends import load_backend, new_backend
from svgpbench.benchmarks.timing import SpeedReport, run_speed
from svgpbench.benchmarks.timing.floor import StepWork, least_seconds, spend, work_of
from svgpbench.benchmarks.timing.floor_run import BLAS, add_floor, tiny_problem
from svgpbench.benchmarks.timing.problems import SHAPES, make_problem
from svgpbench.benchmarks.timing.process import ProcessFailed, TimedProcess
from svgpbench.benchmarks.timing.rates import (
    CHAIN,
    Rates,
    Sizes,
    _through_blas,
    _through_ops,
    best_of,
    measure_blas,
    measure_ops,
)
from svgpbench.benchmarks.timing.report import TimedCell
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.benchmarks.timing.tables import floor_table, rates_table, times_table
from svgpbench.errors import UserError
from svgpbench.libraries.steps import HELD_STEPS
from svgpbench.ops import Ops

M, b, D = SHAPES["tiny"].M, SHAPES["tiny"].b, SHAPES["tiny"].D
NUMBER = 8  # bytes


def test_work_of_an_e_step_by_hand() -> None:
    """Distances for K(Z, Z) and K(Z, X); L and the factor of B; W, and a solve with it; W diag(β) Wᵀ."""
    work = work_of(make_problem("tiny"), "t-svgp", "e_step")
    assert work.choleskys == 2 * (M**3 // 3)
    assert work.solves == 2 * M**2 * b + M**2
    assert work.products == 2 * D * M * (M + b) + 2 * M**2 * b + 6 * M * b + 4 * M**2
    theta = M * D + D + 1 + 1  # Z, lengthscales, variance, noise variance
    batch, state, rates = b * D + b + b, M**2 + M + 1, 2  # c, C and how often a rate was halved
    assert work.least_bytes == NUMBER * (theta + batch + state + rates + state)
    assert work.least_bytes < work.unfused_bytes


def test_work_of_held_steps_is_of_one_of_them() -> None:
    """W once a call; a step is left with one factor and one solve with W."""
    work = work_of(make_problem("tiny"), "t-svgp", "e_step_held")
    assert work.choleskys == M**3 // 3
    assert work.solves == M**2 * b / HELD_STEPS + M**2 * b + M**2


RATES = Rates(products=100.0, choleskys=10.0, solves=20.0, cached=8.0, memory=4.0)
WORK = StepWork(300.0, 20.0, 40.0, 1e9, least_bytes=16.0, unfused_bytes=1e9)


def test_least_time_is_of_arithmetic_or_of_bytes_and_of_nothing_else() -> None:
    assert least_seconds(WORK, RATES) == 300 / 100 + 20 / 10 + 40 / 20
    assert least_seconds(WORK._replace(least_bytes=800.0), RATES) == 800 / 8
    assert least_seconds(WORK._replace(least_bytes=800.0), RATES._replace(memory=16.0)) == 50


def test_a_step_is_spent_on_the_floor_slower_rates_dispatch_and_the_rest() -> None:
    slow = Rates(50.0, 10.0, 10.0, 1.0, 1.0)
    other = Rates(75.0, 40.0, 5.0, 2.0, 2.0)
    spent = spend(30.0, WORK, {"slow": slow, "other": other, BLAS: RATES}, "slow", 1.5)
    machine = 300 / 100 + 20 / 40 + 40 / 20
    assert spent.floor == machine
    assert spent.own_rates == 300 / 50 + 20 / 10 + 40 / 10 - machine
    assert (spent.dispatch, spent.seconds) == (1.5, 30.0)
    assert spent.rest == 30.0 - spent.floor - spent.own_rates - 1.5
    unknown = spend(30.0, WORK, {"slow": slow}, "slow", None)
    assert (unknown.own_rates, unknown.dispatch, unknown.seconds) == (0.0, 0.0, 30.0)


@pytest.mark.parametrize("sizes", [Sizes(12, 20), Sizes(12, 20, 3)], ids=str)
def test_a_call_does_the_work_that_its_rate_is_of(sizes: Sizes) -> None:
    ops: Any = new_backend("counting")
    for work in _through_ops(ops, sizes):
        _, counted = ops.count(work.call)
        of = {
            "products": counted.product_flops,
            "choleskys": counted.cholesky_flops,
            "solves": counted.solve_flops,
            "cached": counted.bytes,
            "memory": counted.bytes,
        }
        assert of[work.kind] == work.amount
        if work.kind in ("products", "choleskys", "solves"):
            assert counted.flops == work.amount


def test_blas_does_the_work_of_the_backends_but_for_chains_and_copies() -> None:
    sizes = Sizes(12, 20)
    ours = [
        (w.kind, w.amount if w.kind in ("cached", "memory") else w.amount / CHAIN)
        for w in _through_ops(new_backend("counting"), sizes)
    ]
    theirs = [(w.kind, w.amount) for w in _through_blas(sizes, 1)]
    pairs = (2 * 12 * 20 * 12 * 2, 2 * 12 * 12 * 20)  # through Ops, two products a link
    assert sorted(theirs) == sorted((k, pairs[1] if a == pairs[0] else a) for k, a in ours)


@pytest.mark.parametrize("P", [1, 3])
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_chains_stay_finite(backend: str, P: int) -> None:
    """Denormal numbers and NaN have rates of their own."""
    ops: Ops = load_backend(backend)
    for work in _through_ops(ops, Sizes(12, 20, P)):
        if work.kind != "memory":
            values = ops.to_numpy(work.call())
            assert (abs(values).max() < 1e6) and (abs(values).max() > 1e-6)


def test_rates_are_of_a_machine() -> None:
    sizes = Sizes(96, 128)
    found = [measure_blas(sizes, 1), measure_ops(load_backend("numpy"), sizes)]
    assert all(rate > 0 for rates in found for rate in rates)
    machine = best_of(found)
    assert machine.products > machine.choleskys  # of one measurement a busy machine makes anything
    assert all(machine[i] == max(rates[i] for rates in found) for i in range(len(Rates._fields)))


def test_every_timed_problem_has_a_tiny_one_of_its_likelihood() -> None:
    for name, shape in SHAPES.items():
        tiny = tiny_problem(name)
        assert tiny is not None and SHAPES[tiny].likelihood == shape.likelihood


@pytest.fixture(scope="module")
def small_run() -> SpeedReport:
    """Really timed and really measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("svgpbench.benchmarks.timing.compare.ROUND_S", 0.01)
        report = run_speed(
            ["tiny", "reg-M100"],
            ["numpy"],
            ["e_step", "e_step_held"],
            repeats=1,
            methods=["t-svgp"],
            max_other_cores=1e9,
        )
    add_floor(report)
    return report


@pytest.mark.long
def test_the_floor_is_below_every_measured_time(small_run: SpeedReport) -> None:
    assert set(small_run.rates) == {"tiny", "reg-M100"}
    assert all(set(found) == {BLAS, "numpy"} for found in small_run.rates.values())
    for cell in small_run.cells:
        spent, times = small_run.spent(cell), cell.times()
        assert spent is not None and times is not None
        assert 0 < spent.floor < times.least
        assert spent.own_rates >= 0 and spent.dispatch > 0
        assert spent.seconds == pytest.approx(times.median)
    tiny, small = (c for c in small_run.cells if c.step == "e_step")
    assert tiny.dispatch_s == small.dispatch_s  # measured once, where arrays are tiny
    held = small_run.cells[1].dispatch_s
    assert held is not None and tiny.dispatch_s is not None
    assert held < tiny.dispatch_s  # of one of the steps in a call
    assert tiny.work is not None and small.work is not None
    assert small.work.flops > 100 * tiny.work.flops


def test_what_has_no_floor_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> StepWork:
        raise UserError("shapes have no numbers")

    def die(self: TimedProcess) -> None:
        raise ProcessFailed("the process ended")

    monkeypatch.setattr("svgpbench.benchmarks.timing.floor_run.work_of", refuse)
    monkeypatch.setattr(TimedProcess, "wait_until_ready", die)
    cell = TimedCell("tiny", "e_step", "numpy", "t-svgp", "t-svgp", False)
    refused = replace(cell, step="m_step", error="this backend has no M-step")
    settings = {"threads": 1, "device": "cpu", "max_other_cores": 0.1}
    report = SpeedReport([cell, refused], settings, {})
    add_floor(report)
    assert report.without_floor == {  # and no line on what did not run
        "tiny e_step t-svgp": "shapes have no numbers",
        BLAS: "the process ended",
        "numpy": "the process ended",
    }
    assert "numpy: no floor: the process ended" in report.notes()
    assert SpeedReport.from_json(report.to_json()).without_floor == report.without_floor
    report.note_cores("no free core: another run has core 0 too")
    report.note_cores("")
    report.note_cores("no free core: another run has core 0 too")
    assert SpeedReport.from_json(report.to_json()).shared_cores == report.shared_cores
    (line,) = (line for line in report.notes() if "disturbed:" in line)
    assert line == "times may be disturbed: no free core: another run has core 0 too"
    stopped = replace(report, interrupted=True, without_floor={})
    add_floor(stopped)
    assert stopped.without_floor == {}


def test_a_count_of_work_that_is_interrupted_leaves_the_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object) -> StepWork:
        raise KeyboardInterrupt

    monkeypatch.setattr("svgpbench.benchmarks.timing.floor_run.work_of", stop)
    cell = TimedCell("tiny", "e_step", "numpy", "t-svgp", "t-svgp", False)
    report = SpeedReport([cell], {"threads": 1, "device": "cpu", "max_other_cores": 0.1}, {})
    with suppress(KeyboardInterrupt):  # which would end pytest
        add_floor(report)
    assert report.interrupted and not report.rates


def test_floors_stand_under_their_headings(small_run: SpeedReport) -> None:
    table, cell = floor_table(small_run), small_run.cells[2]
    spent = small_run.spent(cell)
    assert spent is not None and cell.work is not None
    row = dict(zip(table.header, table.texts[2], strict=True))
    assert (row["problem"], row["step"], row["who"]) == ("reg-M100", "e_step", "numpy t-svgp")
    told = [
        1000 * x
        for x in (
            spent.seconds,
            spent.floor,
            spent.own_rates,
            spent.dispatch,
        )  # printed to three digits
    ]  # printed to three digits
    names = ("median, ms", "floor", "own rates", "dispatch")
    assert [float(row[name]) for name in names] == pytest.approx(told, rel=0.0051)
    assert float(row["× floor"]) == pytest.approx(spent.seconds / spent.floor, rel=0.0051)
    assert float(row["GFLOP/s"]) == pytest.approx(cell.work.flops / spent.seconds / 1e9, rel=0.0051)
    assert rates_table(small_run).texts[1][:2] == ["tiny", "numpy"]


def test_a_record_is_the_report_again(small_run: SpeedReport) -> None:
    bad = TimedCell(
        "tiny", "m_step", "torch", "m", "f", True, error="the process ended", alone=True
    )
    bad.rounds = [Round.measured((3.0, 1.0), 0.5, False)]
    small_run = replace(small_run, cells=[*small_run.cells, bad], interrupted=True)
    record = json.loads(json.dumps(small_run.to_json(), allow_nan=False))
    again = SpeedReport.from_json(record)
    assert again.to_json() == record
    assert again.rates == small_run.rates
    assert [c.work for c in again.cells] == [c.work for c in small_run.cells]
    for make in (times_table, floor_table, rates_table):
        assert make(again).texts == make(small_run).texts
    assert again.notes() == small_run.notes()


OLD = sorted((Path(__file__).parents[3] / "results" / "speed").glob("*.json"))


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_records_that_are_kept_are_read(path: Path) -> None:
    """What a record holds is held, whenever it was written."""
    record = json.loads(path.read_text(encoding="utf-8"))
    again = SpeedReport.from_json(record).to_json()
    assert {key: again[key] for key in record if key != "cells"} == {
        key: value for key, value in record.items() if key != "cells"
    }
    for kept, found in zip(record["cells"], again["cells"], strict=True):
        assert {key: found[key] for key in kept} == kept


@pytest.mark.slow
def test_every_rate_of_compiled_torch_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch._dynamo.config, "fail_on_recompile_limit_hit", True)
    ops = load_backend("torch", "compile", "float64", "cpu")
    calls = [work.call() for work in _through_ops(ops, Sizes(M, b, P=2))]
    assert len(calls) > torch._dynamo.config.recompile_limit
