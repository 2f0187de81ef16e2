"""Skips are counted and held to `skips.toml`: one that is not listed, or not due here, fails the session.

A test that fails because a framework is not installed is skipped.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from svgpbench.backends import framework_missing
from svgpbench.benchmarks.timing.peers import peer_python
from svgpbench.plugins import frameworks
from svgpbench.runs.cores import usable_cores

Found = re.Match[str]


def _mirror() -> Path | None:
    named = os.environ.get("SVGPBENCH_MIRROR", "")
    return Path(named) if named and Path(named).is_dir() else None


def _mirror_lacks(path: str) -> bool:
    folder = _mirror()
    return folder is not None and not any(
        (folder / f"{path}{x}").is_file() for x in ("", ".xz", ".gz")
    )


def _absent(module: str) -> bool:
    return importlib.util.find_spec(module) is None


CONDITIONS: dict[str, Callable[[Found], bool]] = {
    "no mirror": lambda _: _mirror() is None,
    "the mirror lacks it": lambda found: _mirror_lacks(found["path"]),
    "no framework": lambda found: framework_missing(found["backend"]) is not None,
    "no walker": lambda _: _absent("gymnasium") or _absent("mujoco"),
    "no duckdb": lambda _: _absent("duckdb"),
    "no cosmic-ray": lambda _: _absent("cosmic_ray"),
    "no dask": lambda _: _absent("distributed"),
    "absent": lambda found: _absent(found["module"]),
    "no peer": lambda found: peer_python(found["peer"]) is None,
    "own reference values": lambda _: bool(os.environ.get("SVGPBENCH_ORACLES")),
    "axes asked for": lambda _: bool(os.environ.get("SVGPBENCH_AXES")),
    "one core": lambda _: len(usable_cores()) < 2,
    "no gzip": lambda _: shutil.which("gzip") is None,
    "not Linux": lambda _: sys.platform != "linux",
    "not POSIX": lambda _: os.name != "posix",
    "no full disk": lambda _: not Path("/dev/full").exists(),
    "minutes asked for": lambda _: "--minutes" in f"{sys.argv} {os.environ.get('PYTEST_ADDOPTS')}",
    "no chromium": lambda _: not (shutil.which("chromium") and shutil.which("chromedriver")),
}
"""When a listed reason may be given, asked of the session and not of the test that gives it."""


def framework_that_failed(error: BaseException) -> str | None:
    """Return the message of a missing framework if an error names it, else None."""
    for backend, framework in frameworks().items():
        missing = framework_missing(backend)
        if missing and (missing in str(error) or getattr(error, "name", "") == framework.module):
            return missing
    return None


@dataclass(frozen=True)
class Listed:
    """A reason, as a pattern of all its text, and the condition under which it is due."""

    reason: str
    when: str

    def due(self, text: str) -> bool:
        """Whether a skip with this text is this one, and its condition holds."""
        found = re.fullmatch(self.reason, text)
        return found is not None and CONDITIONS[self.when](found)


def read_listed(path: Path) -> list[Listed]:
    """The rows of a list of skips."""
    return [Listed(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["skip"]]


class SkipsAreListed:
    """Gathers the skips of a session, of its workers too, and fails it for one that is not due."""

    def __init__(self, listed: list[Listed]) -> None:
        self.listed = listed
        self.found: dict[str, dict[str, None]] = defaultdict(dict)  # reason → node ids, once each

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        # a strict xfail that passes is a failure without an exception
        error = call.excinfo.value if report.failed and call.excinfo else None
        if error and (missing := framework_that_failed(error)):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {missing}")
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.found[text.removeprefix("Skipped: ")][report.nodeid] = None

    def unlisted(self) -> dict[str, list[str]]:
        """Node ids by reason, where no row of the list is due."""
        return {
            text: list(ids)
            for text, ids in self.found.items()
            if not any(row.due(text) for row in self.listed)
        }

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # a worker of pytest-xdist leaves the verdict to the session that started it
        if (
            self.unlisted()
            and not session.exitstatus
            and not hasattr(session.config, "workerinput")
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.found:
            return
        wrong = self.unlisted()
        terminalreporter.section("skipped, by reason")
        for text in sorted(self.found.keys() - wrong.keys()):
            terminalreporter.line(f"{len(self.found[text]):5}  {text}")
        for text, ids in wrong.items():
            terminalreporter.line(f"{len(ids):5}  NOT LISTED, OR NOT DUE HERE: {text}", red=True)
            for name in ids:
                terminalreporter.line(f"         {name}", red=True)
