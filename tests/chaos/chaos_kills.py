"""Where a kill falls, and whom: the runner with its workers, one worker, or a command that collects."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

Phase = Literal["start", "mid-cell", "record write", "collecting"]
PHASES: tuple[Phase, ...] = ("start", "mid-cell", "record write", "collecting")
LOOK_S = 0.0005


class Kill(NamedTuple):
    """One that was done."""

    phase: Phase
    whom: Literal["runner", "worker", "collector"]
    torn: bool  # whether a half-written file was left


class Commands(NamedTuple):
    """How the runs are started, and the folder of records that they share."""

    run: Sequence[str]
    collect: Sequence[str]
    results: Path

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """A process of its own group, silent."""
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)


class Killer:
    """Goes on killing a run that is started again each time it is dead."""

    def __init__(self, commands: Commands, seed: int) -> None:
        self.commands, self.draw = commands, random.Random(seed)
        self.runner: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def alive(self) -> subprocess.Popen[bytes]:
        """The runner, started anew where it is dead."""
        if self.runner is None or self.runner.poll() is not None:
            self.runner = self.commands.start(self.commands.run)
            self.starts += 1
        return self.runner

    def kill(self, phase: Phase, pause_s: float) -> Kill | None:
        """One kill in a phase, after a pause; None where there was nobody to kill."""
        if phase == "start":
            self.end()
            runner = self.alive()
            time.sleep(self.draw.uniform(0.0, 2.0))
            return self._kill_one(runner, phase)
        runner = self.alive()
        time.sleep(self.draw.uniform(0.5, 1.5) * pause_s)
        if phase == "mid-cell":
            return self._kill_one(runner, phase)
        if phase == "record write":
            if not _until(lambda: bool(self.drafts()) or runner.poll() is not None, 20.0):
                return None
            return self._kill_runner(runner, phase)
        collector = self.commands.start(self.commands.collect)
        began = self.draw.uniform(0.0, 1.5)
        _until(lambda: bool(self._parquet_drafts()) or collector.poll() is not None, began + 3.0)
        return self._kill(collector.pid, collector, phase, "collector")

    def drafts(self) -> list[Path]:
        """Files of records that are being written, or that a kill left."""
        return [path for path in self.commands.results.glob("*/*/.*.tmp") if path.exists()]

    def _parquet_drafts(self) -> list[Path]:
        return list(self.commands.results.glob(".*.tmp"))

    def _kill_one(self, runner: subprocess.Popen[bytes], phase: Phase) -> Kill | None:
        """A worker of the runner, or the runner itself."""
        workers = _workers(runner.pid)
        if workers and self.draw.random() < 0.5:
            return self._kill(self.draw.choice(workers), None, phase, "worker")
        return self._kill_runner(runner, phase)

    def _kill_runner(self, runner: subprocess.Popen[bytes], phase: Phase) -> Kill | None:
        return self._kill(runner.pid, runner, phase, "runner")

    def _kill(
        self,
        pid: int,
        process: subprocess.Popen[bytes] | None,
        phase: Phase,
        whom: Literal["runner", "worker", "collector"],
    ) -> Kill | None:
        if process is not None and process.poll() is not None:
            return None
        try:
            psutil.Process(pid).send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            return None
        if process is not None:
            process.wait()
        torn = whom != "worker" and bool([*self.drafts(), *self._parquet_drafts()])
        return Kill(phase, whom, torn)

    def end(self) -> None:
        """Leave no runner behind."""
        if self.runner is not None and self.runner.poll() is None:
            self.runner.kill()
            self.runner.wait()


def _workers(runner: int) -> list[int]:
    try:
        children = psutil.Process(runner).children()
        return [child.pid for child in children if "svgpbench.runs.worker" in child.cmdline()]
    except psutil.Error:
        return []


def _until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Look so often that a write of a millisecond is seen."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(LOOK_S)
    return False
