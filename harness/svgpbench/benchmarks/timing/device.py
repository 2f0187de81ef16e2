"""Measure a device in minutes: agreement first, then its arithmetic and the steps of methods.

    python -m svgpbench.benchmarks.timing.device runs/device --device cuda --seconds 480

For a machine that is lent for a short time and can download nothing: problems are synthetic. Each backend has
a process of its own. Measurements are lines of `device.jsonl`, and steps also records of `svgpbench speed`.
The same command goes on where it stopped, and starts nothing once its seconds are over.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from svgpbench.backends import framework_of, load_backend
from svgpbench.benchmarks.timed_calls import first_call, warm_up
from svgpbench.benchmarks.timing.cases import build_case
from svgpbench.benchmarks.timing.compare import run_speed
from svgpbench.benchmarks.timing.problems import make_problem
from svgpbench.benchmarks.timing.rates import Sizes, measure_ops
from svgpbench.checks import quick_check
from svgpbench.config import BackendConfig
from svgpbench.environment import describe
from svgpbench.errors import UserError
from svgpbench.json_values import json_value
from svgpbench.ops import Tree
from svgpbench.runs.worker_setup import worker_environment
from svgpbench.tree import leaves, tree_map

Part: TypeAlias = tuple[str, Callable[[], Any]]
"""Name of a measurement, and the function that makes it."""

LINES: Final = "device.jsonl"
MOST_ENTRIES: Final = 2**28
"""Most numbers of a stack of matrices: 2 GiB in float64, of which a chain of operations holds several."""

WITH_GRAPHS: Final = " with CUDA graphs"
"""Ending of a name: PyTorch's compiler replays the kernels of a step as one graph ("reduce-overhead")."""
GRAPHS: Final = {"TORCHINDUCTOR_CUDAGRAPHS": "1"}
BACKENDS: Final = ("jax", "torch:compile", "torch:compile" + WITH_GRAPHS)


class Extent(NamedTuple):
    """Sizes of the arithmetic, and steps that are timed."""

    counts: tuple[int, ...]  # M, inducing points
    latents: tuple[int, ...]  # P, latent functions, whose matrices are one stack
    rows: int  # b
    problems: tuple[str, ...]
    steps: tuple[str, ...]
    repeats: int
    cells: tuple[tuple[str, int], ...]  # problem, and number of cells that take an E-step at once


EXTENTS: Final = {
    "full": Extent(
        counts=(100, 200, 500, 1000, 2048, 4096),
        latents=(1, 16, 64),
        rows=1024,
        problems=("reg-M50", "reg-M100", "reg-M200", "reg-M500", "bern-M500", "reg-M500-b8192"),
        steps=("e_step", "e_step_held", "m_step", "predict_cached_100"),
        repeats=5,
        cells=(("reg-M500", 16), ("reg-M500", 64), ("reg-M100", 64)),
    ),
    "small": Extent(
        (7, 12), (1, 3), 16, ("tiny",), ("e_step", "predict_cached_1"), 1, (("tiny", 3),)
    ),
}
"""`small` is for tests on a CPU."""


def cells_at_once(backend: str, device: str, problem: str, count: int) -> dict[str, float]:
    """Time an E-step of t-SVGP, of one cell and of `count` cells whose targets differ.

    The cells are one program with a leading axis on every array. Returns the seconds of a step of either
    kind, and the largest difference between a number of a cell among the others and alone, divided by the
    largest number of its array.
    """
    config = BackendConfig.parse(backend)
    framework = framework_of(config.name)
    if framework is None or framework.vmap is None:
        raise UserError(f"backend {backend!r} has no vmap")
    ops, eager = (load_backend(config.name, x, "float64", device) for x in (config.mode, "eager"))
    start = make_problem(problem)
    # eager, so that the whole step is compiled once, with its leading axis
    cases = [
        build_case(eager, start._replace(y=start.y * (1 + i)), "t-svgp", "e_step")
        for i in range(count)
    ]
    stacked = tree_map(
        lambda *cells: ops.asarray(np.stack([ops.to_numpy(x) for x in cells])),
        *(case.arguments for case in cases),
    )
    vmap = framework.vmap(importlib.import_module(framework.module))
    together, alone = ops.jit(vmap(cases[0].step)), ops.jit(cases[0].step)

    def call(step: Callable[..., Tree], arguments: tuple[Tree, ...]) -> Tree:
        result = step(*arguments)
        ops.sync(result)
        return result

    all_at_once = partial(call, together, stacked)
    compile_s, many = first_call(all_at_once)
    difference = 0.0
    for i, case in enumerate(cases):
        for x, y in zip(leaves(many), leaves(call(alone, case.arguments)), strict=True):
            among, single = ops.to_numpy(x)[i], ops.to_numpy(y)
            size = max(float(np.abs(single).max()), np.finfo(np.float64).tiny)
            difference = max(difference, float(np.abs(among - single).max()) / size)
    return {
        "cells": count,
        "alone_s": warm_up(partial(call, alone, cases[0].arguments)),
        "together_s": warm_up(all_at_once),
        "first_call_s": compile_s,
        "difference": difference,
    }


