"""The cells that an experiment, a preset and a selection come to, checked before any of them runs."""

from __future__ import annotations

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, Selection, resolve
from svgpbench.experiments.loading import is_file_name
from svgpbench.experiments.validation import check_cells


def checked_cells(
    name: str, experiment: Experiment, preset: str | None, selection: Selection | None = None
) -> list[CellConfig]:
    """The cells to run; raises `UserError`, of a mistake in the user's own file with its name."""
    try:
        cells = resolve(experiment, preset, selection)
        check_cells(cells)
    except UserError as error:
        raise UserError(f"{name}: {error}" if is_file_name(name) else str(error)) from None
    return cells
