"""Console that prints tables to a terminal, a file or a pipe."""

from __future__ import annotations

import os

from rich.console import Console


def printer(width: int = 120) -> Console:
    """Return a console as wide as the terminal or `COLUMNS`; otherwise `width` characters wide."""
    console = Console(markup=False, emoji=False)  # user-supplied names are not markup
    if console.is_terminal or os.environ.get("COLUMNS"):
        return console
    return Console(width=width, markup=False, emoji=False)
