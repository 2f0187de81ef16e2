"""Measurement of a step's time and memory against each size: geometric ladders around one shape.

A ladder varies one size and keeps the others at the centre's. Each of its sizes is a rung; the centre is a
rung of every ladder. A cell is one step at one shape, timed in a fresh pinned process as by
`svgpbench speed`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, NonNegativeInt

from svgpbench.benchmarks.timing.cases import timed_method
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES, time_step
from svgpbench.benchmarks.timing.floor import work_of
from svgpbench.benchmarks.timing.problems import SHAPES, Shape, problem_of, save_problem
from svgpbench.benchmarks.timing.process import ProcessFailed, TimedProcess
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.environment import describe
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.json_values import json_value
from svgpbench.plugins import check_backend
from svgpbench.runs.core_locks import timing_cores

AXES = {"N": "n", "M": "M", "b": "b", "P": "classes", "D": "D"}
"""Sizes that a ladder may vary, each with its field of `Shape`."""

STEPS = ("e_step", "m_step")
RATIO = 2.0
"""Ratio of neighbouring rungs of a ladder."""


class MemoryGrowth(NamedTuple):
    """Resident bytes of a cell's process."""

    before: NonNegativeInt  # after importing its framework
    peak: NonNegativeInt

    @property
    def growth(self) -> int:
        """Bytes used by the data, the step and its compilation."""
        return self.peak - self.before


@dataclass
class ScalingReport:
    """Cells of all ladders. Each shape is a problem of the speed report, named by its title."""

    centre: Shape
    shapes: dict[str, Shape]
    speed: SpeedReport
    memory: dict[str, dict[str, MemoryGrowth]] = field(default_factory=dict)  # title -> step

    def ladder(self, axis: str, step: str) -> list[tuple[Shape, TimedCell]]:
        """Return the cells of a ladder that have a time, from the smallest shape to the largest."""
        name, ladder = AXES[axis], []
        for cell in self.speed.cells:
            shape = self.shapes[cell.problem]
            at_centre = shape._replace(**{name: getattr(self.centre, name)}) == self.centre
            if cell.step == step and at_centre and not cell.error and cell.times() is not None:
                ladder.append((shape, cell))
        return sorted(ladder, key=lambda rung: int(getattr(rung[0], name)))

    def to_json(self) -> dict[str, Any]:
        """Return all that `svgpbench speed` records, with the shapes and the memory in bytes."""
        values: dict[str, Any] = json_value({**vars(self), "speed": self.speed.to_json()})
        return values

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ScalingReport:
        """Return the report that `to_json` wrote.

        Raises `ValueError`, `TypeError` or `KeyError` for anything else.
        """
        values = {**record, **record["speed"]["settings"]}
        form = _ReportForm.model_validate_json(json.dumps(values, allow_nan=False), strict=True)
        report = cls(form.centre, form.shapes, SpeedReport.from_json(record["speed"]), form.memory)
        _refuse_gaps(report)
        return report


class _ReportForm(BaseModel, extra="ignore"):
    """Form of a record, except for the report of times."""

    centre: Shape
    shapes: dict[str, Shape]
    memory: dict[str, dict[str, MemoryGrowth]]
    axes: tuple[Literal["N", "M", "b", "P", "D"], ...]
    backend: str
    method: str


def _refuse_gaps(report: ScalingReport) -> None:
    """Raise `ValueError` if titles or cells are inconsistent, or a timed cell lacks data for a law."""
    if any(title_of(shape) != title for title, shape in report.shapes.items()):
        raise ValueError("a shape under another title")
    cells = report.speed.cells
    if len({(cell.problem, cell.step) for cell in cells}) < len(cells):
        raise ValueError("a cell twice")
    for cell in cells:
        if cell.error or cell.times() is None:
            continue
        memory = report.memory.get(cell.problem, {})
        if cell.problem not in report.shapes or cell.step not in memory or cell.work is None:
            raise ValueError("a time without its shape, its memory or its work")


