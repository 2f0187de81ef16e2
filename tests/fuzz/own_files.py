"""Broken experiments, records and papers, and how each is read."""

from __future__ import annotations

import contextlib
import json
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from broken_files import AS_BYTES, broken_toml, changed, damaged, seldom
from hypothesis import strategies as st
from watched_parsers import Files

from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.papers import loading as papers
from svgpbench.results import parquet_file, records, store

ROOT = Path(__file__).parents[2]
RESULTS, TEMPLATES = ROOT / "results", ROOT / "harness" / "svgpbench" / "templates"

# --- experiments

SHIPPED = ("adam2021-fig3", "kobe2021-fig4.1", "cheng2017-table2", "titsias2025-minibatch")
OF_EVERY_KEY = """
name = "own"
backends = ["numpy", "torch:compile"]
kernel = { name = "se", ard = false, lengthscale = [1.0, 2.0] }
inducing = { count = 5, init = "greedy-variance" }
training = { em_iterations = 2, e_rate = { start = 0.1, end = 1.0, steps = 2 } }
perturbation_replicas = [{ backend = "numpy", perturbation = 1e-15, seeds = [0] }]
methods = [
  { label = "a", name = "q-svgp", options = { whiten = true }, row = "A" },
  { label = "b", name = "t-svgp", training = { e_rate = { start = 0.1, decay = 0.2 } } },
]
figures = [{ name = "f", kind = "against", x = "inducing.count", curves = { A = ["a"] } }]
tables = [{ name = "t", metrics = ["nlpd"] }]

[[problems]]
data = [
  { name = "arm", path = "arm.csv", target = ["y1", "y2"], task = "regression" },
  { name = "grid", path = "g.csv", target = "y", task = "regression", factors = { N = 5 } },
]
likelihood = { name = "student-t", df = 4.0 }
kernel = { variance = 2.0 }

[presets]
quick = { data = ["arm"], methods = ["a"], run_folds = [0], seeds = [1] }
paper = { where = { N = [5.0] }, spot_check_backends = ["jax"], chosen_from = "quick" }
"""


@cache
def experiments() -> list[dict[str, Any]]:
    shipped = [tomllib.loads(shipped_experiments()[name].read_text("utf-8")) for name in SHIPPED]
    return [*shipped, *[tomllib.loads(OF_EVERY_KEY)] * 4]


@st.composite
def experiment_files(draw: st.DrawFn) -> Files:
    return {"own.toml": draw(broken_toml(draw(st.sampled_from(experiments()))))}


def read_experiment(folder: Path) -> object:
    return load_experiment(str(folder / "own.toml"))


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


@st.composite
def record_files(draw: st.DrawFn) -> Files:
    """Draw a record with a new checksum, as nothing is parsed behind a wrong one."""
    whole = draw(st.sampled_from(some_records())).model_dump(mode="json")
    name = f"own/numpy/{whole['cell_id']}.json"
    if draw(seldom(AS_BYTES)):
        whole["checksum"] = records.checksum(whole)
        return {name: draw(damaged(json.dumps(whole).encode()))}
    content = json.loads(json.dumps(draw(changed(whole)), default=str))
    with contextlib.suppress(ValueError):  # NaN, which no record has
        content["checksum"] = records.checksum(content)
    return {name: json.dumps(content).encode()}


def read_record(folder: Path) -> object:
    (path,) = folder.glob("*/*/*.json")
    return records.read_record(path)


@cache
def table_of_records() -> bytes:
    few = [x for x in some_records() if x.config.experiment == "kobe2021-fig4.1"]
    with tempfile.TemporaryDirectory() as place:
        return parquet_file.write_parquet_records(Path(place), few).read_bytes()


@st.composite
def parquet_files(draw: st.DrawFn) -> Files:
    """Draw a table of records: columns changed and the digest that they have then, or bytes."""
    name, whole = "kobe2021-fig4.1.parquet", table_of_records()
    if draw(seldom(30)):
        return {name: draw(damaged(whole))}
    table = pq.read_table(pa.BufferReader(whole))
    about = json.loads(table.schema.metadata[parquet_file.MARK])
    if draw(seldom(40)):
        about = draw(changed({"about": about})).get("about", {})
    else:
        columns = {column: table[column].to_pylist() for column in table.column_names}
        try:
            table = pa.table(draw(changed(columns)))
            about["digest"] = digest(table)
        except (
            pa.ArrowException,
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ):
            table = table.drop_columns([draw(st.sampled_from(table.column_names))])
            about["digest"] = digest(table)
    file = pa.BufferOutputStream()
    text = json.dumps(about, default=str)
    pq.write_table(table.replace_schema_metadata({parquet_file.MARK: text}), file)
    return {name: file.getvalue().to_pybytes()}


def digest(table: pa.Table) -> str:
    return parquet_file._digest(*parquet_file._columns(table))


def read_parquet_records(folder: Path) -> object:
    return store.records_in(folder).records


# --- papers


@cache
def paper_files() -> dict[str, Files]:
    """A paper of the template, and shipped ones with their claims of every predicate."""
    template = (TEMPLATES / "paper" / "src" / "MODULE_papers" / "NAME").iterdir()
    few = {x.name.removesuffix(".template"): x.read_bytes() for x in template}
    found = {"few": {name: raw.replace(b"${name}", b"few") for name, raw in few.items()}}
    for folder in sorted(
        x.parent for x in (ROOT / "harness/svgpbench_papers").glob("*/paper.toml")
    ):
        files = [path for path in folder.rglob("*") if path.suffix in (".toml", ".csv")]
        found[folder.name] = {str(x.relative_to(folder)): x.read_bytes() for x in files}
    return found


@st.composite
def broken_paper_files(draw: st.DrawFn) -> Files:
    papers = paper_files()
    name = draw(st.sampled_from(("few", "few", "few", *papers)))
    files = papers[name]
    chosen = draw(st.sampled_from(("paper.toml", "claims.toml", *files)))
    text = chosen.endswith(".toml")
    broken = broken_toml(tomllib.loads(files[chosen].decode())) if text else damaged(files[chosen])
    return {f"{name}/{x}": raw for x, raw in (files | {chosen: draw(broken)}).items()}


def read_paper(folder: Path) -> object:
    (inside,) = folder.iterdir()
    return papers.read_paper(inside)
