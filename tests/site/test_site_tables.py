"""Tables keep their cells on the way to a page."""

from __future__ import annotations

import base64
import gzip
import json

from rich.table import Table
from rich.text import Text

from svgpbench.output.table_formats import TextTable, markdown
from svgpbench.site.pages import packed, slug
from svgpbench.site.tables import of_markdown, of_rich


def test_pipe_tables_are_read_as_they_were_written() -> None:
    table = TextTable(("a", "b|c", "n"), [["x", "1 | 2", "3"], ["", "y", "-4.5±0.1"]], 2)
    text = f"{markdown(table)}\n\n{markdown(table)}\n\n- a note\n- another | note"
    grids, notes = of_markdown(text)
    assert [grid.header for grid in grids] == [("a", "b|c", "n")] * 2
    assert grids[0].rows == (("x", "1 | 2", "3"), ("", "y", "-4.5±0.1"))
    assert grids[0].numeric == (False, False, True)
    assert notes == ("a note", "another | note")


def test_tables_of_a_terminal_keep_their_sides() -> None:
    table = Table(title="times")
    table.add_column("who")
    table.add_column("ms\na step", justify="right")
    table.add_row(Text("ours"), "1.5")
    grid = of_rich(table)
    assert grid == (("who", "ms a step"), (("ours", "1.5"),), (False, True), "times")


def test_what_is_packed_ends_no_script_and_comes_back_the_same_every_time() -> None:
    value = {"x": "</script><!-- a & b \u2028", "n": 1.5}
    found = base64.b64decode(packed(value), validate=True)
    assert found[4:8] == bytes(4)  # when it was compressed is not in it
    assert json.loads(gzip.decompress(found)) == value


def test_names_become_different_names_of_files() -> None:
    names = ["concrete:5", "concrete", "naval@turbine", "a b", "a_b"]
    assert len({slug(name) for name in names}) == len(names)
    assert all(slug(name).replace(".", "").replace("_", "").isalnum() for name in names)
