"""One training run in a fresh process, which stops at every evaluation and then continues."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from svgpbench.benchmarks.time_to_target.plan import LearningPlan, Run
from svgpbench.benchmarks.time_to_target.problems import PreparedProblem, prepare_problem
from svgpbench.benchmarks.time_to_target.records import Evaluation, TrainingRecord
from svgpbench.benchmarks.timing.meter import Load, together
from svgpbench.benchmarks.timing.peers import Located
from svgpbench.benchmarks.timing.process import (
    LIMIT_S,
    ProcessFailed,
    StepRefused,
    TimedProcess,
)
from svgpbench.environment import OURS
from svgpbench.npz import save_arrays

SCRIPT = Path(__file__).with_name("ours.py")
ENDLESS = 1 << 60


class Resources(NamedTuple):
    """Resources of runs: the available peers, and the threads and cores of each process."""

    peers: Mapping[str, Located]
    threads: int
    cores: Sequence[int]

    def process(self, run: Run) -> TimedProcess:
        """Return a fresh process of the run's library."""
        name = run.contestant.library
        python, script = Path(sys.executable), SCRIPT
        if name != OURS:
            python, script = self.peers[name].python, self.peers[name].peer.script
        return TimedProcess.of_script(name, python, script, "cpu", self.threads, self.cores)


class PlanTrainer:
    """Trainer of a plan's runs, one at a time. As a context manager, it removes its temporary files."""

    def __init__(self, plan: LearningPlan, resources: Resources) -> None:
        self.plan, self.resources = plan, resources
        self._folder = tempfile.TemporaryDirectory()
        self._ready: tuple[str, int, PreparedProblem] | None = None

    def __enter__(self) -> PlanTrainer:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, run: Run) -> TrainingRecord:
        """Train once and return the record. Raises `UserError` if the problem cannot be made."""
        if self._ready is None or self._ready[:2] != (run.problem, run.seed):
            prepared = prepare_problem(self.plan, run.problem, run.seed)
            save_arrays(prepared.arrays, self._file("problem"))
            self._ready = (run.problem, run.seed, prepared)
        prepared = self._ready[2]
        save_arrays(prepared.run_arrays(run.rates, run.search), self._file("run"))
        outcome: dict[str, Any] = {"status": "ok"}
        evaluations: list[Evaluation] = []
        loads: list[Load] = []
        with self.resources.process(run) as process:
            try:
                process.wait_until_ready()
                files = {name: str(self._file(name)) for name in ("problem", "run")}
                learner = {"method": run.contestant.method, "mode": run.mode}
                answer = process.ask({"do": "learn", **learner, **files})
                outcome |= {name: answer.get(name) for name in ("mode", "modes", "first_call_s")}
                outcome |= {name: process.environment[name] for name in ("versions", "threads")}
                times = [run.seconds] if run.search else self.plan.evaluation_times(run.seconds)
                # the library trains on between evaluations; its own clock stands still meanwhile
                for until_s in times:
                    most = self.plan.iterations or ENDLESS
                    request = {"do": "advance", "until_s": until_s, "iterations": most}
                    # training comes on top of the limit for an answer
                    totals, load = process.ask_metered(request, LIMIT_S + until_s)
                    loads.append(load)
                    evaluation = self._evaluate(process, totals, run.search, prepared)
                    count = evaluation.iterations
                    scores = {"bound": evaluation.elbo, "NLPD": evaluation.nlpd or 0.0}
                    for name, score in scores.items():
                        if not math.isfinite(score):
                            raise ProcessFailed(f"the {name} is not finite by iteration {count}")
                    evaluations.append(evaluation)
                    # a plan may count iterations in place of seconds
                    if count == most:
                        break
            except StepRefused as refusal:
                outcome |= {"status": "skipped", "message": str(refusal)}
            except ProcessFailed as failure:
                outcome |= {"status": "error", "message": str(failure)}
        # over the whole run: single intervals are too short for the tick of the counters
        other_cores = round(together(loads).other_cores, 3)
        looks = tuple(evaluations)
        return TrainingRecord(run=run, looks=looks, other_cores=other_cores, **outcome)

    def _evaluate(
        self,
        process: TimedProcess,
        totals: Mapping[str, Any],
        search: bool,
        prepared: PreparedProblem,
    ) -> Evaluation:
        """Return the bound, and the NLPD of the test rows unless the run is of a search."""
        into = "" if search else str(self._file("predicted"))
        elbo = process.ask({"do": "look", "into": into})["elbo"]
        nlpd = None
        if into:
            with np.load(into, allow_pickle=False) as predicted:
                nlpd = prepared.judge.nlpd(predicted)
        return Evaluation(totals["seconds"], totals["iterations"], elbo, nlpd)

    def _file(self, name: str) -> Path:
        return Path(self._folder.name) / f"{name}.npz"
