"""Every parser of files from outside: how one is made wrong, how it is read, and what is validation.

A file gets as far as validation where it is well-formed: its parser passes `door`, which looks into it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from argument_lists import ARGUMENTS
from command_files import (
    LEARNING,
    SURVIVAL,
    lines_reader,
    lines_writer,
    read_speed,
    write_speed,
)
from own_files import (
    read_experiment,
    read_paper,
    read_parquet_records,
    read_record,
    write_experiment,
    write_paper,
    write_parquet_records,
    write_record,
)
from table_files import TABLES

from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.benchmarks.time_to_target.records import TrainingRecord
from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.experiments import loading
from svgpbench.papers import loading as papers
from svgpbench.results import parquet_file, records


class Parser(NamedTuple):
    """One kind of file."""

    write: Callable[[Path, random.Random], None]  # a valid file made wrong, into a folder
    read: Callable[[Path], object]  # what is under test
    door: tuple[Any, str]  # what a well-formed file passes
    modules: tuple[str, ...]  # whose lines it is to reach
    share: float  # of the mutations
    beside: tuple[str, ...] = ()  # functions of these modules that read no file
    writes: Callable[[Path], bool] = lambda folder: False  # into the folder, when it is told to


BESIDE: dict[str, tuple[str, ...]] = {
    "experiments": ("data_errors_are_the_users",),
    "records (JSON)": (
        *("Record.trace_without_times", "record_path", "parquet_path", "checkpoint_path"),
        *("write_record", "_layout", "set_aside", "is_record_name", "record_files", "is_final"),
    ),
    "tables": ("idx_table", "write_numbers", "read_numbers", "is_table_file"),
    "papers": ("Paper.artefact", "load_paper"),
    "speed records": (
        *("TimedCell.group", "TimedCell.comparable", "check_agreement", "_mark"),
        *("SpeedReport.ok", "SpeedReport.to_json", "SpeedReport._cell_json", "_finite"),
    ),
    "learning records": (
        "LearningPlan.limited_to",
        "LearningPlan.evaluation_times",
        "Run.title",
        "Run.key",
    ),
    "survival records": (
        *(
            "StabilityPlan.most_inducing",
            "StabilityCell.title",
            "StabilityCell.key",
            "towards_the_largest_rate",
        ),
        *(
            "StabilityRecord.bound_a_datum",
            "StabilityRecord.stopped_short",
        ),
    ),
}
"""Functions of these modules that parse nothing: they write, measure, or know a shipped file by name."""


def parsers() -> Iterator[tuple[str, Parser]]:
    """Each parser under its name."""
    for name, parser in _parsers():
        yield name, parser._replace(beside=BESIDE.get(name, ()))


def _parsers() -> Iterator[tuple[str, Parser]]:
    of_experiments = ("loading", "error_messages", "plugin_options", "schema")
    yield (
        "experiments",
        Parser(
            write_experiment,
            read_experiment,
            (loading.Experiment, "model_validate_json"),
            tuple(f"svgpbench.experiments.{name}" for name in of_experiments),
            0.25,
        ),
    )
    yield (
        "records (JSON)",
        Parser(
            write_record,
            read_record,
            (records.Record, "model_validate"),
            ("svgpbench.results.records",),
            0.2,
        ),
    )
    yield (
        "records (Parquet)",
        Parser(
            write_parquet_records,
            read_parquet_records,
            (parquet_file, "_digest"),
            ("svgpbench.results.parquet_file",),
            0.1,
        ),
    )
    yield (
        "tables",
        Parser(
            TABLES.write,
            TABLES.read,
            TABLES.door,
            TABLES.modules,
            0.2,
        ),
    )
    yield (
        "papers",
        Parser(
            write_paper,
            read_paper,
            (papers.PaperFile, "model_validate_json"),
            ("svgpbench.papers.loading", "svgpbench.papers.schema"),
            0.1,
        ),
    )
    yield (
        "speed records",
        Parser(
            write_speed,
            read_speed,
            (SpeedReport, "from_json"),
            ("svgpbench.benchmarks.timing.report",),
            0.03,
        ),
    )
    yield (
        "learning records",
        Parser(
            lines_writer("learning", LEARNING),
            lines_reader("learn"),
            (TrainingRecord, "from_line"),
            (
                "svgpbench.benchmarks.time_to_target.records",
                "svgpbench.benchmarks.time_to_target.plan",
            ),
            0.02,
        ),
    )
    yield (
        "survival records",
        Parser(
            lines_writer("survival", SURVIVAL),
            lines_reader("survive"),
            (StabilityRecord, "from_line"),
            ("svgpbench.benchmarks.stability.records", "svgpbench.benchmarks.stability.plan"),
            0.02,
        ),
    )
    yield (
        "arguments",
        Parser(
            ARGUMENTS.write,
            ARGUMENTS.read,
            ARGUMENTS.door,
            ARGUMENTS.modules,
            0.06,
            writes=ARGUMENTS.writes,
        ),
    )
