"""Drawing of figures of every kind, their captions and their files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from svgpbench.atomic import refuse_absent_folder
from svgpbench.errors import UserError
from svgpbench.output.figure_and_table_types import ComputedFigure, FigureKind
from svgpbench.output.figures.convergence import Convergence
from svgpbench.output.panel import STYLE, unhide_labels
from svgpbench.output.plot_data import Drawn
from svgpbench.results.backend_agreement import between_backends
from svgpbench.results.collect import Collected

FORMATS = (".png", ".pdf", ".svg")


def check_figure_path(path: Path) -> None:
    """Raise `UserError` if a figure cannot have this path: its suffix is unknown or its folder absent."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{path}: name a file ending in {', '.join(FORMATS)}")
    refuse_absent_folder(path)


def draw_figure(
    collected: Collected, path: Path, kind: FigureKind | None = None, *also: Path
) -> str:
    """Draw a figure to `path` and to the paths `also`, and return its caption.

    Without a kind, the figure is `Convergence`.
    Raises `UserError` if a file cannot be written or the records have nothing to draw.
    """
    paths = (path, *also)
    for one in paths:
        check_figure_path(one)
    kind = kind or Convergence()
    drawn = Drawn.of(collected.experiment, kind.chosen(collected))
    with matplotlib.rc_context(STYLE):
        figure = kind.draw(drawn)
        caption = _caption(collected, drawn, kind)
        save(figure, paths, caption)
    return caption


def draw_computed(frame: pd.DataFrame, kind: ComputedFigure, of: str, *paths: Path) -> str:
    """Draw a figure of a computed frame to `paths`, and return its caption, which starts with `of`.

    Raises `UserError` if a file cannot be written or a column is missing.
    """
    for one in paths:
        check_figure_path(one)
    caption = " ".join([f"{of}: {kind.shows}", *kind.remarks(frame), "Computed afresh."])
    with matplotlib.rc_context(STYLE):
        save(kind.draw(frame), paths, caption)
    return caption


def save(figure: Figure, paths: Sequence[Path], caption: str) -> None:
    """Write a figure to files with the caption as metadata. Raises `UserError` if one cannot be written."""
    unhide_labels(figure)
    for one in paths:
        try:
            figure.savefig(one, dpi=200, metadata=_metadata(one, caption))
        except OSError as error:
            raise UserError(f"{one} cannot be written ({error.strerror})") from None


def _caption(collected: Collected, drawn: Drawn, kind: FigureKind) -> str:
    parts = [f"{drawn.experiment}: {kind.caption(drawn)} Drawn: {drawn.backend}."]
    others = [name for name in drawn.all["backend"].unique() if name != drawn.backend]
    differ = between_backends(drawn.all)
    if others and not math.isnan(differ):
        parts.append(
            f"{', '.join(others)}: the final ELBO of the same cell differs by {differ:.0e} "
            "relative at most."
        )
    return " ".join([*parts, *kind.remarks(drawn), *(f"Note: {note}." for note in collected.notes)])


def _metadata(path: Path, caption: str) -> dict[str, str | None]:
    """Return the metadata: the caption, and no date, so that the same records give the same file."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return {"Subject": caption, "CreationDate": None}
    if suffix == ".svg":
        return {"Description": caption, "Date": None}
    return {"Description": caption}
