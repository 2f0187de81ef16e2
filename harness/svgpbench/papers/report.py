"""Report on an artefact, which the command, the committed pages and the site all show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from svgpbench.atomic import write_whole
from svgpbench.output.table import Table

if TYPE_CHECKING:
    from svgpbench.papers.published_values import PrintedComparison


PRINTED_BESIDE_OURS = "printed-beside-ours"
"""Name of the table of printed numbers."""


class WrittenFigure(NamedTuple):
    """A figure that was drawn, with its files."""

    name: str
    caption: str
    png: Path
    pdf: Path
    module: str  # name of the module that draws it
    numbers: Path | None = None  # CSV of a computed frame

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of the picture in two formats, of the caption, and of the numbers if there are any."""
        numbers = () if self.numbers is None else (self.numbers,)
        return (self.png, self.pdf, self.caption_file, *numbers)

    @property
    def caption_file(self) -> Path:
        """Path of the text file with the caption."""
        return self.png.with_suffix(".txt")

    def with_caption(self) -> WrittenFigure:
        """Write the caption to its file, and return the figure. Raises `UserError` if it cannot."""
        write_whole(self.caption_file, f"{self.caption}\n".encode())
        return self


class WrittenTable(NamedTuple):
    """Tables that were built under one name, with their notes and files."""

    name: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    markdown: str  # tables and notes
    md: Path
    latex: Path
    csv: Path
    module: str = ""  # name of the module that builds them
    folded: bool = True  # whether a page hides it until it is asked for

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of the tables in three formats."""
        return self.md, self.latex, self.csv


@dataclass(frozen=True)
class ArtefactReport:
    """Figures and tables of an artefact, and the reason and the command for what is missing."""

    description: str  # of the evidence, see `Evidence.description`
    figures: tuple[WrittenFigure, ...] = ()
    tables: tuple[WrittenTable, ...] = ()
    comparisons: tuple[PrintedComparison, ...] = ()
    notes: tuple[str, ...] = ()  # reasons for what is not shown
    statuses: Mapping[str, str] = field(default_factory=dict)  # of each record, by cell id
    missing: int = 0  # cells without a record
    command: str = ""  # makes the missing records
    incomplete: bool = False  # whether something that is recorded is not shown

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of all files of its figures and tables."""
        of_figures = (path for figure in self.figures for path in figure.files)
        return (*of_figures, *(path for table in self.tables for path in table.files))


def write_table(
    stem: Path,
    tables: Sequence[Table],
    notes: Sequence[str],
    texts: tuple[str, str, str],
    module: str = "",
    *,
    folded: bool = True,
) -> WrittenTable:
    """Write a table as Markdown, LaTeX and CSV, which are `texts`, to files named after `stem`.

    Raises `UserError` if one cannot be written.
    """
    md, tex, csv = (add_suffix(stem, suffix) for suffix in ("md", "tex", "csv"))
    for path, text in zip((md, tex, csv), texts, strict=True):
        write_whole(path, f"{text.rstrip()}\n".encode())
    return WrittenTable(
        stem.name, tuple(tables), tuple(notes), texts[0], md, tex, csv, module, folded
    )


def add_suffix(stem: Path, suffix: str) -> Path:
    """Return a path with a suffix added. `Path.with_suffix` would cut a name at its last dot."""
    return stem.with_name(f"{stem.name}.{suffix}")
