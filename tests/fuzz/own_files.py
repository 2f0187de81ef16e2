"""Experiments, records and papers made wrong, and how each is read."""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from mutated_text import WHOLE_FILES, toml_mutated
from mutations import bytes_mutated, mutated

from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.papers import loading as papers
from svgpbench.results import parquet_file, records, store

ROOT = Path(__file__).parents[2]
RESULTS, TEMPLATES = ROOT / "results", ROOT / "harness" / "svgpbench" / "templates"


@cache
def experiments() -> list[dict[str, Any]]:
    names = (
        "adam2021-fig3",
        "kobe2021-fig4.1",
        "cheng2017-table2",
        "titsias2025-minibatch",
    )
    shipped = [tomllib.loads(shipped_experiments()[name].read_text("utf-8")) for name in names]
    own = {
        "name": "own",
        "backends": ["numpy", "torch:compile"],
        "kernel": {"name": "se", "ard": False, "lengthscale": [1.0, 2.0]},
        "inducing": {"count": 5, "init": "greedy-variance"},
        "training": {"em_iterations": 2, "e_rate": {"start": 0.1, "end": 1.0, "steps": 2}},
        "perturbation_replicas": [{"backend": "numpy", "perturbation": 1e-15, "seeds": [0]}],
        "problems": [
            {
                "data": [
                    {
                        "name": "arm",
                        "path": "arm.csv",
                        "target": ["y1", "y2"],
                        "task": "regression",
                    },
                    {
                        "name": "grid",
                        "path": "g.csv",
                        "target": "y",
                        "task": "regression",
                        "factors": {"N": 5},
                    },
                ],
                "likelihood": {"name": "student-t", "df": 4.0},
                "kernel": {"variance": 2.0},
            }
        ],
        "methods": [
            {"label": "a", "name": "q-svgp", "options": {"whiten": True}, "row": "A"},
            {"label": "b", "name": "t-svgp", "training": {"e_rate": {"start": 0.1, "decay": 0.2}}},
        ],
        "presets": {
            "quick": {"data": ["arm"], "methods": ["a"], "run_folds": [0], "seeds": [1]},
            "paper": {"where": {"N": [5.0]}, "sampled_on": ["jax"], "chosen_from": "quick"},
        },
        "figures": [
            {"name": "f", "kind": "against", "x": "inducing.count", "curves": {"A": ["a"]}}
        ],
        "tables": [{"name": "t", "metrics": ["nlpd"]}],
    }
    return [*shipped, own, own, own, own]


def write_experiment(folder: Path, rng: random.Random) -> None:
    (folder / "own.toml").write_bytes(toml_mutated(rng.choice(experiments()), rng))


# --- records


@cache
def some_records() -> list[records.Record]:
    tables = [
        parquet_file.read_parquet_records(RESULTS / f"{name}.parquet")
        for name in ("kobe2021-fig4.1", "adam2021-rates")
    ]
    found = [one.record(cell_id) for one in tables for cell_id in list(one.rows)[:3]]
    return [
        x.model_copy(update={"trace": {name: column[:4] for name, column in x.trace.items()}})
        for x in found
    ]


def write_record(folder: Path, rng: random.Random) -> None:
    """Signed again, and called as its cell: what a checksum keeps out is seen at once."""
    whole = rng.choice(some_records()).model_dump(mode="json")
    path = folder / "own" / "numpy" / f"{whole['cell_id']}.json"
    path.parent.mkdir(parents=True)
    if rng.random() < WHOLE_FILES:
        whole["checksum"] = records.checksum(whole)
        path.write_bytes(bytes_mutated(json.dumps(whole).encode(), rng))
        return
    content = json.loads(json.dumps(mutated(whole, rng), default=str))
    with contextlib.suppress(ValueError):  # NaN, which no record has
        content["checksum"] = records.checksum(content)
    path.write_text(json.dumps(content))


def read_experiment(folder: Path) -> object:
    return load_experiment(str(folder / "own.toml"))


def read_record(folder: Path) -> object:
    (path,) = folder.glob("*/*/*.json")
    return records.read_record(path)


@cache
def kept_file() -> bytes:
    """A table of records."""
    few = [x for x in some_records() if x.config.experiment == "kobe2021-fig4.1"]
    with tempfile.TemporaryDirectory() as place:
        return parquet_file.write_parquet_records(Path(place), few).read_bytes()


def write_parquet_records(folder: Path, rng: random.Random) -> None:
    """Columns changed and signed again, or bytes."""
    path = folder / "kobe2021-fig4.1.parquet"
    path.write_bytes(kept_file())
    if rng.random() < 0.3:
        path.write_bytes(bytes_mutated(path.read_bytes(), rng))
        return
    table = pq.read_table(path)
    columns = mutated({name: table[name].to_pylist() for name in table.column_names}, rng)
    about = json.loads(table.schema.metadata[parquet_file.MARK])
    try:
        changed = pa.table(columns) if isinstance(columns, dict) else table
        about["digest"] = parquet_file._digest(*parquet_file._columns(changed))
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ):
        changed = table.drop_columns([rng.choice(table.column_names)])  # no table can say that
        about["digest"] = parquet_file._digest(*parquet_file._columns(changed))
    if rng.random() < 0.2:
        about = mutated({"about": about}, rng).get("about", {})
    text = json.dumps(about, default=str)
    pq.write_table(changed.replace_schema_metadata({parquet_file.MARK: text}), path)


def read_parquet_records(folder: Path) -> object:
    return store.records_in(folder).records


@cache
def paper_files() -> dict[str, dict[str, Any]]:
    """A paper of the template, and shipped ones with their claims of every predicate."""
    of_template = TEMPLATES / "paper" / "MODULE_papers" / "NAME"
    found = {
        "few": {p.name.removesuffix(".template"): p.read_bytes() for p in of_template.iterdir()}
    }
    found["few"] = {name: raw.replace(b"${name}", b"few") for name, raw in found["few"].items()}
    for folder in sorted((ROOT / "harness/svgpbench_papers").glob("*/paper.toml")):
        files = [path for path in folder.parent.rglob("*") if path.suffix in (".toml", ".csv")]
        found[folder.parent.name] = {
            str(path.relative_to(folder.parent)): path.read_bytes() for path in files
        }
    return found


def write_paper(folder: Path, rng: random.Random) -> None:
    files = paper_files()
    name = rng.choice(("few", "few", "few", *files))
    chosen = rng.choice(("paper.toml", "claims.toml", rng.choice(list(files[name]))))
    for file, raw in files[name].items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_mutated(file, raw, rng) if file == chosen else raw)


def _mutated(file: str, raw: bytes, rng: random.Random) -> bytes:
    if file.endswith(".toml"):
        return toml_mutated(tomllib.loads(raw.decode()), rng)
    return bytes_mutated(raw, rng)


def read_paper(folder: Path) -> object:
    (inside,) = folder.iterdir()
    return papers.read_paper(inside)
