"""Tables of an experiment's records, in every form that a command prints or a file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from svgpbench.csv_text import as_csv
from svgpbench.errors import without_controls
from svgpbench.json_values import json_value
from svgpbench.output.table import Table
from svgpbench.output.table_formats import latex, markdown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True)
class BuiltTable:
    """Tables of records with their footnotes, and a frame of the numbers behind them."""

    experiment: str
    tables: tuple[Table, ...]
    frame: pd.DataFrame  # unrounded, and with rows and columns that the tables leave out
    meanings: tuple[str, ...]  # footnotes on what the columns mean
    notes: tuple[str, ...]  # footnotes on these records
    facts: Mapping[str, Any] = field(default_factory=dict)  # further keys of the JSON

    @property
    def footnotes(self) -> tuple[str, ...]:
        """Lines below the tables."""
        return (*self.meanings, *self.notes)

    def to_csv(self) -> str:
        """Return the frame. Lists are joined by semicolons, and dictionaries are JSON."""
        texts = self.frame.map(lambda x: "; ".join(x) if isinstance(x, list) else x)
        texts = texts.map(lambda x: json.dumps(x) if isinstance(x, dict) else x)
        return as_csv(texts)

    def to_json(self) -> dict[str, Any]:
        """Return the rows of the frame, the notes and the facts. Missing values are null."""
        rows = self.frame.to_dict(orient="records")
        content: dict[str, Any] = json_value(
            {"experiment": self.experiment, "rows": rows, "notes": self.notes, **self.facts}
        )
        return content

    def to_markdown(self) -> str:
        """Return pipe tables, and the footnotes as a list."""
        notes = "\n".join(f"- {note}" for note in self.footnotes)
        return "\n\n".join([*map(markdown, self.tables), notes])

    def to_latex(self) -> str:
        """Return tables for `booktabs`, with the footnotes in their captions."""
        return "\n\n".join(
            latex(table, f"{table.title}: {'. '.join(table.notes or self.footnotes)}.")
            for table in self.tables
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables, then the footnotes."""
        from rich.text import Text

        for table in self.tables:
            yield replace(table, notes=())
            yield ""
        yield from (Text(without_controls(note), style="dim") for note in self.footnotes)
