"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from svgpbench.cli.printing import tell
from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.experiments import Experiment
    from svgpbench.experiments.plan import Plan

RESULTS = Path("runs")
"""Default folder of records."""

COMMITTED = Path("results")
"""Folder of the committed records in a clone."""


class Dtype(StrEnum):
    """Floating-point types that a backend may offer."""

    float64 = "float64"
    float32 = "float32"


class Device(StrEnum):
    """Devices that a backend may compute on."""

    cpu = "cpu"
    cuda = "cuda"


Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="Number of threads per process; 2 by default if there are 2 cores."
    ),
]
MaxOtherCores: TypeAlias = Annotated[
    float,
    typer.Option(
        "--max-other-cores", min=0, help="Cores of CPU that other processes may use during a round."
    ),
]


def path_named(text: str | Path) -> Path:
    """Return the path that an option names. An empty text would be the current folder."""
    if not str(text):
        raise typer.BadParameter("it is empty; name a path (. is the current folder)")
    return Path(text)


ExperimentName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="EXPERIMENT", help="Shipped experiment, or a .toml file of your own."),
]
PresetName: TypeAlias = Annotated[
    str | None, typer.Option("--preset", help="Size of the experiment, such as quick or paper.")
]
ResultsFolder: TypeAlias = Annotated[
    Path,
    typer.Option("--results", metavar="DIR", help="Folder of records.", parser=path_named),
]
RecordsFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="DIR",
        help="Folder of records; runs by default, or results if only that has records.",
        parser=path_named,
    ),
]
Backends: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="NAME[:MODE]",
        help="Backend, with a mode or without; repeat for several.",
    ),
]
OnDevice: TypeAlias = Annotated[
    Device, typer.Option("--device", help="Device that backends compute on.")
]
KernelName: TypeAlias = Annotated[str, typer.Option("--kernel", help="Kernel of the model.")]
PlanProblems: TypeAlias = Annotated[
    list[str] | None, typer.Option("--problem", help="Problem of the plan; repeat for several.")
]
FromRecords: TypeAlias = Annotated[
    bool, typer.Option("--from-records", help="Show the existing records and run nothing.")
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option("--jobs", help="Number of workers at a time; as many as fit by default."),
]
DaskAddress: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Address of a Dask scheduler whose workers compute."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def chosen_plan(
    declared: Experiment, preset: str | None, backends: Sequence[str] | None
) -> Plan | Experiment:
    """Return the cells of a preset on the chosen backends; without a preset, the whole experiment."""
    from svgpbench.experiments import Selection
    from svgpbench.experiments.plan import Plan

    return Plan.of(declared, preset, Selection(backends=backends or ())) if preset else declared


def records_folder(results: Path | None) -> Path:
    """Return the folder of records to read.

    Without `--results` this is `runs`. If `runs` has no records but `results` has, as in a fresh clone,
    it is `results`, and a line on stderr says so. Raises `UserError` if the named folder is not there.
    """
    if results is not None:
        if results.is_file():
            raise UserError(f"--results {results} is a file; name a folder with records")
        if not results.is_dir() and results != RESULTS:  # the first run makes the default folder
            raise UserError(f"--results {results}: there is no such folder; name one with records")
        return results
    if not _has_records(RESULTS) and _has_records(COMMITTED):
        tell(f"no records in {RESULTS}: reading those in {COMMITTED}")
        return COMMITTED
    return RESULTS


def has_records(results: Path | None) -> bool:
    """Return True if the user names a folder of records, or if one of the default folders has some."""
    return results is not None or _has_records(RESULTS) or _has_records(COMMITTED)


def shipped_count_too(results: Path | None) -> bool:
    """Return True if the records and grades that are shipped count beside those of `records_folder`.

    They do unless the user names a folder, or a clone has them as `results`.
    """
    return results is None and _has_records(RESULTS)


def _has_records(folder: Path) -> bool:
    """Return True if a folder has records of cells, or of `svgpbench learn` or `survive`."""
    from svgpbench.results.store import experiments

    others = (folder / name for name in ("learning", "survival"))
    return any(other.is_dir() for other in others) or bool(experiments(folder))


def default_threads() -> int:
    """Return 2, or 1 if only one core is usable."""
    from svgpbench.runs.cores import usable_cores

    return min(2, len(usable_cores()))
