"""Drawing of figures of every kind, their captions and their files."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from svgpbench.atomic import refuse_absent_folder, write_whole
from svgpbench.errors import UserError
from svgpbench.output.figure_and_table_types import ComputedFigure, FigureKind
from svgpbench.output.figures.convergence import Convergence
from svgpbench.output.panel import STYLE, unhide_labels
from svgpbench.output.plot_data import PlotData
from svgpbench.results.backend_agreement import between_backends
from svgpbench.results.collect import Collected

FORMATS = (".png", ".pdf", ".svg")
SAVED: dict[Any, Any] = {
    # without a salt of ours the ids in an SVG are random
    "svg.hashsalt": "svgpbench",
    # TrueType: Matplotlib's default, Type 3, is refused by many journals
    "pdf.fonttype": 42,
}


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
    for file in paths:
        check_figure_path(file)
    kind = kind or Convergence()
    plot_data = PlotData.from_records(collected.experiment, kind.records_of(collected))
    # around the saving too, which is when fonts are looked up
    with matplotlib.rc_context(STYLE):
        figure = kind.draw(plot_data)
        caption = _caption(collected, plot_data, kind)
        save(figure, paths, caption)
    return caption


def draw_computed(frame: pd.DataFrame, kind: ComputedFigure, subject: str, *paths: Path) -> str:
    """Draw a figure of a computed frame to `paths`, and return its caption, which starts with `subject`.

    Raises `UserError` if a file cannot be written or a column is missing.
    """
    for file in paths:
        check_figure_path(file)
    caption = " ".join([f"{subject}: {kind.shows}", *kind.remarks(frame), "Computed afresh."])
    with matplotlib.rc_context(STYLE):
        save(kind.draw(frame), paths, caption)
    return caption


def save(figure: Figure, paths: Sequence[Path], caption: str) -> None:
    """Write a figure to files with the caption as metadata. Raises `UserError` if one cannot be written."""
    unhide_labels(figure)
    figure.set_layout_engine("none")  # keeps this layout, in which no label overlaps a curve
    for file in paths:
        write_figure(figure, file, caption)


def write_figure(figure: Figure, path: Path, caption: str | None = None, *, dpi: int = 200) -> None:
    """Write a figure to a file, whole or not at all, with the caption as metadata.

    The same figure gives the same file. Raises `UserError` if the file cannot be written.
    """
    suffix = path.suffix[1:].lower()
    # no date, and no version of Matplotlib in a PNG: they would make another file of the same figure
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Description": caption, "Software": None},
        "pdf": {"Subject": caption, "CreationDate": None},
        "svg": {"Description": caption, "Date": None},
    }
    content = io.BytesIO()
    with matplotlib.rc_context(SAVED):
        figure.savefig(content, format=suffix, dpi=dpi, metadata=metadata[suffix])
    write_whole(path, content.getvalue())


def _caption(collected: Collected, plot_data: PlotData, kind: FigureKind) -> str:
    """Return the caption: the content, the backends, remarks of the kind, and notes on the records."""
    parts = [f"{plot_data.experiment}: {kind.caption(plot_data)} Drawn: {plot_data.backend}."]
    others = [name for name in plot_data.all["backend"].unique() if name != plot_data.backend]
    differ = between_backends(plot_data.all)
    if others and not math.isnan(differ):
        parts.append(
            f"{', '.join(others)}: the final ELBO of the same cell differs by {differ:.0e} "
            "relative at most."
        )
    return " ".join(
        [*parts, *kind.remarks(plot_data), *(f"Note: {note}." for note in collected.notes)]
    )
