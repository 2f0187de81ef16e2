"""One call of a parser under watch: how it ended, how far it got, how long it took, what it touched."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from svgpbench.errors import UserError
from svgpbench_datasets import DataError

LIMIT_S = 20.0
"""For one file; a parser that takes longer hangs."""


class Outcome(NamedTuple):
    """How a call ended: `failed` is what must never be."""

    end: Literal["accepted", "refused", "failed"]
    reached: bool  # whether it got as far as validation
    why: str


class HangsError(BaseException):
    """More than the limit; no `except Exception` of a parser swallows it."""


def watched(
    read: Callable[[Path], object], folder: Path, door: Door, *, writes: bool = False
) -> Outcome:
    """Call a parser on what lies in a folder.

    It must give something, or raise one line; write no file elsewhere, and none there unless it `writes`.
    """
    before, passed = _listing(folder), door.passed
    end: Literal["accepted", "refused", "failed"] = "accepted"
    why = ""
    with _within(LIMIT_S), _writes(folder) as strays:
        try:
            read(folder)
        except (UserError, DataError) as error:
            lines = str(error).splitlines()
            end, why = ("refused", str(error)) if len(lines) == 1 else ("failed", f"{lines!r}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            end, why = "failed", f"{type(error).__name__}: {error}"[:500]
    if end != "failed" and (strays or not (writes or _listing(folder) == before)):
        end, why = "failed", f"it wrote {strays or 'in the folder'}"
    return Outcome(end, door.passed > passed, why)


class Door:
    """A function that a file passes on its way to validation; calls of it are counted."""

    def __init__(self, holder: Any, name: str) -> None:
        self.passed = 0
        inner = getattr(holder, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            self.passed += 1
            return inner(*arguments, **options)

        self._holder, self._name = holder, name
        self._own = vars(holder).get(name)  # None where it is inherited
        setattr(holder, name, counted)

    def close(self) -> None:
        """Put the function back."""
        if self._own is None:
            delattr(self._holder, self._name)
        else:
            setattr(self._holder, self._name, self._own)


def _listing(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def hangs(*_: Any) -> None:
        raise HangsError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_watch: list[tuple[Path, list[str]]] = []  # the folder that is watched now, if any
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
    """Files that are written outside of a folder, and programs and addresses that are called."""
    if not _hooked:
        sys.addaudithook(_audit)  # for good: there is no way to take it out
        _hooked.append(True)
    strays: list[str] = []
    _watch.append((folder.resolve(), strays))
    try:
        yield strays
    finally:
        _watch.pop()


_hooked: list[bool] = []
