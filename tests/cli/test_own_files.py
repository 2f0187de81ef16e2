"""A user's table of each format is run, audited and shown; a bad cell in it is named by its place."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
import scipy.io
from command_line import Cli
from own_experiment import write_own

from svgpbench_datasets import load_user_table

ROWS = 40
NUMBERS = np.round(np.random.default_rng(0).uniform(-1.0, 1.0, (ROWS, 3)), 6)
FRAME = pd.DataFrame(NUMBERS, columns=["x", "z", "y"])
BAD = FRAME.astype(object)
BAD.loc[4, "z"] = "oops"  # line 6 below a header, row 5 without
LACKING = FRAME.copy()
LACKING.loc[4, "z"] = np.nan

Writes = Callable[[Path, Any], object]


def text(path: Path, table: pd.DataFrame, **how: Any) -> None:
    table.to_csv(path, index=False, **how)


def zipped(path: Path, table: pd.DataFrame) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside.csv", table.to_csv(index=False))


def arff(path: Path, table: pd.DataFrame) -> None:
    names = "".join(f"@attribute '{name}' real\n" for name in table)
    path.write_text(f"@relation r\n{names}@data\n{table.to_csv(index=False, header=False)}")


def workbook(path: Path, table: pd.DataFrame) -> None:
    book = openpyxl.Workbook()
    for row in [list(table), *table.to_numpy().tolist()]:
        book.active.append(row)
    book.save(path)


def parts(table: pd.DataFrame) -> dict[str, Any]:
    return {"X": table[["x", "z"]].to_numpy(), "y": table["y"].to_numpy()}


OOPS = "line 6, column 2 ('z') holds 'oops'"
EMPTY = "row 5, column 2 ('z') is empty"

# ending: how it is written, target, where the bad cell stands
TEXTS: dict[str, tuple[Writes, str, str]] = {
    "csv": (lambda p, t: text(p, t, sep=";"), "y", OOPS),
    "dat": (lambda p, t: text(p, t, sep=" ", header=False), "x3", "line 5, column 2 ('x2') holds 'oops'"),
    "tsv": (lambda p, t: text(p, t, sep="\t"), "y", OOPS),
    "csv.gz": (text, "y", OOPS),
    "txt.xz": (text, "y", OOPS),
    "data.bz2": (text, "y", OOPS),
    "zip": (zipped, "y", OOPS),
    "xlsx": (workbook, "y", "row 6, column 2 ('z') holds 'oops'"),
    "arff": (arff, "y", "line 10, column 2 ('z') holds 'oops'"),
}  # fmt: skip
BINARY: dict[str, tuple[Writes, str, str]] = {
    "mat": (lambda p, t: scipy.io.savemat(p, parts(t)), "y", "row 5, column 2 ('X2') holds 'nan'"),
    "npz": (lambda p, t: np.savez(p, **parts(t)), "y", "row 5, column 2 ('X2') holds 'nan'"),
    "npy": (lambda p, t: np.save(p, t.to_numpy()), "x3", "row 5, column 2 ('x2') holds 'nan'"),
    "feather": (lambda p, t: t.to_feather(p), "y", EMPTY),
    "parquet": (lambda p, t: t.to_parquet(p), "y", EMPTY),
    "parquet.gz": (lambda p, t: p.write_bytes(gzip.compress(t.to_parquet())), "y", EMPTY),
}
FORMATS = TEXTS | BINARY


def test_a_table_of_each_format_runs(cli: Cli, tmp_path: Path) -> None:
    entries = []
    for ending, (write, target, _) in FORMATS.items():
        write(tmp_path / f"rows.{ending}", FRAME)
        entry = f'{{ name = "{ending}", path = "rows.{ending}", target = "{target}"'
        entries.append(f'{entry}, task = "regression" }}')
    one = '{ name = "rows", path = "rows.csv", target = "y", task = "regression" }'
    file = write_own(tmp_path, (one, ", ".join(entries)), ("[0, 1]", "[0]"))
    FORMATS["csv"][0](tmp_path / "rows.csv", FRAME)  # write_own leaves one of its own
    ran = cli("run", file, "--jobs", "1", "--json")
    assert (ran.code, json.loads(ran.out)["counts"]) == (0, {"ok": len(FORMATS)}), ran.err
    rows = json.loads(cli("table", file, "--json").out)["rows"]
    assert len({row["nlpd_original_mean"] for row in rows}) == 1


@pytest.mark.parametrize("ending", FORMATS)
def test_a_table_of_each_format_is_audited(cli: Cli, tmp_path: Path, ending: str) -> None:
    write, target, _ = FORMATS[ending]
    write(tmp_path / f"rows.{ending}", FRAME)
    (found,) = json.loads(cli("data", "audit", f"rows.{ending}", "--target", target, "--json").out)
    assert (found["name"], found["rows"], found["features"]) == (f"rows.{ending}", ROWS, 2)
    dataset = load_user_table(tmp_path / f"rows.{ending}", target=target, task="regression")
    assert np.array_equal(np.column_stack([dataset.X, dataset.y]), NUMBERS)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_bad_cell_in_each_format_is_named_by_its_place(
    cli: Cli, tmp_path: Path, ending: str
) -> None:
    write, target, place = FORMATS[ending]
    write(tmp_path / f"rows.{ending}", BAD if ending in TEXTS else LACKING)
    outcome = cli("data", "audit", f"rows.{ending}", "--target", target)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"rows.{ending}: {place}" in outcome.err


@pytest.mark.parametrize(
    ("ending", "read_as"),
    [
        ("csv", "text separated by semicolons, names in line 1"),
        ("dat", "text separated by blanks, no names: x1, x2, ..."),
        ("csv.gz", "text separated by commas, names in line 1"),
        ("npz", "numpy"),
    ],
)
def test_show_says_how_a_file_was_read(cli: Cli, tmp_path: Path, ending: str, read_as: str) -> None:
    write, target, _ = FORMATS[ending]
    write(tmp_path / f"rows.{ending}", FRAME)
    asked = ("data", "show", f"rows.{ending}", "--target", target)
    assert f"read as                  {read_as}" in " ".join(cli(*asked).out.split("\n"))
    assert json.loads(cli(*asked, "--json").out)["read_as"] == read_as


def test_several_targets_are_outputs_of_which_none_is_an_input(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path, ('target = "y"', 'target = ["y", "z"]'), ("[0, 1]", "[0]"))
    ran = cli("run", "mine.toml", "--jobs", "1", "--json")
    assert (ran.code, json.loads(ran.out)["counts"]) == (0, {"ok": 2}), ran.err
    rows = json.loads(cli("table", "mine.toml", "--json").out)["rows"]
    assert [row["data"] for row in rows] == ["rows@y", "rows@z"]
    again = cli("run", "mine.toml", "--dataset", "rows", "--force", "--jobs", "1", "--json")
    assert (again.code, json.loads(again.out)["counts"]) == (0, {"ok": 2}), again.err
    audited = cli("data", "audit", "rows.csv", "--target", "y", "--target", "z", "--json")
    found = [(one["name"], one["target"], one["feature_names"]) for one in json.loads(audited.out)]
    assert found == [("rows.csv@y", "y", ["x"]), ("rows.csv@z", "z", ["x"])]
    both = cli("data", "show", "rows.csv", "--target", "y", "--target", "z")
    assert "target y" in both.out
    assert "target z" in both.out


def test_arrays_are_chosen_by_name(cli: Cli, tmp_path: Path) -> None:
    whole = NUMBERS[:, :2], NUMBERS[:, 2]
    np.savez(tmp_path / "rows.npz", X=whole[0], y=whole[1], Xtest=whole[0][:9], ytest=whole[1][:9])
    refused = cli("data", "show", "rows.npz", "--target", "y")
    assert (
        "do not stand side by side: 'X': [40, 2] float64, 'y': [40] float64, 'Xtest'" in refused.err
    )
    chosen = cli(
        "data", "show", "rows.npz", "--target", "y", "--array", "X", "--array", "y", "--json"
    )
    assert json.loads(chosen.out)["feature_names"] == ["X1", "X2"]
    write_own(tmp_path, ('path = "rows.csv"', 'path = "rows.npz", arrays = ["X", "y"]'))
    ran = cli("run", "mine.toml", "--jobs", "1", "--json")
    assert (ran.code, json.loads(ran.out)["counts"]) == (0, {"ok": 2}), ran.err


def test_a_bomb_is_no_table(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench_datasets.user_table._AT_LEAST", 1 << 16)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 400_000))
    refused = cli("data", "show", "bomb.csv.gz", "--target", "y")
    assert "bomb.csv.gz cannot be read: it is more than" in refused.err


def test_a_file_without_a_header_is_said_to_have_none(cli: Cli, tmp_path: Path) -> None:
    rows = [f"{i}.5,{i % 3},{'first' if i == 0 else 'later'}" for i in range(12)]
    (tmp_path / "rows.data").write_text("\n".join(rows))
    asked = ("rows.data", "--task", "classification", "--json")
    seen = cli("data", "show", *asked, "--target", "x3")
    assert (seen.code, "say `header = false` (--no-header)" in seen.err) == (2, True)
    shown = json.loads(cli("data", "show", *asked, "--target", "x3", "--no-header").out)
    assert (shown["rows"], shown["classes"]) == (12, {"first": 1, "later": 11})
    assert shown["read_as"] == "text separated by commas, no names: x1, x2, ..."


def test_what_a_reader_decided_is_shown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "Unnamed: 0,x,y\n" + "".join(f"{i},{i % 5},{i % 3}\n" for i in range(30))
    )
    shown = cli("data", "show", "t.csv", "--target", "y")
    assert "'Unnamed: 0' left out" in " ".join(shown.out.split())
    (tmp_path / "u.txt").write_text("# x y\n" + "".join(f"{i % 7} {i % 3}\n" for i in range(30)))
    assert "names in a comment above the rows" in cli("data", "show", "u.txt", "--target", "y").out
