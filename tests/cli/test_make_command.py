"""`svgpbench data make`: a file where it was asked for, and mistakes in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli

from svgpbench_datasets import load_user_table


@pytest.fixture(autouse=True)
def an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)


def test_a_small_walk_is_made_and_run_as_a_users_table(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium", reason="the extra `walker` is not installed")
    pytest.importorskip("mujoco", reason="the extra `walker` is not installed")
    asked = ("data", "make", "walker-stand-in", "--rows", "200", "--frames", "1", "--seed", "2")
    made = cli(*asked, "--out", "mine.parquet")
    assert (made.code, made.out) == (0, "200 rows of 32 columns: mine.parquet\n")
    assert made.err == "making 200 rows\n"
    names = [f"x{at}" for at in range(1, 24)]
    table = load_user_table("mine.parquet", target="y1", task="regression", features=names)
    assert table.X.shape == (200, 23)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.parquet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["walker"], "unknown data set 'walker'"),
        (["boston"], "'boston' is not one that is made (these are: walker-stand-in, walker-"),
        (["walker-stand-in", "--rows", "300"], "name a file for them with --out"),
        (["walker-stand-in", "--policy", "random"], "name a file for them with --out"),
        (["walker-stand-in", "--rows", "0", "--out", "w.parquet"], "--rows"),
        (["walker-stand-in", "--frames", "3", "--out", "w.parquet"], "--frames"),
        (["walker-stand-in", "--rows", "9", "--out", "w.csv"], "let its name end in .parquet"),
        (["walker-stand-in", "--rows", "9", "--out", "d.parquet"], "d.parquet is a folder"),
        (
            ["walker-stand-in", "--policy", "randon", "--out", "w.parquet"],
            "unknown policy 'randon'; did you mean 'random'?",
        ),
    ],
)
def test_a_mistake_is_one_line_and_no_file(
    cli: Cli, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "d.parquet").mkdir()
    outcome = cli("data", "make", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["d.parquet"]
    assert list((tmp_path / "d.parquet").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="the extra `walker` is not installed")
    (tmp_path / "file").write_text("not a folder")
    out = tmp_path / "file" / "w.parquet"
    outcome = cli("data", "make", "walker-stand-in", "--rows", "9", "--out", out)
    assert outcome.code == 2
    assert "w.parquet cannot be written (" in outcome.err.splitlines()[-1]


def test_showing_the_absent_set_names_the_command(cli: Cli) -> None:
    outcome = cli("data", "show", "walker-stand-in:two-frames")
    assert outcome.code == 2
    assert "`svgpbench data make walker-stand-in`" in outcome.err
    assert "| `walker-stand-in` | 936353 | 23 | regression | made on your machine |" in (
        cli("data", "table", "walker-stand-in").out
    )
