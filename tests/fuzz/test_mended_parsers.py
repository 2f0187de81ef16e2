"""Files that once ended a command with a traceback, each now refused, or passed over, in a line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_files import command, lines_of, read_speed, speed_record
from own_files import paper_files, some_records

from svgpbench.benchmarks.stability.records import read_stability
from svgpbench.benchmarks.time_to_target.plan import read_learning_plan
from svgpbench.benchmarks.time_to_target.records import read_training
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment
from svgpbench.papers.loading import read_paper
from svgpbench.results import parquet_file
from svgpbench.results.records import UnreadableFileError
from svgpbench.results.store import records_in

EXPERIMENT = 'name = "own"\nbackends = ["numpy"]\nmethods = [{ name = "t-svgp" }]\n'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"seeds = {'[' * 5000}", "nested too deeply"),
        (f"seeds = {'[' * 250}1{']' * 250}", "nested too deeply"),
        (f"seeds = [{'1' * 5000}]", "is not well-formed TOML"),
    ],
)
def test_toml_that_is_deep_or_has_long_numbers(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f"{EXPERIMENT}{line}\n")
    with pytest.raises(UserError, match=said) as refusal:
        load_experiment(str(path))
    assert str(path) in str(refusal.value)
    with pytest.raises(UserError, match=rf"^plan {path}"):
        read_learning_plan(path)


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(UserError, match="cannot be read: embedded null byte"):
        load_experiment("own\x00.toml")
    with pytest.raises(UserError, match=r"no file (can have a name so long: )?xxx"):
        command("data", "show", f"{'x' * 3000}.csv", "--target", "y")


@pytest.mark.parametrize("name", ["own\x85data", "a\u2028b", "a\x1b[31mb"])
def test_names_that_would_break_the_line_or_colour_the_terminal(tmp_path: Path, name: str) -> None:
    path = tmp_path / "own.toml"
    table = f'{{ name = {json.dumps(name)}, path = "own.csv", target = "y", task = "regression" }}'
    used = '[presets.quick]\ndata = ["nothing"]\n'
    path.write_text(
        f"{EXPERIMENT}[[problems]]\nlikelihood.name = 'gaussian'\ndata = [{table}]\n{used}"
    )
    with pytest.raises(UserError, match="unknown data set 'nothing'") as refusal:
        load_experiment(str(path))
    assert str(refusal.value).isprintable() and len(str(refusal.value).splitlines()) == 1


def few(folder: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The paper of the template with one of its files changed."""
    (folder / "few").mkdir()
    for file, raw in paper_files()["few"].items():
        (folder / "few" / file).write_bytes(change(raw) if file == name else raw)
    return folder / "few"


HEADER = b"artefact,setting,metric,value,spread\n"


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (b"", "its header is artefact,setting,metric,value,spread, not "),
        (HEADER + b'"' + b"x" * 200_000, "is not well-formed CSV"),
        (b"\xff", "is not UTF-8 text"),
    ],
)
def test_printed_figures_that_are_no_table(tmp_path: Path, printed: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_paper(few(tmp_path, "fig1.csv", lambda raw: printed))


def test_an_iteration_of_thousands_of_digits(tmp_path: Path) -> None:
    at = b"M = 20 @ " + b"1" * 5000
    folder = few(tmp_path, "claims.toml", lambda raw: raw.replace(b'["M = 20"', b'["' + at + b'"'))
    with pytest.raises(UserError, match="is not traced there"):
        read_paper(folder)


def set_to(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = value

    return change


SPEED = {
    "a time that is text": set_to("1", "cells", 0, "seconds", "median"),
    "a time of 0": set_to(0, "cells", 0, "seconds", "median"),
    "a round that took nothing": set_to(0.0, "cells", 0, "rounds", 0, "median_s"),
    "a name that is a list": set_to([], "cells", 0, "problem"),
    "no work in a step": set_to(
        dict.fromkeys(("products", "choleskys", "solves", "elementwise"), 0.0)
        | {"least_bytes": 1.0, "unfused_bytes": 1.0},
        *("cells", 0, "work"),
    ),
    "an environment that is nothing": set_to(None, "environment", "parent"),
    "rates of nobody": set_to({"tiny": {}}, "rates"),
    "a limit that is text": set_to("0.1", "settings", "max_other_cores"),
}


@pytest.mark.parametrize("what", SPEED)
def test_a_speed_record_of_another_form(tmp_path: Path, what: str) -> None:
    record = copy.deepcopy(speed_record("cpu-M500.json"))
    (tmp_path / "speed.json").write_text(json.dumps(record))
    read_speed(tmp_path)
    SPEED[what](record)
    (tmp_path / "speed.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="is no record of `svgpbench speed --out`"):
        read_speed(tmp_path)


def test_names_in_a_speed_record_are_no_markup(tmp_path: Path) -> None:
    record = copy.deepcopy(speed_record("cpu-M500.json"))
    record["cells"][0]["method"] = "[/b]"
    (tmp_path / "speed.json").write_text(json.dumps(record))
    assert "[/b]" in str(read_speed(tmp_path))


def test_a_record_of_json_that_is_deep(tmp_path: Path) -> None:
    (tmp_path / "speed.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match="is no record of `svgpbench speed --out`"):
        read_speed(tmp_path)


@pytest.mark.parametrize(
    ("part", "read", "changes"),
    [
        (
            "learning",
            read_training,
            ({"problem": []}, {"looks": [["1", 2, 3.0, None]]}, {"end": 7}, {"seed": "0"}),
        ),
        (
            "survival",
            read_stability,
            ({"problem": {}}, {"step": "7"}, {"bounds": ["x"]}, {"end": []}, {"steps": None}),
        ),
    ],
)
def test_lines_of_another_form_are_passed_over(
    tmp_path: Path,
    part: str,
    read: Callable[[Path], dict[Any, Any]],
    changes: tuple[dict[str, Any], ...],
) -> None:
    good = lines_of(part)[0]
    lines = [json.dumps(good | change) for change in changes]
    (tmp_path / "own.jsonl").write_text("\n".join([*lines, "[" * 100_000, json.dumps(good)]))
    assert len(read(tmp_path)) == 1


def test_lines_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").mkdir()
    with pytest.raises(UserError, match=r"cannot read .*own\.jsonl: Is a directory"):
        read_stability(tmp_path)


def signed(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Rewrite a table of records with the digest of what it has then."""
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[parquet_file.MARK])
    table = change(table)
    about["digest"] = parquet_file._digest(*parquet_file._columns(table))
    pq.write_table(table.replace_schema_metadata({parquet_file.MARK: json.dumps(about)}), path)


def refilled(name: str, value: str | None) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        column = pa.array([value] * len(table), pa.string())
        return table.set_column(table.column_names.index(name), name, column)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop_columns(["status"]), "its columns are not those of records"),
        (refilled("wall_s", "1.0"), "its columns are not those of records"),
        (refilled("cell_id", None), "its columns are not those of records"),
        (refilled("order", "[]"), "the record of"),
        (refilled("config", "{}"), "the record of"),
        (refilled("started", "today"), "the record of"),
    ],
)
def test_a_table_of_records_signed_again(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], said: str
) -> None:
    experiment = some_records()[0].config.experiment
    records = [record for record in some_records() if record.config.experiment == experiment]
    path = parquet_file.write_parquet_records(tmp_path, records)
    signed(path, change)
    with pytest.raises(UnreadableFileError, match=said) as refusal:
        records_in(tmp_path)
    assert len(str(refusal.value).splitlines()) == 1
