"""Options `--adapter` and `--known-failures`, and the last line of the report."""

from __future__ import annotations

import pytest

import svgp_reference
from svgp_reference.adapter import AdapterError, load_adapter, load_known_failures
from svgp_reference.comparison import Results

RESULTS = pytest.StashKey[Results | None]()
KNOWN_FAILURES = pytest.StashKey[dict[str, str]]()


def all_tests() -> dict[str, tuple[str, str]]:
    """Return problem and answer of every test, by its name PROBLEM.ANSWER."""
    return {
        f"{name}.{answer}": (name, answer)
        for name in svgp_reference.names()
        for answer in svgp_reference.load(name).answers
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("svgp-reference")
    group.addoption(
        "--adapter",
        metavar="FILE",
        help="Python file with the functions build, bound, predict, step and gradient of your library.",
    )
    group.addoption(
        "--known-failures",
        metavar="FILE",
        help="Text file of tests that are expected to fail, one per line: PROBLEM.ANSWER  # reason or link",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read both files. A file that cannot be used ends pytest with one line and status 4."""
    adapter, known = config.getoption("--adapter"), config.getoption("--known-failures")
    try:
        config.stash[RESULTS] = Results(load_adapter(adapter)) if adapter else None
        config.stash[KNOWN_FAILURES] = load_known_failures(known, all_tests()) if known else {}
    except AdapterError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header(config: pytest.Config) -> str:
    """Return the line that says what is compared."""
    problems, results = len(svgp_reference.names()), config.stash[RESULTS]
    compared = "no adapter"
    if results is not None:
        compared = f"adapter {config.getoption('--adapter')} in {results.adapter.precision}"
    return f"svgp-reference {svgp_reference.__version__}: {problems} problems, {compared}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write how many answers were compared, and how many there are."""
    counts = {
        outcome: sum(
            "test_library.py::test_answer[" in x.nodeid
            for x in terminalreporter.getreports(outcome)
        )
        for outcome in ("passed", "failed", "error", "xfailed", "skipped")
    }
    wrong = counts["failed"] + counts["error"]
    total = sum(counts.values())
    terminalreporter.write_line(
        f"svgp-reference: {counts['passed']} of {total} answers agree, {wrong} do not, "
        f"{counts['xfailed']} are known failures, {counts['skipped']} were skipped"
    )
