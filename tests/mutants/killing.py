"""Whether tests notice a change: many changes over a few copies of the tree."""

from __future__ import annotations

import queue
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from tree_copies import TreeCopy

T = TypeVar("T")
PASSED, FAILED = 0, 1  # of pytest's exit codes


@dataclass(frozen=True)
class Verdict:
    """What became of a change; anything but "killed" is red."""

    status: Literal["killed", "survived", "stale", "broken"]
    by: str = ""  # the test that failed, "timeout", or what is wrong with the change
    seconds: float = 0.0


@contextmanager
def copies(root: Path, count: int) -> Iterator[list[TreeCopy]]:
    """So many copies of the tree, for as long as they are needed."""
    # a run that is told to end removes its copies, as one that is interrupted does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        made = [TreeCopy.of(root, Path(folder).resolve() / str(at)) for at in range(count)]
        made[0].check()
        yield made


def judged(
    copy: TreeCopy, file: str, text: str, tests: Sequence[str], k: str, limit: float
) -> Verdict:
    """The verdict on one changed file."""
    with copy.changed(file, text):
        outcome = copy.test(tests, k, limit)
    if outcome.code is None:
        return Verdict("killed", "timeout", outcome.seconds)
    if outcome.code == PASSED:
        return Verdict("survived", "", outcome.seconds)
    if outcome.code == FAILED:
        return Verdict("killed", outcome.failed, outcome.seconds)
    # no test ran: the change cannot even be imported, or `k` leaves nothing
    last = (outcome.failed or outcome.output.strip().splitlines()[-1])[:200]
    return Verdict("broken", f"pytest ended with {outcome.code}: {last}", outcome.seconds)


def over_copies(
    made: Sequence[TreeCopy], items: Sequence[T], do: Callable[[TreeCopy, T], Verdict]
) -> Iterator[tuple[T, Verdict]]:
    """Each item with its verdict as it comes, a copy doing one at a time."""
    free: queue.SimpleQueue[TreeCopy] = queue.SimpleQueue()
    for copy in made:
        free.put(copy)

    def one(item: T) -> tuple[T, Verdict]:
        copy = free.get()
        try:
            return item, do(copy, item)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(made)) as pool:
        waiting = [pool.submit(one, item) for item in items]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            for one_left in waiting:
                one_left.cancel()
