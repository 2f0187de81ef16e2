"""What is written is whole, and names in it are shown, not computed, rendered or obeyed."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pandas as pd
import pytest
from interpreter import python
from matplotlib.figure import Figure
from rich.console import Console

from svgpbench.atomic import write_whole
from svgpbench.csv_text import as_csv
from svgpbench.errors import UserError
from svgpbench.output.palette import line_styles
from svgpbench.output.panel import legend, plain, title_of
from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import markdown
from svgpbench.results.tidy import write_table
from svgpbench_datasets import DataError
from svgpbench_datasets.whole_files import whole_file

FULL = """
import resource, signal, sys
from pathlib import Path
from matplotlib.figure import Figure
import pandas as pd
from svgpbench.errors import UserError
from svgpbench.output.figure import write_figure
from svgpbench.results.tidy import write_table

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # a disk with 100 bytes left
for path in map(Path, sys.argv[1:]):
    try:
        if path.suffix == ".csv":
            write_table(path, pd.DataFrame({"a": range(1000)}))
        else:
            figure = Figure()
            figure.subplots().plot([0, 1])
            write_figure(figure, path)
    except UserError as error:
        print(error)
"""


@pytest.mark.parametrize("before", [b"the old content", None])
def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path, before: bytes | None) -> None:
    paths = [tmp_path / name for name in ("a.png", "b.pdf", "c.svg", "d.csv")]
    for path in paths if before else []:
        path.write_bytes(before or b"")
    done = python("-B", "-c", FULL, *paths)
    assert not done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"cannot write {path}" for path in paths]
    assert sorted(os.listdir(tmp_path)) == (["a.png", "b.pdf", "c.svg", "d.csv"] if before else [])
    assert all(path.read_bytes() == before for path in paths if before)


def test_a_writer_that_raises_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    with pytest.raises(DataError, match="table"), whole_file(path) as draft:
        draft.write_text("half")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["table.parquet"]
    write_whole(path, b"new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["table.parquet"]
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match=r"^cannot write .*taken: "):
        write_whole(tmp_path / "taken", b"")


NAMES = ["$x^$", "cost in $ and $ per m_2", r"\$5", "a$b"]


def drawn(figure: Figure) -> str:
    content = io.StringIO()
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(content, format="svg")
    return content.getvalue()


@pytest.mark.parametrize("name", NAMES[:2] + NAMES[3:])
def test_dollars_in_names_are_drawn(name: str) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2])
    axes.set_title(title_of(name, pd.DataFrame()))
    legend(figure, line_styles([name]))
    axes.set_yticks([1], [plain(name)])
    assert drawn(figure).count(f">{name}</text>") == 3


def test_the_size_of_a_data_set_is_a_formula_beside_a_name_with_dollars() -> None:
    figure = Figure()
    rows = pd.DataFrame({"n_train": [40], "dimensions": [2]})
    figure.subplots().set_title(title_of("$x^$", rows))
    shown = drawn(figure)
    assert ">$n=40$" not in shown and ">$x^$<" in shown


def test_texts_that_a_spreadsheet_computes_get_an_apostrophe_and_numbers_none(
    tmp_path: Path,
) -> None:
    names = ["=1+1", "+a", "-a", "@a", "\ta", "a=1", "-1.5", "", "'=1"]
    frame = pd.DataFrame({"=name": names, "number": [-1.5] * 8 + [None], "whole": -2})
    lines = as_csv(frame).splitlines()
    assert lines[0] == "'=name,number,whole"
    shown = [line.split(",")[0] for line in lines[1:]]
    assert shown == ["'=1+1", "'+a", "'-a", "'@a", "'\ta", "a=1", "-1.5", "", "'=1"]
    assert lines[1] == "'=1+1,-1.5,-2" and lines[-1] == "'=1,,-2"
    write_table(tmp_path / "a.csv", frame)
    assert (tmp_path / "a.csv").read_text() == as_csv(frame)
    write_table(tmp_path / "a.parquet", frame)  # nothing computes these
    assert pd.read_parquet(tmp_path / "a.parquet")["=name"].to_list() == names


def test_names_do_not_become_tags_or_cells_of_markdown() -> None:
    table = Table(columns(["<b>name"]), [["<script>x|y</script>"], ["a < b, <1, a<!--"]])
    assert markdown(table).splitlines() == [
        "| &lt;b>name |",
        "| --- |",
        r"| &lt;script>x\|y&lt;/script> |",
        "| a < b, <1, a&lt;!-- |",
    ]


def test_control_characters_do_not_reach_a_terminal() -> None:
    evil = "a\x1b[2Jb\x07\u202ec\u2009d"
    out = io.StringIO()
    Console(file=out, width=80).print(Table(columns([evil]), [[f"{evil}\nnext"]], notes=[evil]))
    shown = out.getvalue()
    assert not {"\x1b", "\x07", "\u202e"} & {*shown}
    assert r"a\x1b[2Jb\x07\u202ec" in shown and "\u2009d" in shown  # a thin blank stays


def test_lines_of_commands_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    from svgpbench.cli.printing import say, show, tell

    say("first\nsecond \x1b[1m")
    show("part", notes=["note \x1b[1m"])
    tell("progress \x1b[1m")
    seen = capsys.readouterr()
    assert "\x1b" not in seen.out + seen.err
    assert "first\nsecond \\x1b[1m\n" in seen.out and "note \\x1b[1m" in seen.out
