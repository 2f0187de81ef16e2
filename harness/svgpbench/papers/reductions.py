"""Caption text on how much smaller the records of a preset are than the paper's runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from svgpbench.config import CellConfig
from svgpbench.papers import Artefact


def scope(
    artefact: Artefact,
    preset: str,
    cells: Sequence[CellConfig],
    own_cells: Sequence[CellConfig],
) -> str:
    """Describe the preset, its reductions from `own_cells`, and the artefact's reductions from the paper.

    `own_cells` are the cells of the artefact's own preset.
    """
    size = f"preset {preset}" if preset else "the experiment as declared"
    own_preset = artefact.experiment and artefact.experiment.preset
    own_size = f"preset {own_preset}" if own_preset else "the artefact's own size"
    reductions = list(_reductions(cells, own_cells))
    if reductions:
        size += f", smaller than {own_size}: {', '.join(reductions)}"
    if artefact.smaller:
        size += f"; smaller than in the paper: {artefact.smaller}"
    return f"{size}; {artefact.missing}" if artefact.missing else size


def _reductions(cells: Sequence[CellConfig], own_cells: Sequence[CellConfig]) -> Iterator[str]:
    """Yield `2 of 5 splits` for what is fewer, `training.e_steps 2 where it is 20` for a changed setting."""
    for what, key in (
        ("data sets", lambda cell: cell.data.title),
        ("splits", lambda cell: (cell.split.seed, cell.split.fold)),
        ("starts", lambda cell: cell.seed),
        ("methods", lambda cell: cell.method.title),
    ):
        count, own_count = len({*map(key, cells)}), len({*map(key, own_cells)})
        if count < own_count:
            yield f"{count} of {own_count} {what}"
    for part in ("training", "inducing"):
        for key in type(getattr(cells[0], part)).model_fields:
            values, own_values = (
                list(dict.fromkeys(str(getattr(getattr(cell, part), key)) for cell in some_cells))
                for some_cells in (cells, own_cells)
            )
            if not set(values) <= set(own_values):
                yield f"{part}.{key} {', '.join(values)} where it is {', '.join(own_values)}"
