"""The process of a peer: loads the peer's script and answers requests, a line of JSON a message.

    python serve.py SCRIPT --threads 1 --cores 0

Run by the Python of the peer's own environment; it and the scripts import nothing of svgpbench. The
protocol is that of `svgpbench/speed/worker.py`, and an answer may be `refused` too. A script offers

* `VERSIONS`, the packages whose versions are recorded;
* `start(threads)`, called once before any other work;
* `build(problem, method, step)`, a `Step` from the arrays of a problem. It raises
  `NotImplementedError` with the reason where the library has no step with the same result.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

WARM_CALLS, WARM_S = 3, 0.3


class Step(Protocol):
    """A step of training at its start."""

    modes: Mapping[str, Callable[[], Any]]
    """Ways to run the step that end when it has been computed; the fastest is timed."""

    def figure(self, result: Any) -> float:
        """The number that must agree after a call from the start."""

    def reset(self) -> None:
        """Go back to the start."""


def main() -> None:
    """Serve requests until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cores", default="")
    parser.add_argument("--parent", type=int, default=0)
    options = parser.parse_args()
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
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
    for line in requests:
        request = json.loads(line)
        key = (request["method"], request["step"])
        try:
            if request["do"] == "prepare":
                with np.load(request["problem"], allow_pickle=False) as arrays:
                    step = peer.build(dict(arrays), *key)
                answer = prepare(step)
                prepared[key] = (step, step.modes[answer["mode"]])
                say(answer)
            else:
                say({"seconds": time_calls(*prepared[key], request["calls"])})
        except NotImplementedError as reason:
            say({"refused": str(reason)})
        except Exception as error:
            say({"error": one_line(error)})


def load_script(path: str) -> Any:
    """The peer's script as a module."""
    spec = importlib.util.spec_from_file_location("peer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["peer"] = module  # torch.compile looks there for what it traces
    spec.loader.exec_module(module)
    return module


def one_line(error: Exception) -> str:
    """An exception's type and first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def describe(threads: int, packages: tuple[str, ...]) -> dict[str, Any]:
    """Versions and threads of this process."""
    return {
        "python": sys.version.split()[0],
        "versions": {package: version(package) for package in packages},
        "threads": threads,
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def prepare(step: Step) -> dict[str, Any]:
    """First call, figure and fastest warm call of the fastest mode, and what the others took."""
    answers: list[dict[str, Any]] = []
    modes: dict[str, float | str] = {}
    for mode, call in step.modes.items():
        step.reset()
        try:
            first_s, result = timed(call)
            figure = step.figure(result)
            modes[mode] = warm_up(call)
        except NotImplementedError:
            raise
        except Exception as error:  # a compiler that cannot take the library is a result
            modes[mode] = one_line(error)
            if len(modes) == len(step.modes) and not answers:
                raise
        else:
            answers.append(
                {"mode": mode, "first_call_s": first_s, "figure": figure, "call_s": modes[mode]}
            )
    return min(answers, key=lambda answer: float(answer["call_s"])) | {"modes": modes}


def warm_up(call: Callable[[], Any]) -> float:
    """Call for a while; seconds of the fastest call."""
    seconds: list[float] = []
    end = time.perf_counter() + WARM_S
    while len(seconds) < WARM_CALLS or time.perf_counter() < end:
        seconds.append(timed(call)[0])
    return min(seconds)


def time_calls(step: Step, call: Callable[[], Any], count: int) -> list[float]:
    """Seconds of each of `count` calls from the start, without garbage collection."""
    step.reset()
    gc.collect()
    gc.disable()
    try:
        return [timed(call)[0] for _ in range(count)]
    finally:
        gc.enable()


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
