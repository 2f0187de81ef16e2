"""Tables, 140 columns wide, of the floor of each step beside its time, and of the rates behind it."""

from __future__ import annotations

from rich.table import Table

from svgpbench.benchmarks.timing.rates import Rates, best_of
from svgpbench.benchmarks.timing.report import SpeedReport, milliseconds

CONVENTION = (
    "floor: products 2mnk, each in full, Choleskys n³/3 and triangular solves n²k at the best rates seen, "
    "or arguments and results moved, whichever is longer; elementwise work and quadrature are outside.\n"
    "own rates: what the backend's own slower products, Choleskys and solves take more; dispatch: the step "
    "at tiny shapes; rest: memory, elementwise work, small operations. P C S E: FLOPs in products, "
    "Choleskys, solves, elementwise"
)


def floor_table(report: SpeedReport) -> Table:
    """Return a table of milliseconds per step, whose shares add up to the median."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("problem", "step", "who"):
        table.add_column(name, no_wrap=True)
    for name in ("median, ms", "floor", "× floor", "own rates", "dispatch", "rest", "GFLOP/s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("P C S E, %", justify="right", no_wrap=True)
    for cell in report.cells:
        spent = report.spent(cell)
        if spent is None or cell.work is None:
            continue
        work = cell.work
        kinds = (work.products, work.choleskys, work.solves, work.elementwise)
        table.add_row(
            *(cell.problem, cell.step, cell.title),
            *(milliseconds(spent.seconds), milliseconds(spent.floor)),
            f"{spent.seconds / spent.floor:.3g}",
            *(milliseconds(spent.own_rates), milliseconds(spent.dispatch)),
            milliseconds(spent.rest),
            f"{work.flops / spent.seconds / 1e9:.3g}",
            " ".join(f"{100 * flops / work.flops:.0f}" for flops in kinds),
        )
    return table


def rates_table(report: SpeedReport) -> Table:
    """Return a table of the rates of each backend and BLAS at each problem's shapes, and the best."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("problem", "rates of"):
        table.add_column(name, no_wrap=True)
    for name in (
        *("products, GFLOP/s", "Choleskys", "triangular solves"),
        *("cached, GB/s", "memory"),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for problem, found in report.rates.items():
        for who, rates in found.items():
            table.add_row(problem, who, *_billions(rates))
        table.add_row(problem, "best", *_billions(best_of(list(found.values()))), style="bold")
    return table


def _billions(rates: Rates) -> list[str]:
    return [f"{rate / 1e9:.3g}" for rate in rates]
