"""Caption text on how much smaller the records of a preset are than the paper's runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from svgpbench.config import CellConfig
from svgpbench.papers import Artefact


def scope(
    artefact: Artefact,
    preset: str,
    cells: Sequence[CellConfig],
    whole: Sequence[CellConfig],
) -> str:
    """Describe the preset, its reductions from `whole`, and the artefact's reductions from the paper.

    `whole` are the cells of the artefact's own preset.
    """
    size = f"preset {preset}" if preset else "the experiment as declared"
    own = f"preset {artefact.preset}" if artefact.preset else "the artefact's own size"
    smaller = [*_fewer(cells, whole), *_other_settings(cells, whole)]
    if smaller:
        size += f", smaller than {own}: {', '.join(smaller)}"
    if artefact.smaller:
        size += f"; smaller than in the paper: {artefact.smaller}"
    return f"{size}; {artefact.missing}" if artefact.missing else size


def _fewer(cells: Sequence[CellConfig], whole: Sequence[CellConfig]) -> Iterator[str]:
    """Yield `2 of 5 splits` for each kind of which `cells` has fewer than `whole`."""
    for what, key in (
        ("data sets", lambda cell: cell.data.title),
        ("splits", lambda cell: (cell.split.seed, cell.split.fold)),
        ("starts", lambda cell: cell.seed),
        ("methods", lambda cell: cell.method.title),
    ):
        mine, all_of_them = len({*map(key, cells)}), len({*map(key, whole)})
        if mine < all_of_them:
            yield f"{mine} of {all_of_them} {what}"


def _other_settings(cells: Sequence[CellConfig], whole: Sequence[CellConfig]) -> Iterator[str]:
    """Yield `training.em_iterations 2 where it is 20` for each changed `training` or `inducing` setting."""
    for part in ("training", "inducing"):
        for key in type(getattr(cells[0], part)).model_fields:
            mine, theirs = (_values(each, part, key) for each in (cells, whole))
            if not set(mine) <= set(theirs):
                yield f"{part}.{key} {', '.join(mine)} where it is {', '.join(theirs)}"


def _values(cells: Sequence[CellConfig], part: str, key: str) -> list[str]:
    return list(dict.fromkeys(str(getattr(getattr(cell, part), key)) for cell in cells))
