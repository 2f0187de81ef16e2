"""A worker: a process of one backend that runs cells, one line per request and per answer.

    python -m svgpbench.runs.worker --backend torch --threads 1 --cores 0

Requests come on stdin, answers go to stdout. Both descriptors are moved first, so that what a framework
prints goes to stderr.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from svgpbench.config import CellConfig, Strict
from svgpbench.environment import describe
from svgpbench.errors import UserError
from svgpbench.experiments.identity import cell_code
from svgpbench.experiments.outcome import CellOutcome
from svgpbench.plugins import line_in_plugin
from svgpbench.runs.parent_process import end_with, error_line, listen, take_pipes
from svgpbench.runs.protocol import TARGET, Answer, Hello, Request
from svgpbench.runs.worker_setup import peak_memory_bytes, pin

OUT_OF_MEMORY = (
    "out of memory",  # torch and XLA on CUDA, XLA on the CPU
    "resource_exhausted",  # XLA
    "oom when allocating",  # TensorFlow
    "can't allocate memory",  # torch on the CPU
    "not enough memory",
    "cublas_status_alloc_failed",
    "cusolver_status_alloc_failed",
)


def main(arguments: list[str] | None = None) -> None:
    """Serve cells until stdin ends."""
    parser = argparse.ArgumentParser(prog="svgpbench.runs.worker")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cores", default="", help="logical cores, as in 0,1; empty: any")
    parser.add_argument("--target", default=TARGET, help="module that offers run_cell")
    parser.add_argument("--parent", type=int, default=0, help="process id to live no longer than")
    options = parser.parse_args(arguments)

    requests, answers = take_pipes()
    faulthandler.enable()  # a segfault leaves the Python stack on stderr
    # before `pin`, which imports a framework: the parent may end in these minutes
    end_with(options.parent)
    pin(options.backend, options.threads, [int(core) for core in options.cores.split(",") if core])
    write_message(answers, Hello(environment=describe(options.threads, options.device)))
    for line in listen(requests):
        answer = answer_cell(line, options.target)
        environment = describe(options.threads, options.device)
        environment = environment.model_copy(update={"code": code_of_request(line)})
        facts = {"environment": environment, "peak_memory_bytes": peak_memory_bytes()}
        write_message(answers, answer.model_copy(update=facts))


def write_message(answers: TextIO, message: Strict) -> None:
    """Write one message as one line."""
    answers.write(message.model_dump_json() + "\n")
    answers.flush()


def answer_cell(line: str, target: str) -> Answer:
    """Run one cell; every exception becomes an answer."""
    try:
        request = Request.model_validate_json(line)
        run_cell: Callable[[CellConfig, Path | None, float], CellOutcome]
        run_cell = importlib.import_module(target).run_cell
        checkpoint = Path(request.checkpoint) if request.checkpoint else None
        outcome = run_cell(request.config, checkpoint, request.every_s)
        return Answer(**dict(outcome))
    except UserError as error:
        return Answer(status="skipped", message=str(error))
    except Exception as error:
        return Answer(
            status="oom" if ran_out_of_memory(error) else "error",
            message=located_error_line(error),
            traceback=traceback.format_exc(),
        )


def code_of_request(line: str) -> dict[str, str]:
    """Return the digests of the code that this process has loaded for a cell, as far as it could be."""
    try:
        return cell_code(Request.model_validate_json(line).config)
    except (UserError, ValueError):  # a plugin that cannot be loaded: the answer says so
        return {}


def ran_out_of_memory(error: Exception) -> bool:
    """Return True if an exception of any framework says that memory ran out, on the host or the device."""
    text = f"{type(error).__name__}: {error}".lower()
    return isinstance(error, MemoryError) or any(words in text for words in OUT_OF_MEMORY)


def located_error_line(error: Exception) -> str:
    """Return the line of `error_line`, with the line of a third-party plugin that raised the exception."""
    location = line_in_plugin(error)
    return f"{error_line(error)} ({location})" if location else error_line(error)


if __name__ == "__main__":
    main()
