"""Process of a peer: loads the peer's script and answers requests, one JSON line per message.

    python serve.py SCRIPT --threads 1 --cores 0

It is run by the Python of the peer's own environment, which has none of svgpbench's packages. So this file
and the peers' scripts import of svgpbench only what needs NumPy alone. Requests `prepare` and `round` are
those of `benchmarks/timing/worker.py`; `learn`, `advance` and `look` are for training, `walk` for stability.
An answer may be `refused`, with the reason. A script offers

* `VERSIONS`, the packages whose versions are recorded;
* `start(threads)`, called once before any other work;
* `build(problem, method, step)`, which returns a `Step` from the arrays of a problem. It raises
  `NotImplementedError` with the reason if the library has no step with the same result;
* `learner(problem, method, mode)`, which returns a `Learner` in one mode, or in all if `mode` is empty. It
  raises as `build` does. A script without it cannot train in `svgpbench learn`;
* `natural_gradient_run(problem, request)`, which returns a `Walker` of `benchmarks/stability/walk.py`. Only
  the scripts of `svgpbench survive` have it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Rows = tuple[Any, Any]  # X [b, D], y [b]


class Step(Protocol):
    """Step of training at its start."""

    modes: Mapping[str, Callable[[], Any]]
    """Calls of the step, by mode, which return when it has been computed. The fastest is timed."""

    def figure(self, result: Any) -> float:
        """Return the number that must agree after a call from the start."""

    def reset(self) -> None:
        """Go back to the start."""


class Learner(Step, Protocol):
    """Model that trains. A call of a mode is one EM iteration on the rows fed last."""

    def feed(self, batches: Sequence[Rows], noise: Any) -> None:
        """Set the rows of each E-step and then of the M-step, and the draws [S, P] of them all."""

    def elbo(self) -> float:
        """Return the library's own bound for all data, from the rows `checked` and the draws `noise`."""

    def predict(self) -> tuple[Any, Any, Any]:
        """Return mean and variance [P, t] of q(f) at `X_new`, and the Gaussian noise variance [], or 0."""


