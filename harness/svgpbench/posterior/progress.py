"""Progress of a fit: the worker writes each iteration to a file, and a bar on a terminal shows the last."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from svgpbench.ops import Ops
from svgpbench.output.terminal import progress_bar
from svgpbench.training.checkpoints import NO_CHECKPOINT, Checkpoint
from svgpbench.training.state import TrainState

POLL_S = 0.2


class IterationLog(Checkpoint):
    """A checkpoint that saves no state: it appends iteration, bound and seconds to a file."""

    def __init__(self, log: Path) -> None:
        super().__init__(None)
        self.log = log

    def save(self, ops: Ops, state: TrainState) -> None:
        bound = state.trace[-1]["elbo"] if state.trace else None
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps([state.iteration, bound, state.seconds]) + "\n")


def log_beside(table: Path) -> Path:
    """Return the path of the iterations of a fit, which is beside its table."""
    return table.with_name("iterations.jsonl")


def checkpoint_of_fit(table: Path) -> Checkpoint:
    """Return what a fit saves: its iterations if the file for them exists, else nothing."""
    log = log_beside(table)
    return IterationLog(log) if log.exists() else NO_CHECKPOINT


@contextmanager
def iterations_shown(table: Path, total: int) -> Iterator[None]:
    """Show the iterations of a fit in a bar on stderr. Without a terminal nothing is shown."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    log, ended = log_beside(table), threading.Event()
    log.touch()
    with progress_bar(console) as bar:
        task = bar.add_task("starting the backend", total=total)

        def show() -> None:
            # the worker may be in the middle of a line
            whole_lines = log.read_text("utf-8").split("\n")[:-1]
            if whole_lines:
                iteration, bound, seconds = json.loads(whole_lines[-1])
                text = "" if bound is None else f"bound {bound:.6g}, "
                bar.update(task, completed=iteration, description=f"{text}{seconds:.1f} s")

        def follow() -> None:
            while not ended.wait(POLL_S):
                show()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            show()
