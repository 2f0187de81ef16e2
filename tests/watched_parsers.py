"""Parsers of files from outside, each called under watch on broken files.

A parser must give something or raise one line, within a limit of time and memory. It must write no file
outside the folder of its files, and none there unless it is told to.

SVGPBENCH_FUZZ multiplies the number of files, and their seed is then that of `--hypothesis-seed`.
A failure names the smallest file found that fails; its folder still holds it, also after a crash in C.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from unittest.mock import Mock, patch

import psutil
from broken_files import seldom
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from svgpbench.errors import UserError
from svgpbench_datasets import DataError

TIMES = int(os.environ.get("SVGPBENCH_FUZZ", "1"))
MEMORY = 8 << 30
"""Bytes of address space that a parser may take."""

OWN = ("options.json", "arguments.json")
"""Files that tell the reader of a test what to do; never broken."""

Files: TypeAlias = dict[str, bytes]  # by path below the folder of the parser


class Parser(NamedTuple):
    """One kind of file."""

    files: st.SearchStrategy[Files]
    read: Callable[[Path], object]  # what is under test, given the folder
    cases: int  # in the quick tests
    door: tuple[Any, str] | None = None  # the function that a well-formed file passes to validation
    writes: Callable[[Path], bool] = lambda folder: (
        False
    )  # whether it is told to write in the folder
    limit_s: float = 20.0  # for one file; a parser that takes longer hangs
    unreadable: int = 1  # per cent of the cases in which a folder has the name of a file
    examples: Sequence[Files] = ()  # files that are always read


class Outcome(NamedTuple):
    """How a call of a parser ended."""

    end: Literal["accepted", "refused", "failed"]
    reached: bool  # whether it got as far as validation
    why: str


class HangsError(BaseException):
    """More than the limit of time. No `except Exception` of a parser swallows it."""


def read_broken_files(parser: Parser, folder: Path) -> list[Outcome]:
    """Read broken files with a parser, and fail at the first that it neither reads nor refuses."""
    outcomes = []

    def holds(files: Files, unreadable: bool, chosen: int) -> None:
        write_files(folder, files)
        if unreadable and (names := sorted(files.keys() - set(OWN))):
            path = folder / names[chosen % len(names)]
            path.unlink()
            path.mkdir()
        outcomes.append(watched(parser, folder))
        assert outcomes[-1].end != "failed", f"{outcomes[-1].why}; the files are in {folder}"

    for files in parser.examples:
        holds = example(files, False, 0)(holds)
    given(parser.files, seldom(parser.unreadable), st.integers(0, 99))(
        settings(
            max_examples=parser.cases * TIMES,
            deadline=None,
            derandomize=TIMES == 1,
            suppress_health_check=list(HealthCheck),
        )(holds)
    )()
    return outcomes


def write_files(folder: Path, files: Files) -> None:
    """Let a folder hold these files alone."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)


def watched(parser: Parser, folder: Path) -> Outcome:
    """Call a parser on the files of a folder."""
    before = _listing(folder)
    end: Literal["accepted", "refused", "failed"] = "accepted"
    why = ""
    door = Mock(wraps=getattr(*parser.door)) if parser.door else Mock()
    opened = patch.object(*parser.door, door) if parser.door else nullcontext()
    with opened, _memory_limit(), _time_limit(parser.limit_s), _writes(folder) as strays:
        try:
            parser.read(folder)
        except (UserError, DataError) as error:
            lines = str(error).splitlines()
            end, why = ("refused", str(error)) if len(lines) == 1 else ("failed", f"{lines!r}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            end, why = "failed", f"{type(error).__name__}: {error}"[:500]
    if end != "failed" and (strays or not (parser.writes(folder) or _listing(folder) == before)):
        end, why = "failed", f"it wrote {strays or 'in the folder'}"
    return Outcome(end, door.called, why)


def _listing(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


@contextmanager
def _memory_limit() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + MEMORY
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def hangs(*_: Any) -> None:
        raise HangsError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- files that are written outside of a folder, and programs and addresses that are called

_watch: list[tuple[Path, list[str]]] = []  # the folder that is watched now, if any
_hooked: list[bool] = []
_CHANGES = {
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
}
_REACHES_OUT = {"subprocess.Popen", "os.system", "os.exec", "socket.connect", "socket.getaddrinfo"}
_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watch:
        return
    folder, strays = _watch[-1]
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITE and not _is_below(path, folder):
            strays.append(f"open {path!r}")
    elif event in _CHANGES and not _is_below(arguments[0], folder):
        strays.append(f"{event} {arguments[0]!r}")
    elif event in _REACHES_OUT:
        strays.append(event)


def _is_below(path: Any, folder: Path) -> bool:
    if isinstance(path, int) or path == os.devnull:  # what was opened before, or goes nowhere
        return True
    place = Path(os.path.abspath(os.fsdecode(path)))
    # a module that is imported late is compiled by Python, in a folder of its own
    compiled = sys.pycache_prefix is not None and place.is_relative_to(sys.pycache_prefix)
    return compiled or "__pycache__" in place.parts or place.is_relative_to(folder)


@contextmanager
def _writes(folder: Path) -> Iterator[list[str]]:
    if not _hooked:
        sys.addaudithook(_audit)  # for good: there is no way to take it out
        _hooked.append(True)
    strays: list[str] = []
    _watch.append((folder.resolve(), strays))
    try:
        yield strays
    finally:
        _watch.pop()