def rungs(centre: Shape, axes: Sequence[str], count: int) -> dict[str, Shape]:
    """Return the shapes of all ladders by title, the centre first.

    Raises `UserError` for an unknown axis or likelihood, fewer than three rungs, a size below 1, a batch
    larger than the data, and axis P if the likelihood has one latent function.
    """
    if count < 3:
        raise UserError(f"--rungs {count}: a slope and its interval need at least 3")
    likelihoods = {shape.likelihood for shape in SHAPES.values()}
    refuse_unknown("likelihood of scaling", [centre.likelihood], likelihoods)
    shapes = {title_of(centre): centre}
    for axis in axes:
        refuse_unknown("axis of scaling", [axis], AXES)
        if axis == "P" and centre.classes == 1:
            raise UserError(f"axis P: {centre.likelihood} has one latent function; take softmax")
        middle = getattr(centre, AXES[axis])
        for rung in range(count):
            size = round(middle * RATIO ** (rung - count // 2))
            shape = centre._replace(**{AXES[axis]: size})
            if size < 1 or shape.b > shape.n:
                raise UserError(
                    f"axis {axis} from {middle}: {title_of(shape)} cannot be; "
                    "a size is at least 1 and a batch no more than the data"
                )
            shapes.setdefault(title_of(shape), shape)
    return shapes


def title_of(shape: Shape) -> str:
    """Return the sizes of a shape as text."""
    return " ".join(f"{axis}={getattr(shape, name)}" for axis, name in AXES.items())


def run_scaling(
    centre: Shape,
    backend: str,
    method: str,
    axes: Sequence[str],
    count: int = 5,
    repeats: int = 5,
    threads: int = 1,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    max_other_cores: float = MAX_OTHER_CORES,
    device: str = "cpu",
    on_step: Callable[[ScalingReport], None] = lambda report: None,
) -> ScalingReport:
    """Time an E-step and an M-step on every rung, each in a fresh process.

    Raises `UserError` as `rungs` does, for an unknown name, and for a likelihood that the method refuses.
    `on_step` is called with the unfinished report after each step of each shape. The speed report is marked
    `interrupted` until all is timed, and after Ctrl-C.
    """
    shapes = rungs(centre, axes, count)
    check_backend(backend.partition(":")[0])
    timed_method(method).refuse(method, problem_of(centre).model().likelihood)
    settings = {
        "backend": backend,
        "method": method,
        "axes": list(axes),
        "repeats": repeats,
        "threads": threads,
        "device": device,
        "max_other_cores": max_other_cores,
    }
    environment = {"parent": describe(threads, device).model_dump(mode="json")}
    report = ScalingReport(centre, shapes, SpeedReport([], settings, environment))
    report.speed.interrupted = True
    with suppress(KeyboardInterrupt):
        for title in shapes:
            for step in STEPS:
                _run_cell(report, title, step, on_progress)
                on_step(report)
        report.speed.interrupted = False
    return report


def _run_cell(
    report: ScalingReport, title: str, step: str, on_progress: Callable[[str], None]
) -> None:
    settings, problem = report.speed.settings, problem_of(report.shapes[title])
    backend, method = settings["backend"], settings["method"]
    device, threads = settings["device"], settings["threads"]
    family = timed_method(method).family
    cell = TimedCell(title, step, backend, method, family, peer=False)
    cell.work = work_of(problem, method, step)
    with (
        tempfile.TemporaryDirectory() as folder,
        timing_cores(threads) as reserved,
        TimedProcess.of_backend(backend, device, threads, reserved.cores) as process,
    ):
        report.speed.note_cores(reserved.note)
        path = Path(folder) / "problem.npz"
        save_problem(problem, path)
        try:
            process.wait_until_ready()
            report.speed.environment[backend] = process.environment
            before = process.ask({"do": "memory"})["peak_bytes"]
            repeats, others = settings["repeats"], settings["max_other_cores"]
            time_step([(process, cell)], path, repeats, others, on_progress)
            peak = process.ask({"do": "memory"})["peak_bytes"]
            report.memory.setdefault(title, {})[step] = MemoryGrowth(before, peak)
        except ProcessFailed as failure:
            cell.error = cell.error or str(failure)
    report.speed.cells.append(cell)
