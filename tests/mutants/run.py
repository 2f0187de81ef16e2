"""`make mutants`: put every declared fault into a copy of the tree and see which test notices.

    python tests/mutants/run.py --only batches --jobs 2

Verdicts are kept in build/mutants, for `--left`.
A verdict holds while the fault, its tests and its file stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import fault_files
import typer
from fault_files import ROOT, Fault, StaleError, read_faults
from killing import Verdict, copies, judge_all, judged, read_verdicts
from rich.console import Console
from tree_copies import TreeCopy

VERDICTS = ROOT / "build" / "mutants" / "faults.jsonl"
LIMIT_S = 180.0


def main(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="TEXT", help="An area, or text in a fault; repeatable."),
    ] = None,
    left: Annotated[
        bool, typer.Option("--left", help="Only faults that no run has killed as they are now.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1)] = os.cpu_count() or 1,
    limit: Annotated[
        float, typer.Option("--limit", metavar="S", help="Longer than this is a kill.")
    ] = LIMIT_S,
) -> None:
    """Judge every fault; end with 1 where one is not noticed or no longer fits."""
    console, faults = Console(), read_faults()
    known = read_verdicts(VERDICTS)
    chosen = {
        fault.judged_as(ROOT): fault  # as the copies have it
        for fault in faults
        if not only or any(matches(fault, text) for text in only)
    }
    if left:
        chosen = {
            key: fault
            for key, fault in chosen.items()
            if key not in known or known[key].status != "killed"
        }
    if not chosen:
        console.print("no fault to judge")
        return
    with copies(ROOT, min(jobs, len(chosen))) as made:
        console.print(f"{len(chosen)} of {len(faults)} faults; first their tests without any")
        if wrong := unchanged_failures(made[0], list(chosen.values())):
            console.print(wrong, markup=False)
            raise typer.Exit(2)
        known = judge_all(
            console, made, chosen, lambda copy, fault: judge(copy, fault, limit), _title, VERDICTS
        )
    red = sum(known[key].status != "killed" for key in chosen)
    console.print(f"{len(chosen) - red} killed, {red} not")
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


def _title(fault: Fault) -> str:
    return f"{Path(fault.file).name} {fault.function}: {fault.says}"


if __name__ == "__main__":
    typer.run(main)
