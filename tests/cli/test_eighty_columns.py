"""Every command in a terminal of 80 columns: no number is cut, and no line is too long.

The line of a mistake is not broken, so that it can be searched for: see `test_mistakes.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from command_line import Cli, Outcome
from command_table import COMMANDS, SLOW, leaf_commands, name_of
from rich.console import RenderableType
from stand_ins import put_in

from svgpbench.output import terminal
from svgpbench.output.table import Table

WIDTH = 80
LINES = {line: code for code in (0, 1) for line in COMMANDS[code]}
NO_TABLE = {"", "plot", "run", "reproduce", "report", "data table", "collect", "new"}
"""Commands that print no table; `data table` prints Markdown."""

HAS_LONG_LINES = ("fetch", "data table")
"""Commands that print addresses of files, one a line, or rows of Markdown."""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Table, int]]:
    """Tables that a command prints, with the widths that they have."""
    found: list[tuple[Table, int]] = []
    real = terminal.fitted

    def fitted(table: Table, width: int) -> Iterator[RenderableType]:
        found.append((table, width))
        return real(table, width)

    monkeypatch.setattr(terminal, "fitted", fitted)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return found


def check_lines(outcome: Outcome) -> None:
    """A line longer than the terminal is one word or command, which would not be copied if it were broken."""
    assert outcome.out + outcome.err
    for line in f"{outcome.out}{outcome.err}".splitlines():
        if line.startswith("["):
            continue  # a finished cell: a terminal shows a bar instead
        whole = re.sub(r"`[^`]+`", lambda command: command[0].replace(" ", "_"), line)
        assert len(line) <= WIDTH or len(whole.split()) == 1, line


def check_tables(out: str, shown: list[tuple[Table, int]]) -> None:
    words = out.split()
    for table, width in shown:
        assert width <= WIDTH
        for row in table.texts:
            for column, text in zip(table.columns, row, strict=True):
                may_differ = not column.numeric or column.wraps or column.optional
                assert may_differ or set(text.split()) <= set(words), text


@pytest.mark.parametrize(
    "line", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in LINES]
)
def test_a_command_prints_readable_tables_and_no_line_that_is_too_long(
    in_workplace: Cli, shown: list[tuple[Table, int]], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    put_in(line, monkeypatch)
    outcome = in_workplace(*shlex.split(line))
    assert outcome.code == LINES[line], outcome.err
    assert COMMANDS[outcome.code][line] in " ".join(outcome.out.split())
    assert bool(shown) == (name_of(line) not in NO_TABLE and "--roofline" not in line)
    assert not re.search(r"\d…", outcome.out)
    check_tables(outcome.out, shown)
    if name_of(line) not in HAS_LONG_LINES:
        check_lines(outcome)


@pytest.mark.parametrize("command", leaf_commands())
def test_help_prints_no_line_that_is_too_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    check_lines(cli(*command.split(), "--help"))


def test_every_command_has_a_line_that_works_and_one_with_a_mistake() -> None:
    assert leaf_commands().keys() <= {name_of(line) for line in LINES}
    assert leaf_commands().keys() <= {name_of(line) for line in COMMANDS[2]}
