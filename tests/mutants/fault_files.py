"""Faults as data: what is changed, what would then be published wrongly, and which tests must notice."""

from __future__ import annotations

import ast
import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "faults"
ROOT = Path(__file__).parents[2]
NUMPY_ONLY = "not jax and not torch and not tensorflow"
"""What pytest's `-k` leaves: faults lie above the backends, so the quickest of them will do."""


class StaleError(Exception):
    """A fault no longer fits the source that it was written for."""


@dataclass(frozen=True)
class Fault:
    """One replacement in one function."""

    area: str  # the file that declares it
    file: str  # relative to the root of the tree
    function: str  # dotted, as in `Trainer.m_phase`; empty: the whole file
    old: str
    new: str
    says: str
    tests: tuple[str, ...]
    k: str = NUMPY_ONLY

    def applied(self, source: str) -> str:
        """The source with the fault in it; raises `StaleError`."""
        start, end = span(source, self.function)
        lines = source.splitlines(keepends=True)
        within = "".join(lines[start:end])
        if (times := within.count(self.old)) != 1:
            where = self.function or "the file"
            raise StaleError(f"{self.old!r} stands {times} times in {where}")
        return "".join(lines[:start]) + within.replace(self.old, self.new) + "".join(lines[end:])

    def judged_as(self, root: Path) -> str:
        """Return a hash of the fault, the names of its tests and the content of its file."""
        path = root / self.file
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        parts = (self.function, self.old, self.new, *self.tests, self.k, source)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def span(source: str, dotted: str) -> tuple[int, int]:
    """The lines [start, end) of a function or class, decorators included; raises `StaleError`."""
    if not dotted:
        return 0, len(source.splitlines())
    at: ast.AST = ast.parse(source)
    for name in dotted.split("."):
        found = [node for node in _definitions(at) if node.name == name]
        if len(found) != 1:
            raise StaleError(f"{dotted} is defined {len(found)} times")
        at = found[0]
    starts = [at.lineno, *(one.lineno for one in at.decorator_list)]
    return min(starts) - 1, at.end_lineno or at.lineno


def _definitions(
    at: ast.AST,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Definitions in a body, those under an `if` or `with` too, but not those inside one another."""
    for child in ast.iter_child_nodes(at):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        else:
            yield from _definitions(child)


def read_faults(folder: Path = FOLDER) -> list[Fault]:
    """Every fault of every area, in order; `tests` at the head of a file are the first of each fault."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for entry in content["fault"]:
            tests = dict.fromkeys([*content.get("tests", ()), *entry.pop("tests", ())])
            found.append(Fault(area=path.stem, tests=tuple(tests), **entry))
    return found
