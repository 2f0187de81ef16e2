"""Warm times of the steps of training; asv runs each benchmark in a process of its own.

No framework is imported before `setup`, which imports that of its backend alone.
SVGPBENCH_SPEED_THREADS sets the threads (2 where there are 2 cores).
"""

from __future__ import annotations

import functools
import os
from typing import ClassVar

from svgpbench.plugins import framework_missing, frameworks, load_backend
from svgpbench.runner.cores import usable_cores
from svgpbench.runner.worker_setup import pin, worker_environment
from svgpbench.speed.cases import Case, build_case, usual_methods
from svgpbench.speed.problems import make_problem
from svgpbench.speed.timing import first_call, warm_up


@functools.cache
def warm_case(backend: str, method: str, problem: str, step: str) -> Case:
    """A case that has been compiled and warmed, once a process: asv calls `setup` before each sample."""
    if framework_missing(backend):
        raise NotImplementedError  # asv's word for a benchmark to be skipped
    cores = usable_cores()
    threads = int(os.environ.get("SVGPBENCH_SPEED_THREADS", min(2, len(cores))))
    os.environ.update(worker_environment("cpu", threads))
    pin(backend, threads, cores[:threads])
    case = build_case(load_backend(backend), make_problem(problem), method, step)
    first_call(case.call)
    warm_up(case.call)
    return case


class Steps:
    """One E-step, M-step and prediction, each a call."""

    param_names: ClassVar = ["backend", "method", "problem"]
    params: ClassVar = [list(frameworks()), list(usual_methods()), ["reg-M100", "bern-M100"]]
    timeout = 300
    step = ""

    def setup(self, backend: str, method: str, problem: str) -> None:
        """Compile and warm."""
        self.case = warm_case(backend, method, problem, self.step)


class EStep(Steps):
    """K(Z, Z) and its Cholesky factor inside."""

    step = "e_step"

    def time_e_step(self, backend: str, method: str, problem: str) -> None:
        """One natural-gradient step on a batch."""
        self.case.call()


class MStep(Steps):
    """Value, gradient, Adam, and what ties q to θ."""

    step = "m_step"

    def time_m_step(self, backend: str, method: str, problem: str) -> None:
        """One step on kernel, likelihood and inducing inputs."""
        self.case.call()


class Predict(Steps):
    """K(Z, Z) and its Cholesky factor inside."""

    step = "predict"

    def time_predict(self, backend: str, method: str, problem: str) -> None:
        """1024 rows."""
        self.case.call()
