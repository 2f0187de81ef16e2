"""Tables of a speed report: times beside peers, times beside the floor, and rates of the machine."""

from __future__ import annotations

from svgpbench.benchmarks.timing.rates import Rates, best_of
from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.output.number_formats import milliseconds
from svgpbench.output.table import Column, Styled, Table, number

CONVENTION = (
    "floor: products 2mnk, each in full, Choleskys n³/3 and triangular solves n²k at the best rates seen, "
    "or arguments and results moved, whichever is longer; elementwise work and quadrature are outside.\n"
    "own rates: what the backend's own slower products, Choleskys and solves take more; dispatch: the step "
    "at tiny shapes; rest: memory, elementwise work, small operations. P C S E: FLOPs in products, "
    "Choleskys, solves, elementwise"
)
STEP_OF_CELL = tuple(Column(name, wrap=False) for name in ("problem", "step", "who"))


def times_table(report: SpeedReport) -> Table:
    """Return a table of milliseconds per step. Ratios above 1: faster than a peer's fastest method."""
    peers = list(dict.fromkeys(cell.source for cell in report.cells if cell.peer))
    rows = []
    for cell in report.cells:
        times = cell.times()
        if times is None or cell.untimed:
            continue
        peer_cells = (report.fastest(peer, cell) for peer in peers)
        clean = sum(timed_round.clean for timed_round in cell.rounds)
        rows.append(
            [
                *(cell.problem, cell.step, cell.title),
                *(times.median, times.least, times, cell.first_call_s),
                f"{clean}/{len(cell.rounds)}",
                *(cell.ratio_to(peer_cell) if peer_cell else None for peer_cell in peer_cells),
            ]
        )
    columns = (
        *STEP_OF_CELL,
        number("median", milliseconds, "ms"),
        number("min", milliseconds),
        number("quartiles", lambda x: f"{milliseconds(x.q1)}–{milliseconds(x.q3)}"),
        number("first call", ".2f", "s"),
        number("rounds"),
        *(number(f"× {p}", lambda x: f"{x.median:.2f} ({x.q1:.2f}–{x.q3:.2f})") for p in peers),
    )
    return Table(columns, rows, "Milliseconds a step")


def floor_table(report: SpeedReport) -> Table:
    """Return a table of milliseconds per step, whose shares add up to the median."""
    rows = []
    for cell in report.cells:
        spent, work = report.spent(cell), cell.work
        if spent is None or work is None:
            continue
        kinds = (work.products, work.choleskys, work.solves, work.elementwise)
        rows.append(
            [
                *(cell.problem, cell.step, cell.title),
                *(spent.seconds, spent.floor, spent.seconds / spent.floor),
                *(spent.own_rates, spent.dispatch, spent.rest),
                work.flops / spent.seconds / 1e9,
                " ".join(f"{100 * flops / work.flops:.0f}" for flops in kinds),
            ]
        )
    columns = (
        *STEP_OF_CELL,
        *(number("median", milliseconds, "ms"), number("floor", milliseconds)),
        number("× floor", ".3g"),
        *(number(name, milliseconds) for name in ("own rates", "dispatch", "rest")),
        *(number("GFLOP/s", ".3g"), number("P C S E", unit="%")),
    )
    return Table(columns, rows, "Beside the floor")


def rates_table(report: SpeedReport) -> Table:
    """Return a table of the rates of each backend and BLAS at each problem's shapes, and the best."""
    rows = []
    for problem, by_source in report.rates.items():
        rows += [[problem, source, *_billions(rates)] for source, rates in by_source.items()]
        best = [problem, "best", *_billions(best_of(list(by_source.values())))]
        rows.append([Styled(value, "bold") for value in best])
    columns = (
        *(Column("problem", wrap=False), Column("rates of", wrap=False)),
        number("products", ".3g", "GFLOP/s"),
        *(number("Choleskys", ".3g"), number("triangular solves", ".3g")),
        *(number("cached", ".3g", "GB/s"), number("memory", ".3g")),
    )
    return Table(columns, rows, "Rates of the machine")


def _billions(rates: Rates) -> list[float]:
    return [rate / 1e9 for rate in rates]