def parts_of(title: str, device: str, extent: Extent, folder: Path) -> Iterator[Part]:
    """Yield the measurements of a backend: what others rest on comes first. With graphs, steps alone."""
    backend = title.removesuffix(WITH_GRAPHS)

    def agreement() -> Any:
        return quick_check([backend], device=device).to_json()

    def arithmetic(M: int, P: int) -> Any:
        config = BackendConfig.parse(backend)
        ops = load_backend(config.name, config.mode, "float64", device)
        return measure_ops(ops, Sizes(M, extent.rows, P))._asdict()

    def steps(problem: str) -> Any:
        report = run_speed(
            [problem], [backend], extent.steps, repeats=extent.repeats, device=device,
            max_other_cores=float("inf"),  # a discarded round would cost time that is lent
        )  # fmt: skip
        path = folder / f"{problem}-{title.replace(':', '-').replace(' ', '-')}.json"
        report.write(path)
        return {"record": path.name, "failed": [x.title for x in report.cells if x.error]}

    timed = [(f"{title}: steps, {problem}", partial(steps, problem)) for problem in extent.problems]
    if title != backend:
        yield from timed
        return
    yield f"{backend}: agreement", agreement
    stacks = [(M, P) for P in extent.latents for M in extent.counts if P * M * M <= MOST_ENTRIES]
    for M, P in stacks:
        if P == 1:
            yield f"{backend}: arithmetic, M = {M}", partial(arithmetic, M, 1)
    yield from timed
    for problem, count in extent.cells:
        at_once = partial(cells_at_once, backend, device, problem, count)
        yield f"{backend}: E-step of {count} cells at once, {problem}", at_once
    for M, P in stacks:
        if P > 1:
            yield f"{backend}: arithmetic, M = {M}, P = {P}", partial(arithmetic, M, P)


def recorded(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of `folder`. An incomplete last line, of a run that was killed, is removed."""
    file = folder / LINES
    lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        file.write_text("".join(lines), "utf-8")
    return [json.loads(line) for line in lines]


def measure(
    backend: str, device: str, extent: Extent, folder: Path, end: float
) -> Iterator[dict[str, Any]]:
    """Make the measurements of a backend that `folder` does not have; yield a line for each.

    None is started after `end`, a time of `time.monotonic`. One that fails is a line with its error, and is
    tried again by the next run.
    """
    done = {line["part"] for line in recorded(folder) if "result" in line}
    for part, work in parts_of(backend, device, extent, folder):
        if part in done:
            continue
        if time.monotonic() > end:
            return
        start = time.monotonic()
        line: dict[str, Any] = {"part": part, "device": device}
        try:
            line["result"] = json_value(work())
        except Exception as error:  # of a framework on a machine that nobody has seen
            line["error"] = f"{type(error).__name__}: {error}"
        line["seconds"] = round(time.monotonic() - start, 2)
        with (folder / LINES).open("a", encoding="utf-8") as out:
            out.write(f"{json.dumps(line)}\n")
        yield line


def main() -> None:
    """Measure each backend in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the measurements")
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--backend", action="append", help=f"repeat for several; default: {', '.join(BACKENDS)}"
    )
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="time after which nothing starts"
    )
    parser.add_argument("--extent", choices=EXTENTS, default="full")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    asked.folder.mkdir(parents=True, exist_ok=True)
    # a part's name and a record's file are without the device
    if others := {line["device"] for line in recorded(asked.folder)} - {asked.device}:
        parser.error(f"{asked.folder} has measurements on {min(others)}; name another folder")
    backends: list[str] = asked.backend or list(BACKENDS)
    if asked.here:
        (backend,) = backends
        extent = EXTENTS[asked.extent]
        for line in measure(backend, asked.device, extent, asked.folder, end):
            print(f"{line['seconds']:7.1f} s  {line['part']}  {line.get('error', '')}", flush=True)
        return
    environment = describe(1, asked.device).model_dump(mode="json")
    (asked.folder / "environment.json").write_text(json.dumps(environment, indent=1), "utf-8")
    share = asked.seconds / len(backends)
    for place, backend in enumerate(backends):
        left = max(end - share * (len(backends) - 1 - place) - time.monotonic(), 0.0)
        command = [sys.executable, "-P", "-m", __spec__.name, str(asked.folder), "--here"]
        command += ["--backend", backend, "--device", asked.device, "--extent", asked.extent]
        threads = os.cpu_count() or 1
        # before the interpreter starts: frameworks read it when they are imported
        variables = os.environ | worker_environment(asked.device, threads)
        variables |= GRAPHS if backend.endswith(WITH_GRAPHS) else {}
        subprocess.run([*command, "--seconds", str(left)], check=False, env=variables)


if __name__ == "__main__":
    main()
