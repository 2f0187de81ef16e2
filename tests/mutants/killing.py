"""Judge many changes in a few copies of the tree: does a test notice? Verdicts are stored as they come."""

from __future__ import annotations

import json
import queue
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tree_copies import TreeCopy

T = TypeVar("T")
PASSED, FAILED = 0, 1  # of pytest's exit codes


@dataclass(frozen=True)
class Verdict:
    """What became of a change; anything but "killed" is red."""

    status: Literal["killed", "survived", "stale", "broken"]
    by: str = ""  # the test that failed, "timeout", or what is wrong with the change
    seconds: float = 0.0


def read_verdicts(path: Path) -> dict[str, Verdict]:
    """Return verdicts by the key of a change; none if there is no file."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {key: Verdict(**fields) for key, fields in map(json.loads, lines)}


def write_verdicts(path: Path, verdicts: Mapping[str, Verdict]) -> None:
    """Write one line of JSON per verdict; a run that is interrupted leaves the earlier verdicts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps([key, asdict(verdict)]) for key, verdict in verdicts.items()]
    # no function of the packages: what this program imports, a fork would have without its fault
    draft = path.with_name(f"{path.name}.tmp")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(path)


def judge_all(
    console: Console,
    made: Sequence[TreeCopy],
    changes: Mapping[str, T],
    do: Callable[[TreeCopy, T], Verdict],
    title: Callable[[T], str],
    path: Path,
) -> dict[str, Verdict]:
    """Judge changes by key and return all verdicts; each is printed and written to `path` as it comes."""
    verdicts, keys = read_verdicts(path), list(changes)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("changes", total=len(keys))
        for key, verdict in over_copies(made, keys, lambda copy, key: do(copy, changes[key])):
            verdicts[key] = verdict
            write_verdicts(path, verdicts)
            colour = "green" if verdict.status == "killed" else "red"
            line = f"{title(changes[key])} {verdict.by and f'({verdict.by})'}"
            progress.console.print(
                f"[{colour}]{verdict.status}[/] {verdict.seconds:.0f} s {escape(line)}",
                soft_wrap=True,
            )
            progress.advance(task)
    return verdicts


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
    if outcome.code == FAILED and outcome.failed:  # pytest 8.0 also uses this code if no test ran
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
