"""Results in place of the work of commands that take minutes, with lines as long as they get."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from committed_records import RESULTS, committed

from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.checks.completeness import Skip
from svgpbench.checks.identities import IdentityResult
from svgpbench.checks.matrix import MatrixEntry
from svgpbench.checks.quick import BackendAgreement, QuickReport
from svgpbench.checks.report import COLUMNS, Report
from svgpbench.checks.rounding import Rounding
from svgpbench.runs.verification import Verdict
from svgpbench.site.building import Built

TIMED = RESULTS / "speed" / "cpu-M500.json"


def run_checks(*, full: bool, **_: object) -> Report:
    """Return a report of a check; a full one has all that can go wrong."""
    case = "diagonal-precision projected-b | bernoulli-probit | matern52 | float32"
    pair = ("numpy", "jax")
    entries = [MatrixEntry(case, group, 1.5e-8, f"{group}/elbo", pair, 1e-4) for group in COLUMNS]
    statement = "the bound of a collapsed method is the best of all q"
    identities = [IdentityResult("narrower is tighter", statement, "jax", 1e-12, 1e-8)]
    report = Report([*pair], full, entries, identities, [Rounding(15, 1e-6, 1e-5, 1.0)], [])
    if full:
        report.failures.append("a process")
        report.notes.append("a note")
        report.skips.append(Skip("slate", "identity whitening keeps values", "", "no autodiff"))
    return report


def quick_check(*_: object, **__: object) -> QuickReport:
    return QuickReport(10, [BackendAgreement("jax", 1.5, {"values": 0.0}, ["a difference"])])


def verify(*_: object) -> list[Verdict]:
    records = committed("adam2021-fig3")[:3]
    return [Verdict(one, "chaotic", 1.5e-3, 2.5e-2, "its worker was killed") for one in records]


STAND_INS: dict[str, dict[str, Callable[..., Any]]] = {
    "check ": {
        "svgpbench.checks.run_checks": run_checks,
        "svgpbench.checks.quick_check": quick_check,
    },
    "verify --results committed": {"svgpbench.runs.verification.verify": verify},
    "speed --no-floor": {
        "svgpbench.cli.speed.run_speed": lambda *_, **__: SpeedReport.from_json(
            json.loads(TIMED.read_text("utf-8"))
        ),
    },
    "report --results committed": {
        "svgpbench.papers.judged_claims.judged_and_drawn": lambda *_: nullcontext(([], None)),
        "svgpbench.site.building.build_site": lambda *_: Built(
            120, 13_000_000, 4_000_000, ("an experiment with too few records, " * 5,)
        ),
    },
}
"""Functions by the beginning of a command line and by name."""


def put_in(line: str, patch: pytest.MonkeyPatch) -> None:
    """Let a command line have its stand-ins."""
    for beginning, functions in STAND_INS.items():
        if line.startswith(beginning):
            for name, function in functions.items():
                patch.setattr(name, function)
