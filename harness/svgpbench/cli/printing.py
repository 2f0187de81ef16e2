"""Printing of tables, notes, JSON and progress, and the exit codes of commands; 0 is success."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from svgpbench.errors import without_controls
from svgpbench.json_values import json_text
from svgpbench.output.table import Styled, Table

if TYPE_CHECKING:
    from svgpbench.output.built_table import BuiltTable

WIDTH = 120
"""Characters of a line that does not go to a terminal."""

FAILED = 1
"""A cell or a check failed."""

USER_MISTAKE = 2
"""The command line, a file of the user or the data is wrong."""

INTERRUPTED = 130
"""The user pressed Ctrl-C."""


def show(*parts: Table | BuiltTable | str, notes: Iterable[str | Styled] = ()) -> None:
    """Print tables and texts, a blank line between them, and notes below, dim unless styled.

    Tables are as wide as the terminal or `COLUMNS`, and `WIDTH` in a file or a pipe.
    """
    console = Console(markup=False, emoji=False, highlight=False)  # names may contain brackets
    if not _has_width(console):
        console.width = WIDTH
    for index, part in enumerate(parts):
        if index:
            console.print()
        console.print(part)
    for index, note in enumerate(notes):
        if index == 0 and parts:
            console.print()
        text, style = note if isinstance(note, Styled) else (note, "dim")
        shown = _broken(without_controls(text), console)
        console.print(Text(shown, style=style), soft_wrap=True)


def say(*lines: object, err: bool = False) -> None:
    """Print lines. Where there is a width, each is broken at blanks, but not inside of backticks."""
    console = Console(stderr=err)
    for line in lines:
        typer.echo(_broken(without_controls(str(line)), console), err=err)


def _has_width(console: Console) -> bool:
    return console.is_terminal or bool(os.environ.get("COLUMNS"))


def _broken(text: str, console: Console) -> str:
    """Return a text in lines that fit the console; a word, path or command is never broken."""
    if not _has_width(console):
        return text
    # NUL is no blank to `textwrap`, and is not in the text: `without_controls` has escaped it
    whole = re.sub(r"`[^`]+`", lambda command: command[0].replace(" ", "\0"), text)
    lines = (
        textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False)
        for line in whole.split("\n")
    )
    return "\n".join(lines).replace("\0", " ")


def print_json(value: Any) -> None:
    """Print a value as JSON; missing numbers are null."""
    typer.echo(json_text(value))


def tell(text: str) -> None:
    """Print a line of progress on standard error."""
    console = Console(stderr=True)
    console.print(without_controls(text), markup=False, highlight=False, style="dim")


@contextmanager
def counting(doing: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of each item that is done.

    A terminal shows their number and the last name.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda name: None
        return
    with console.status(doing) as status:
        done: list[str] = []

        def count(name: str) -> None:
            done.append(name)
            status.update(f"{doing}: {len(done)} done, {name} the last")

        yield count
