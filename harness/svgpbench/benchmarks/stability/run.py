"""Run the cells of a map, each in a fresh process of its library's Python, and record how each ends."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.benchmarks.problem_plan import start_of
from svgpbench.benchmarks.records import Status, append
from svgpbench.benchmarks.stability.libraries import LIBRARIES
from svgpbench.benchmarks.stability.plan import (
    StabilityCell,
    StabilityPlan,
    towards_the_largest_rate,
)
from svgpbench.benchmarks.stability.records import StabilityRecord, read_stability
from svgpbench.benchmarks.timing.process import (
    ProcessEnded,
    ProcessFailed,
    ProcessSilent,
    StepRefused,
    TimedProcess,
)
from svgpbench.environment import OURS
from svgpbench.errors import UserError
from svgpbench.experiments.identity import digests_of, kernel_names
from svgpbench.npz import save_arrays
from svgpbench.numerics.streams import Stream
from svgpbench.plugins import BACKENDS, KERNELS, LIKELIHOODS, METHODS, PEERS

Arrays = dict[str, Any]
"""Arrays by name: `X` [n, D], `y` [n], `Z` [M, D], `rows` [steps, b], `checked` [t], and `noise`
[steps + 1, S, P], whose last set is for the bound; `likelihood`, its `options` as JSON, `classes` (0 without
classes), `lengthscales` [], `variance`, and `noise_variance` (0 if the noise is not Gaussian)."""

THREADS = 1
"""Threads of each run, whose rounding should not depend on the machine's cores."""

NOT_PD_WORDS = (
    "cholesky",
    "positive definite",
    "positive-definite",
    # linear_operator's NotPSDError
    "notpsd",
    "not psd",
    "negative-definite",  # GPyTorch, about a precision
    "singular",
)
STORED_NAN = "nan or inf"  # GPflow's parameters refuse a value that is not finite


def run_cells(
    plan: StabilityPlan,
    cells: Iterable[StabilityCell],
    pythons: Mapping[str, Path],
    results: Path,
    limit_s: float,
    on_end: Callable[[StabilityRecord], None] = lambda record: None,
) -> None:
    """Run the cells that have no record in `results` yet. Ctrl-C loses only the current cell.

    A cell that a shorter limit stopped runs again. At the end, each method runs with the plan's other seeds,
    from the largest rate down to one that all seeds complete. Arrays are made once per problem and seed.
    Raises `UserError` for a problem that cannot be made and for a record that cannot be written.
    """
    cells = list(cells)
    recorded = read_stability(results)
    finished = {c: r for c, r in recorded.items() if not r.stopped_short(limit_s)}
    with tempfile.TemporaryDirectory() as folder:

        def run(cell: StabilityCell) -> None:
            path = Path(folder) / f"{cell.problem}-{cell.seed}.npz"
            if not path.exists():
                save_arrays(make_arrays(plan, cell.problem, cell.seed), path)
            record = run_cell(plan, cell, pythons[cell.library], path, limit_s)
            # a line per cell, at once: a map takes hours, and Ctrl-C must lose one cell at most
            append(results, record)
            finished[cell] = record
            on_end(record)

        for cell in cells:
            if cell not in finished:
                run(cell)
        # other seeds only where they can move the answer: around the largest rate that a method stands
        for row in dict.fromkeys((cell.problem, cell.library, cell.method) for cell in cells):
            while next_cell := towards_the_largest_rate(
                plan, row, {cell: record.status == "ok" for cell, record in finished.items()}
            ):
                run(next_cell)


