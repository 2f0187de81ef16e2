"""`make mutants`: put every declared fault into a copy of the tree and see which test notices.

    python tests/mutants/run.py --only batches --jobs 2

The verdicts are kept in RESULTS.md beside this file; a partial run replaces the rows that it ran.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import fault_files
import typer
from fault_files import ROOT, Fault, StaleError, read_faults
from killing import Verdict, copies, judged, over_copies
from result_table import RESULTS, read_rows, row_of, standing, write_rows
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tree_copies import TreeCopy

LIMIT_S = 180.0


def main(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="TEXT", help="An area, or text in a fault; repeatable."),
    ] = None,
    left: Annotated[
        bool, typer.Option("--left", help="Only faults that the table has no kill of.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1)] = os.cpu_count() or 1,
    limit: Annotated[
        float, typer.Option("--limit", metavar="S", help="Longer than this is a kill.")
    ] = LIMIT_S,
) -> None:
    """Judge every fault; end with 1 where one is not noticed or no longer fits."""
    console, faults = Console(), read_faults()
    rows = standing(read_rows(RESULTS), faults, ROOT)
    chosen = [
        fault
        for fault in faults
        if (not only or any(matches(fault, text) for text in only))
        and not (left and rows.get((fault.area, fault.says), ("",))[0] == "killed")
    ]
    if not chosen:
        console.print("no fault to judge")
        return
    judged_as = {(x.area, x.says): x.judged_as(ROOT) for x in chosen}  # what the copies hold
    red = 0
    with copies(ROOT, min(jobs, len(chosen))) as made:
        console.print(f"{len(chosen)} of {len(faults)} faults; first their tests without any")
        if wrong := unchanged_failures(made[0], chosen):
            console.print(wrong, markup=False)
            raise typer.Exit(2)
        with Progress(
            *(TextColumn("{task.description}"), BarColumn()),
            *(MofNCompleteColumn(), TimeElapsedColumn()),
            console=console,
        ) as progress:
            task = progress.add_task("faults", total=len(chosen))
            for fault, verdict in over_copies(
                made, chosen, lambda copy, fault: judge(copy, fault, limit)
            ):
                red += verdict.status != "killed"
                rows[fault.area, fault.says] = row_of(verdict, judged_as[fault.area, fault.says])
                write_rows(RESULTS, faults, rows)
                progress.console.print(line(fault, verdict), soft_wrap=True)
                progress.advance(task)
    console.print(f"{len(chosen) - red} killed, {red} not; {RESULTS.relative_to(ROOT)} has all")
    raise typer.Exit(int(red > 0))


def matches(fault: Fault, text: str) -> bool:
    """Whether a fault is of an area or, where no area has that name, has a text somewhere."""
    if (fault_files.FOLDER / f"{text}.toml").exists():
        return text == fault.area
    return text in f"{fault.file} {fault.function} {fault.says}"


def unchanged_failures(copy: TreeCopy, faults: Sequence[Fault]) -> str:
    """What pytest says of the tests on sources without a fault; empty where they pass."""
    for k in dict.fromkeys(fault.k for fault in faults):
        tests = dict.fromkeys(test for fault in faults if fault.k == k for test in fault.tests)
        outcome = copy.test(list(tests), k, 3600.0, options=())
        if outcome.code != 0:
            return outcome.output
    return ""


def judge(copy: TreeCopy, fault: Fault, limit: float) -> Verdict:
    """The verdict on one fault."""
    try:
        text = fault.applied((copy.folder / fault.file).read_text(encoding="utf-8"))
    except (StaleError, OSError) as error:
        return Verdict("stale", str(error))
    return judged(copy, fault.file, text, fault.tests, fault.k, limit)


def line(fault: Fault, verdict: Verdict) -> str:
    """A verdict for the terminal."""
    colour = "green" if verdict.status == "killed" else "red"
    told = f"{Path(fault.file).name} {fault.function}: {fault.says}"
    by = f" ({verdict.by})" if verdict.by else ""
    return f"[{colour}]{verdict.status}[/] {verdict.seconds:.0f} s {escape(told + by)}"


if __name__ == "__main__":
    typer.run(main)
