"""Timed process of one backend: prepares cases and times rounds of calls, one JSON line per message.

    python -m svgpbench.benchmarks.timing.worker --backend torch --threads 1 --cores 0

Requests and their answers:

* `{"do": "prepare", "problem": FILE, "method": NAME, "step": NAME}`: `first_call_s`, `call_s`, `figure` and,
  if the likelihood samples, `as_peers`, the figure with the peers' estimates;
* `{"do": "round", "method": NAME, "step": NAME, "calls": K}`: `seconds`, one per call of the prepared case;
* `{"do": "rates", "through": "ops" or "blas", "sizes": [M, b, P]}`: `rates`;
* `{"do": "memory"}`: `peak_bytes`, the peak of resident memory since the process started.

A failure answers `error`. A step that needs autodiff answers `refused` if the backend has none. The peers
answer `prepare` and `round` alike, through `svgpbench/benchmarks/timing/peers/serve.py`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.backends import load_backend
from svgpbench.benchmarks.timed_calls import first_call, time_calls, warm_up
from svgpbench.benchmarks.timing.cases import TimedCase, build_case
from svgpbench.benchmarks.timing.problems import TimedProblem
from svgpbench.benchmarks.timing.rates import Sizes, measure_blas, measure_ops
from svgpbench.environment import describe
from svgpbench.errors import NoAutodiffError
from svgpbench.plugins import BACKENDS, load
from svgpbench.runs.parent_process import end_with, listen, take_pipes
from svgpbench.runs.worker import located_error_line
from svgpbench.runs.worker_setup import peak_memory_bytes, pin


def main(arguments: list[str] | None = None) -> None:
    """Serve requests until stdin ends."""
    parser = argparse.ArgumentParser(prog="svgpbench.benchmarks.timing.worker")
    parser.add_argument("--backend", required=True, help="NAME[:MODE]")
    parser.add_argument("--device", default="cpu", help="where it keeps its arrays")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cores", default="", help="logical cores, as in 0,1; empty: any")
    parser.add_argument("--parent", type=int, default=0, help="process id to live no longer than")
    options = parser.parse_args(arguments)

    # first of all: what a framework prints while it is imported must not reach the answers
    requests, answers = take_pipes()
    end_with(options.parent)
    name, _, mode = options.backend.partition(":")
    backend = (name, mode, "float64", options.device)
    pin(name, options.threads, [int(core) for core in options.cores.split(",") if core])
    cases: dict[tuple[Any, Any], TimedCase] = {}

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    say({"environment": describe(options.threads, options.device).model_dump(mode="json")})
    for line in listen(requests):
        request = json.loads(line)
        key = (request.get("method"), request.get("step"))
        try:
            if request["do"] == "memory":
                say({"peak_bytes": peak_memory_bytes()})
            elif request["do"] == "rates":
                sizes = Sizes(*request["sizes"])
                if request["through"] == "ops":
                    rates = measure_ops(load_backend(*backend), sizes)
                else:
                    rates = measure_blas(sizes, options.threads)
                say({"rates": rates._asdict()})
            elif request["do"] == "prepare":
                problem = load_problem(Path(request["problem"]))
                cases[key] = build_case(load_backend(*backend), problem, *key)
                say(prepare(cases[key]))
            else:
                say({"seconds": time_calls(cases[key].call, request["calls"])})
        except NoAutodiffError as error:
            say({"error" if load(BACKENDS, name).capabilities.autodiff else "refused": str(error)})
        except Exception as error:
            say({"error": located_error_line(error)})


def prepare(case: TimedCase) -> dict[str, float]:
    """Return the seconds of the first call, the figure, and the seconds of the fastest warm call."""
    first_s, result = first_call(case.call)
    answer = {
        "first_call_s": first_s,
        "figure": case.figure(result),
        "call_s": warm_up(case.call),
    }
    return answer | ({"as_peers": case.as_peers()} if case.as_peers else {})


def load_problem(path: Path) -> TimedProblem:
    """Load the problem that `save_problem` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        return TimedProblem(**arrays)


if __name__ == "__main__":
    main()
