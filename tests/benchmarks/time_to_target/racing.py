"""Tiny plans, and a peer whose script trains by a clock of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svgpbench.benchmarks.time_to_target.plan import Contestant, LearningPlan, Run
from svgpbench.benchmarks.time_to_target.training import PlanTrainer, Resources
from svgpbench.benchmarks.timing.peers import Located, Peer
from svgpbench.config import RatePair
from svgpbench.environment import OURS

FAKE = Contestant("fake", "m")
SCRIPT = """
import os
import signal
import time

import numpy as np

VERSIONS = ("numpy",)
now = 0.0
time.perf_counter = lambda: now  # it moves where it is told to


def start(threads):
    pass


class Learner:
    def __init__(self, p, method, mode):
        self.p, self.k, self.fed = p, 0, []
        self.e_rate = float(p["e_rate"])
        takes = {"slow": 3.0, "fast": 1.0}
        self.modes = {
            m: (lambda s=s: self.iterate(s)) for m, s in takes.items() if mode in ("", m)
        }
        self.spend(1000.0)

    def spend(self, seconds):
        global now
        now += seconds

    def feed(self, batches, noise):
        self.spend(0.25)
        self.sizes = [len(y) for _, y in batches]

    def iterate(self, seconds):
        self.k += 1
        if self.e_rate == 7.0 and self.k == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.e_rate == 8.0 and self.k == 4:
            raise ValueError("not positive\\ndefinite")
        self.spend(seconds)

    def elbo(self):
        self.spend(500.0)
        if self.e_rate == 9.0 and self.k >= 4:
            return float("nan")
        return -abs(self.e_rate - 0.3) + 1e-6 * self.k - 10.0 * len(self.p["X_new"])

    def figure(self, result):
        return 0.0

    def predict(self):
        self.spend(500.0)
        zero = np.zeros((1, len(self.p["X_new"])))
        return zero, zero, np.array(1.0 + 1.0 / (1 + self.k))

    def reset(self):
        self.k = 0


def learner(problem, method, mode):
    if method == "none":
        raise NotImplementedError("it has none")
    return Learner(problem, method, mode)
"""


def tiny_plan(**changes: Any) -> LearningPlan:
    """Two rates by one on the shipped airfoil data, two seeds, ours on NumPy."""
    settings = {
        "data": {"name": "airfoil"},
        "likelihood": {"name": "gaussian", "noise_variance": 0.1},
        "batch_size": 16,
        "inducing": 7,
        "e_rates": (0.1, 0.3),
        "m_rates": (0.01,),
        "search_s": 5.0,
        "seconds": 20.0,
        "targets": (1.2,),
    }
    keys = {
        "seeds": (0, 1),
        "backends": ("numpy",),
        "checked_rows": 50,
        "test_rows": 40,
        "first_look_s": 5.0,
        "look_growth": 2.0,
    }
    own = {k: changes.pop(k) for k in list(changes) if k in keys or k == "iterations"}
    return LearningPlan.model_validate(
        {**keys, **own, "problems": {"tiny": {**settings, **changes}}}
    )


def run_of(plan: LearningPlan, contestant: Contestant = FAKE, **changes: Any) -> Run:
    """A run of the first rates for 20 seconds."""
    run = Run(plan.digest("tiny"), "tiny", contestant, False, "", RatePair(0.1, 0.01), 0, 20.0)
    if contestant.library == OURS:
        run = run._replace(mode="numpy")
    return run._replace(**changes)


@contextmanager
def fake_trainer(plan: LearningPlan, folder: Path, script: str = SCRIPT) -> Iterator[PlanTrainer]:
    """A trainer that has the fake peer."""
    path = folder / "script.py"
    path.write_text(script)
    located = Located(Peer("p", "p", (), path, {"m": "m"}, "P"), Path(sys.executable))
    with PlanTrainer(plan, Resources({"fake": located}, 1, ())) as trainer:
        yield trainer
