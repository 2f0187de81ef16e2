"""Options `--adapter`, `--known-failures` and `--report`, and the line that counts answers."""

from __future__ import annotations

import datetime
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import svgp_reference
from svgp_reference.adapter import AdapterError, load_adapter, load_known_failures
from svgp_reference.comparison import Results

RESULTS = pytest.StashKey[Results]()
KNOWN_FAILURES = pytest.StashKey[dict[str, str]]()
NO_ADAPTER = (
    "no adapter: run `pytest --pyargs svgp_reference --adapter FILE`; "
    "FILE is a Python file with a function build(problem)"
)
OUTCOMES = {
    "passed": "agrees",
    "failed": "differs",
    "error": "differs",
    "xfailed": "known failure",
    "skipped": "skipped",
}
"""Outcomes of a report, by pytest's."""


def all_tests() -> dict[str, tuple[str, str]]:
    """Return problem and answer of every test, by its name PROBLEM.ANSWER."""
    return {
        f"{name}.{answer}": (name, answer)
        for name in svgp_reference.names()
        for answer in svgp_reference.load(name).answers
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("svgp-reference")
    group.addoption(
        "--adapter",
        metavar="FILE",
        help="Python file with the functions build, bound, predict, step and gradient of your library.",
    )
    group.addoption(
        "--known-failures",
        metavar="FILE",
        help="Text file of tests that are expected to fail, one per line: PROBLEM.ANSWER  # reason or link; "
        "* stands for any text",
    )
    group.addoption(
        "--report",
        metavar="FILE",
        help="JSON file to write: outcome and relative difference of every answer.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the files. A file that cannot be used ends pytest with one line and status 4."""
    adapter, known = config.getoption("--adapter"), config.getoption("--known-failures")
    report = config.getoption("--report")
    if adapter is None:
        raise pytest.UsageError(NO_ADAPTER)
    try:
        if report and not Path(report).parent.is_dir():
            raise AdapterError(f"--report {report}: no folder {Path(report).parent}")
        if report and Path(report).is_dir():
            raise AdapterError(f"--report {report}: it is a folder; name a file")
        config.stash[RESULTS] = Results(load_adapter(adapter))
        config.stash[KNOWN_FAILURES] = load_known_failures(known, all_tests()) if known else {}
    except AdapterError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header(config: pytest.Config) -> str:
    """Return the line that says what is compared."""
    problems, adapter = len(svgp_reference.names()), config.stash[RESULTS].adapter
    library = f"{adapter.library}, " if adapter.library else ""
    compared = f"{library}adapter {config.getoption('--adapter')} in {adapter.precision}"
    return f"svgp-reference {svgp_reference.__version__}: {problems} problems, {compared}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Write how many answers agree, and the file of `--report`."""
    answers = {
        report.nodeid.rpartition("[")[2][:-1]: _entry(report, outcome)
        for outcome in OUTCOMES
        for report in terminalreporter.getreports(outcome)
        if "test_library.py::test_answer[" in report.nodeid
    }
    outcomes = [entry["outcome"] for entry in answers.values()]
    terminalreporter.write_line(
        f"svgp-reference: {outcomes.count('agrees')} of {len(answers)} answers agree, "
        f"{outcomes.count('differs')} do not, {outcomes.count('known failure')} are known failures, "
        f"{outcomes.count('skipped')} were skipped"
    )
    if config.getoption("--report"):
        adapter = config.stash[RESULTS].adapter
        head = {
            "svgp_reference": svgp_reference.__version__,
            "library": adapter.library,
            "precision": adapter.precision,
            "date": datetime.date.today().isoformat(),
        }
        text = _one_line_each(head | {"answers": answers})
        Path(config.getoption("--report")).write_text(text, encoding="utf-8")


def _entry(report: pytest.TestReport, outcome: str) -> dict[str, Any]:
    """Return outcome, relative difference (None without a finite one) and reason of an answer."""
    difference: Any = dict(report.user_properties).get("relative_difference", math.inf)
    crash = getattr(report.longrepr, "reprcrash", None)
    reason = {
        "passed": "",
        "xfailed": getattr(report, "wasxfail", ""),
        "skipped": str(report.longrepr[2] if isinstance(report.longrepr, tuple) else ""),
    }.get(outcome, crash.message if crash else str(report.longrepr))
    return {
        "outcome": OUTCOMES[outcome],
        "difference": float(f"{difference:.1e}") if math.isfinite(difference) else None,
        "reason": re.sub(r"^(reason|Skipped|Failed): ", "", reason),
    }


def _one_line_each(report: dict[str, Any]) -> str:
    """Return a report as JSON with one line per answer, so that two of them can be compared."""
    head = [f" {json.dumps(k)}: {json.dumps(report[k])}" for k in report if k != "answers"]
    answers = [
        f"  {json.dumps(test)}: {json.dumps(entry, ensure_ascii=False)}"
        for test, entry in sorted(report["answers"].items())
    ]
    return "{\n" + ",\n".join([*head, ' "answers": {\n' + ",\n".join(answers) + "\n }"]) + "\n}\n"
