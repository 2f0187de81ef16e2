"""Resolve an experiment to validated cells before any of them runs."""

from __future__ import annotations

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, Selection, resolve
from svgpbench.experiments.loading import is_file_name
from svgpbench.experiments.validation import check_cells


def checked_cells(
    name: str, experiment: Experiment, preset: str | None, selection: Selection | None = None
) -> list[CellConfig]:
    """Return the cells to run. Raises `UserError`, with the file's name if it is the user's own."""
    try:
        cells = resolve(experiment, preset, selection)
        check_cells(cells)
    except UserError as error:
        raise UserError(f"{name}: {error}" if is_file_name(name) else str(error)) from None
    return cells