def make_arrays(plan: StabilityPlan, name: str, seed: int) -> Arrays:
    """Make the arrays of a problem for a seed. Raises `UserError` if the problem does not fit the map."""
    problem = plan.problems[name]
    if problem.kernel.name != "matern52" or problem.kernel.ard:
        raise UserError(
            f"problem {name!r}: every library has matern52 with one lengthscale here; "
            "leave kernel.name out and set kernel.ard = false"
        )
    # a run takes the first M of these inducing inputs, so that those of two sizes are nested
    ready, model, theta = start_of(name, problem, plan.most_inducing, plan.checked_rows, seed)
    y, likelihood = ready.y_train, model.likelihood
    n, b = len(y), problem.batch_size
    rng = Stream.STABILITY.generator(seed)
    return {
        "likelihood": likelihood.name,
        "options": problem.likelihood.model_dump_json(exclude={"name"}),
        "classes": getattr(likelihood, "classes", 0),
        "X": np.asarray(ready.X_train),
        "y": y,
        "Z": theta.inducing,
        "rows": np.stack([rng.choice(n, b, replace=False) for _ in range(plan.steps)]),
        "checked": rng.choice(n, plan.checked_rows, replace=False),
        "noise": rng.standard_normal((plan.steps + 1, likelihood.samples, model.latents)),
        "lengthscales": theta.kernel.lengthscales[0, 0],
        "variance": theta.kernel.variance[0],
        "noise_variance": getattr(theta.likelihood, "noise_variance", 0.0),
    }


def run_cell(
    plan: StabilityPlan,
    cell: StabilityCell,
    python: Path,
    arrays: Path,
    limit_s: float,
) -> StabilityRecord:
    """Run one cell in its own process and return its record."""
    request = {
        "do": "walk",
        "arrays": str(arrays),
        "method": cell.method,
        "backend": plan.backend,
        "threads": THREADS,
        "seed": cell.seed,
        "steps": cell.steps,
        "check_every": plan.check_every,
        **cell.point.model_dump(),
    }
    script = LIBRARIES[cell.library].script
    last: dict[str, Any] = {"step": 0}
    began = time.monotonic()
    with TimedProcess.of_script(cell.library, python, script, "cpu", THREADS) as process:
        try:
            process.wait_until_ready(limit_s)
            process.send(request)
            while not last.keys() & {"lived", "died"}:
                last |= process.answer(limit_s - (time.monotonic() - began))
            status, message = cause(last)
        except ProcessSilent:
            status, message = "timeout", f"no end within {limit_s:g} s"
        except ProcessEnded as death:
            status, message = "crashed", str(death)
        except (ProcessFailed, StepRefused) as failure:
            status, message = "error", str(failure)
    variance = last.get("smallest_variance")
    return StabilityRecord(
        run=cell,
        status=status,
        step=last.get("lived", last.get("died", last["step"])),
        message=" ".join(message.split())[:300],
        bounds=tuple(last.get("bounds", ())),
        # JSON has neither NaN nor infinity
        smallest_variance=variance if variance is not None and math.isfinite(variance) else None,
        seconds=round(time.monotonic() - began, 1),
        n=last.get("n", 0),
        versions=process.environment.get("versions"),
        code=_code(plan, cell),
    )


def _code(plan: StabilityPlan, cell: StabilityCell) -> dict[str, str]:
    """Return the digests of the code that a cell's run rests on."""
    problem = plan.problems[cell.problem]
    used = [
        (LIKELIHOODS, problem.likelihood.name),
        *((KERNELS, name) for name in kernel_names(problem.kernel)),
    ]
    if cell.library != OURS:
        return digests_of([(PEERS, cell.library), *used])
    return digests_of([(METHODS, cell.method), (BACKENDS, plan.backend.partition(":")[0]), *used])


def cause(answer: Mapping[str, Any]) -> tuple[Status, str]:
    """Return the cause of a run's end, from its last answer, and the message.

    A non-finite q comes from a precision without a Cholesky factor, unless the library had negative
    variances before, whose roots are NaN. Some libraries raise when such a q is stored.
    """
    message = str(answer.get("message", ""))
    failed_part, text = answer.get("of", ""), message.lower()
    if failed_part == "start":
        return "not_pd", "no bound at q = p: K(Z, Z)"
    if failed_part in ("", "diverged"):
        return "diverged" if failed_part else "ok", message
    if failed_part == "error" and STORED_NAN not in text:
        of_cholesky = any(word in text for word in NOT_PD_WORDS)
        return ("not_pd" if of_cholesky else "error"), message
    if (answer.get("smallest_variance") or 0.0) < 0.0:
        return "negative_variance", message
    return ("nan" if failed_part == "bound" else "not_pd"), message