def main() -> None:
    """Serve requests until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cores", default="")
    parser.add_argument("--parent", type=int, default=0, help="process id to live no longer than")
    options = parser.parse_args()
    find_svgpbench()
    from svgpbench.benchmarks.timed_calls import time_calls
    from svgpbench.runs.parent_process import end_with, error_line, listen, take_pipes

    requests, answers = take_pipes()
    end_with(options.parent)
    cores = [int(core) for core in options.cores.split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        for thread in os.listdir("/proc/self/task"):  # NumPy's BLAS has started some already
            os.sched_setaffinity(int(thread), cores)

    peer = load_script(options.script)
    peer.start(options.threads)

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    say({"environment": describe(options.threads, peer.VERSIONS)})
    prepared: dict[tuple[str, str], tuple[Step, Callable[[], Any]]] = {}
    for line in listen(requests):
        request = json.loads(line)
        key = (request.get("method"), request.get("step"))
        try:
            if request["do"] == "prepare":
                step = peer.build(load_arrays(request["problem"]), *key)
                answer = prepare(step)
                prepared[key] = (step, step.modes[answer["mode"]])
                say(answer)
            elif request["do"] == "learn":
                arrays = load_arrays(request["problem"]) | load_arrays(request["run"])
                training = Training(peer, arrays, key[0], request["mode"])
                say(training.prepared)
            elif request["do"] == "advance":
                say(training.advance(request["until_s"], request["iterations"]))
            elif request["do"] == "look":
                say(training.evaluate(request["into"]))
            elif request["do"] == "walk":
                from svgpbench.benchmarks.stability.walk import start_and_walk

                say(start_and_walk(peer, load_arrays(request["arrays"]), request, say))
            else:
                step, call = prepared[key]
                step.reset()
                say({"seconds": time_calls(call, request["calls"])})
        except NotImplementedError as reason:
            say({"refused": str(reason)})
        except Exception as error:
            say({"error": error_line(error)})


def find_svgpbench() -> None:
    """Make the package of this file importable; its environment stays out of the import path."""
    folder = Path(__file__).resolve().parents[3]
    spec = importlib.util.spec_from_file_location(
        "svgpbench", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = sys.modules["svgpbench"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def load_script(path: str) -> Any:
    """Import the peer's script as a module."""
    spec = importlib.util.spec_from_file_location("peer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["peer"] = module  # torch.compile looks there for what it traces
    spec.loader.exec_module(module)
    return module


def load_arrays(path: str) -> dict[str, Any]:
    """Load the arrays of a file by name."""
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def describe(threads: int, packages: tuple[str, ...]) -> dict[str, Any]:
    """Return the versions and threads of this process."""
    return {
        "python": sys.version.split()[0],
        "versions": {package: version(package) for package in packages},
        "threads": threads,
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def prepare(step: Step) -> dict[str, Any]:
    """Time all modes and return the results.

    These are the fastest mode, the seconds of its first call, its figure and the seconds of its fastest warm
    call; `modes` has the seconds or the error of every mode.
    """
    from svgpbench.benchmarks.timed_calls import first_call, warm_up
    from svgpbench.runs.parent_process import error_line

    answers: list[dict[str, Any]] = []
    modes: dict[str, float | str] = {}
    for mode, call in step.modes.items():
        step.reset()
        try:
            first_s, result = first_call(call)
            # before the warm calls, which go on from this result: the figure is that of one step
            figure = step.figure(result)
            modes[mode] = warm_up(call)
        # a refusal of the step, not the failure of one mode
        except NotImplementedError:
            raise
        except Exception as error:  # a mode that cannot be compiled is a result too
            modes[mode] = error_line(error)
            if len(modes) == len(step.modes) and not answers:
                raise
        else:
            answers.append(
                {"mode": mode, "first_call_s": first_s, "figure": figure, "call_s": modes[mode]}
            )
    return min(answers, key=lambda answer: float(answer["call_s"])) | {"modes": modes}


class Training:
    """Training of a learner on its minibatches, in its fastest mode. The clock runs only while it trains.

    Each iteration takes the next `e_steps` + 1 of `rows` [minibatches, b]. After the last minibatch, it
    starts again from the first.
    """

    def __init__(self, peer: Any, arrays: dict[str, Any], method: str, mode: str) -> None:
        from svgpbench.benchmarks.timed_calls import first_call

        if not hasattr(peer, "learner"):
            raise NotImplementedError("its script offers no learner")
        self.arrays, self.iterations, self.seconds = arrays, 0, 0.0
        self.learner: Learner = peer.learner(arrays, method, mode)
        self.feed()
        modes = self.learner.modes
        if len(modes) == 1:  # nothing to choose
            ((name, call),) = modes.items()
            # two calls: the first may return a state of other types, for which the second compiles
            self.prepared = {
                "mode": name,
                "first_call_s": first_call(call)[0] + first_call(call)[0],
            }
        else:
            self.prepared = prepare(self.learner)
        self.call = modes[self.prepared["mode"]]
        # the calls above have moved the model, and training starts from the plan's start
        self.learner.reset()

    def feed(self) -> None:
        """Pass the rows and draws of the next iteration to the learner."""
        a, count = self.arrays, int(self.arrays["e_steps"]) + 1
        minibatches = [
            a["rows"][(count * self.iterations + i) % len(a["rows"])] for i in range(count)
        ]
        noise = a["draws"][self.iterations % len(a["draws"])]
        self.learner.feed([(a["X"][rows], a["y"][rows]) for rows in minibatches], noise)

    def advance(self, until_s: float, iterations: int) -> dict[str, Any]:
        """Train until `until_s` seconds or `iterations` in all, and return the totals of both."""
        began, before = time.perf_counter(), self.seconds
        while self.seconds < until_s and self.iterations < iterations:
            # on the clock: moving rows to a library's arrays is part of training with it
            self.feed()
            self.call()
            self.iterations += 1
            self.seconds = before + (time.perf_counter() - began)
        return {"seconds": self.seconds, "iterations": self.iterations}

    def evaluate(self, into: str) -> dict[str, float]:
        """Return the bound, and write predictions to the file `into` if named. The clock is stopped."""
        if into:
            mean, variance, noise_variance = self.learner.predict()
            np.savez(into, mean=mean, variance=variance, noise_variance=noise_variance)
        return {"elbo": self.learner.elbo()}


if __name__ == "__main__":
    main()
