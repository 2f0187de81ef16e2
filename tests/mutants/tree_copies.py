"""Copies of the source tree in which tests run on changed sources; the tree itself is never touched."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from warm_pytest import ONE_THREAD, start

SOURCES = ("harness", "backends", "datasets")
PACKAGE = "svgpbench"


@dataclass(frozen=True)
class Outcome:
    """How a run of tests ended: `code` is pytest's, None where it took too long."""

    code: int | None
    seconds: float
    output: str

    @property
    def failed(self) -> str:
        """The first test that failed, or that could not be set up."""
        for line in self.output.splitlines():
            word, _, rest = line.partition(" ")
            if word in {"FAILED", "ERROR"}:
                return rest.partition(" - ")[0]
        return ""


@dataclass(frozen=True)
class TreeCopy:
    """A copy of the tree; one run of tests at a time."""

    folder: Path

    @classmethod
    def of(cls, root: Path, folder: Path) -> TreeCopy:
        """Copy what git knows or would add."""
        listed = subprocess.run(
            ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            cwd=root,
            check=True,
            capture_output=True,
        ).stdout.decode()
        for name in listed.split("\0"):
            if name and (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        return cls(folder)

    @property
    def environment(self) -> dict[str, str]:
        """This process's, with the copy's sources before any that are installed."""
        paths = os.pathsep.join(str(self.folder / name) for name in SOURCES)
        # what has not changed is compiled once
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return kept | ONE_THREAD | {"PYTHONPATH": paths}

    def check(self) -> None:
        """Raise `RuntimeError` where the copy's package is not the one that is imported."""
        said = subprocess.run(
            (sys.executable, "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)"),
            cwd=self.folder,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        if not Path(said).is_relative_to(self.folder):
            raise RuntimeError(f"an installed {PACKAGE} hides the copy: {said}")

    @contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """Another text in one file, and afterwards the old one again."""
        path = self.folder / file
        # bytecode is told apart by size and second: two mutants may share both
        bytecode = Path(importlib.util.cache_from_source(path))
        before = path.read_text(encoding="utf-8")
        try:
            bytecode.unlink(missing_ok=True)
            path.write_text(text, encoding="utf-8")
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            bytecode.unlink(missing_ok=True)

    def test(
        self, tests: Sequence[str], k: str, limit: float, options: Sequence[str] = ("-x",)
    ) -> Outcome:
        """Run tests in a process of their own; whatever they started ends with them."""
        output = self.folder / ".pytest-output"
        started = time.monotonic()
        process, pid = start(
            self.folder,
            [
                *("-q", "-rfE", "--tb=line", "--no-header"),
                *("-p", "no:cacheprovider", "--hypothesis-seed=0", *options),
                *("-m", ""),  # those of `make long` too
                *(("-k", k) if k else ()),
                *tests,
            ],
            self.environment
            | {
                "COLUMNS": "500",  # a test's name is not cut short
                "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".hypothesis"),
            },
            output,
        )
        try:
            process.join(limit)
            code = process.exitcode
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            process.kill()
            process.join()
        said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        return Outcome(code, time.monotonic() - started, said)
