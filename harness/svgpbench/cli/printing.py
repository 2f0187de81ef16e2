"""Tables on a terminal, in a file, in a pipe."""

from __future__ import annotations

import os

from rich.console import Console


def printer(width: int = 120) -> Console:
    """As wide as the terminal; of a width where the output goes to a file or a pipe."""
    console = Console(markup=False, emoji=False)  # names are other people's
    if console.is_terminal or os.environ.get("COLUMNS"):
        return console
    return Console(width=width, markup=False, emoji=False)
