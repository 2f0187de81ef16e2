"""Tables in a terminal: as narrow as it is, with every number whole and under its heading."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from svgpbench.output.table import Column, Styled, Table, columns, number

WIDE = Table(
    (
        Column("data set", wrap=False),
        *(Column("method"), number("n"), number("ELBO", ".1f"), number("seconds", ".3g", "s")),
        *(number(f"score {at}", ".9f") for at in range(8)),
        Column("failed", numeric=True, wrap=True),
    ),
    [
        [
            "airfoil",
            "t-SVGP",
            5,
            -1234.5,
            0.25,
            *(1 / 3 + at for at in range(8)),
            "1 oom, 2 not_pd",
        ],
        ["airfoil", "q-SVGP with Adam", 5, math.nan, None, *(1 / 7 + at for at in range(8)), ""],
        ["sonar", "t-SVGP", 4, 1.0, 1e-5, *(float(at) for at in range(8)), ""],
    ],
    "a title",
    grouped=True,
)


def printed(table: Table, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 300])
def test_no_number_is_cut_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = printed(WIDE, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    for row in WIDE.texts:
        for column, cell in zip(WIDE.columns, row, strict=True):
            assert not column.numeric or column.wraps or cell in text.split(), column.title
            assert all(word in text.split() for word in cell.split()), column.title


def test_a_number_ends_where_its_heading_does() -> None:
    _, header, first, *_ = printed(WIDE, 300)
    for name, value in (("ELBO", "-1234.5"), ("seconds, s", "0.25"), ("score 7", "7.333333333")):
        assert header.index(name) + len(name) == first.index(value) + len(value)


def test_a_narrow_terminal_continues_below_with_the_first_columns_again() -> None:
    lines = printed(WIDE, 60)
    assert sum(line.startswith("data set  method") for line in lines) > 1
    assert sum("a title" in line for line in lines) == 1


def test_equal_neighbours_of_the_first_column_are_shown_once() -> None:
    starts = [line.split("  ")[0] for line in printed(WIDE, 300)]
    assert starts == ["a title", "data set", "airfoil", "", "", "sonar"]


def test_what_is_missing_is_a_dash_among_numbers_and_empty_among_words() -> None:
    table = Table((Column("word"), number("x", ".2f"), Column("y", numeric=True, missing="")), [])
    texts = [[column.text(value) for column in table.columns] for value in (None, math.nan)]
    assert texts == [["", "–", ""]] * 2
    assert table.columns[1].text(Styled(0.5, "red")) == "0.50"


def test_long_words_are_broken_and_no_header_is_shown_where_there_is_none() -> None:
    url = "https://example.org/" + "x" * 60
    lines = printed(Table(columns(("", "")), [["file", url]]), 40)
    assert "".join("".join(line.split()[-1:]) for line in lines) == url
    assert lines[0].startswith("file")


def test_a_number_with_its_error_stays_on_one_line() -> None:
    value = "-1.2345 ± 0.0067"
    table = Table(
        (Column("method"), *(number(f"score {i}") for i in range(4))), [["A", *[value] * 4]]
    )
    lines = printed(table, 40)
    assert sum(line.count(value) for line in lines) == 4
