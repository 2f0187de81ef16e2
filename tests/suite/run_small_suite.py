"""Run the small suite into a folder, as a process that can be stopped: `run_small_suite.py FOLDER`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from small_suite import BUDGETS, MS, small_suite

from svgpbench.runs.pool import run_cells
from svgpbench.suite.cells import SuiteRun
from svgpbench.suite.outcomes import Outcomes, finished, outcomes
from svgpbench.suite.protocol import RecordFinder, run_protocol


def run_here(folder: Path) -> bool:
    """Run what is missing; return False if it was interrupted."""
    suite, find_record = small_suite(folder), RecordFinder(folder / "runs")

    def execute(tasks: list[SuiteRun]) -> bool:
        summary = run_cells([x.cell for x in tasks], results=folder / "runs", jobs=1)
        find_record.try_all(tasks)
        return not summary.interrupted

    return run_protocol(
        suite, BUDGETS, suite.problems, suite.entrants, find_record, execute, at_once=1
    )


def outcomes_in(folder: Path) -> Outcomes:
    """Return the outcomes of the records in a folder."""
    suite, find_record = small_suite(folder), RecordFinder(folder / "runs", any_status=True)
    done = finished(suite, BUDGETS, suite.problems, suite.entrants, find_record)
    return outcomes(suite, done, MS)


if __name__ == "__main__":
    # a shell that runs the tests in the background has turned Ctrl-C off
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("whole" if run_here(Path(sys.argv[1])) else "interrupted")
