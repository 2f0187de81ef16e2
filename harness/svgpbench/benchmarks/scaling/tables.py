"""Tables of a scaling report: exponents of the growth of steps, and predictions."""

from __future__ import annotations

from collections.abc import Sequence

from svgpbench.benchmarks.scaling.laws import exponents_of, laws_of, predict
from svgpbench.benchmarks.scaling.measure import ScalingReport
from svgpbench.output.number_formats import milliseconds
from svgpbench.output.table import Column, Table, number


def exponent_table(report: ScalingReport) -> Table:
    """Return a table of the exponents of measured times, next to those of counted FLOPs."""
    rows = []
    for exponent in exponents_of(report):
        ends = [cell.times() for _, cell in report.ladder(exponent.axis, exponent.step)]
        first, last = (milliseconds(x.median) if x else "" for x in (ends[0], ends[-1]))
        rows.append(
            [
                *(exponent.step, exponent.axis),
                *(f"{exponent.sizes[0]}–{exponent.sizes[-1]}", f"{first}–{last}"),
                *(exponent.measured.slope, exponent.measured, exponent.counted.slope),
            ]
        )
    columns = (
        *(Column("step", wrap=False), Column("in"), number("sizes"), number("milliseconds")),
        number("exponent", ".2f"),
        number("95 %", lambda slope: f"{slope.low:.2f} to {slope.high:.2f}"),
        number("counted", ".2f"),
    )
    return Table(columns, rows, "How steps grow")


def prediction_table(
    report: ScalingReport, N: int, workers: Sequence[int], network: float
) -> Table:
    """Return a table of predictions for one step over N rows in k shards, reduced in a tree."""
    rows = []
    for law in laws_of(report):
        for k in workers:
            cost = predict(law, report.centre, N, k, network)
            rows.append(
                [
                    *(law.step, k, cost.seconds, cost.flops / 1e15),
                    *(cost.bytes_a_worker / 1e9, cost.reduced_bytes / 1e6, cost.rounds),
                ]
            )
    columns = (
        *(Column("step", wrap=False), number("workers")),
        *(number(name, ".3g") for name in ("seconds", "PFLOP", "GB a worker", "MB reduced")),
        number("rounds"),
    )
    return Table(columns, rows, f"One step over N = {N:.3g}")
