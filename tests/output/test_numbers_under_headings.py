"""In every format each number stands under its own heading: all of them differ."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hand_records import cell, collected, record
from rich.console import Console

from svgpbench.config import DataConfig
from svgpbench.output.built_table import BuiltTable
from svgpbench.output.number_formats import difference, plus_minus
from svgpbench.output.result_table import Finals
from svgpbench.results.records import Record

REGRESSION = {"elbo": -210.0, "nlpd": 1.5, "nlpd_original": 3.5, "rmse": 0.25, "rmse_original": 8.0}
CLASSES = {"elbo": -65.0, "nlpd": 0.75, "error_rate": 0.125}
APART = 0.02 / math.sqrt(2)  # two values so far to either side of 1 deviate by 2 %
CELL = {"data set": "airfoil", "method": "A"}
SHOWN = {  # of two folds with half as many test rows: the error is the deviation, 2 % of each score
    "n": "2",
    "ELBO": "-210.0",
    "NLPD": "1.500±0.030",
    "NLPD [y]": "3.500±0.070",
    "RMSE": "0.250±0.005",
    "Δ backends": "2e-01",
    "Δ rounding": "5e-02",
    "failed": "1 oom, 1 not_pd",
}
SHOWN_OF_CLASSES = {
    "n": "2",
    "ELBO": "-65.00",
    "NLPD": "0.750±0.015",
    "error rate": "0.125±0.003",
}


def table() -> BuiltTable:
    """A regression with all columns, a classification without differences and failures."""
    records = []
    for fold, factor in ((0, 1 - APART), (1, 1 + APART)):
        records += [
            record(cell(fold=fold), **{k: factor * x for k, x in REGRESSION.items()}),
            record(
                cell("sonar", fold=fold, likelihood="bernoulli-logit"),
                **{k: factor * x for k, x in CLASSES.items()},
            ),
        ]
    of_first = (1 - APART) * REGRESSION["elbo"]
    records += [
        record(cell(fold=2), status="oom"),
        record(cell(fold=3), status="not_pd"),
        record(cell(perturbation=1e-15), 0.95 * of_first),
        record(cell(backend="torch"), 0.8 * of_first),
    ]
    return Finals().build(collected(*records))


def markdown_tables(text: str) -> list[list[dict[str, str]]]:
    """The rows of each pipe table by heading."""
    tables = []
    for block in text.split("\n\n"):
        lines = [[x.strip() for x in line.split("|")[1:-1]] for line in block.splitlines()]
        if block.startswith("|"):
            header, rule, *rows = lines
            assert rule[: header.index("n")] == ["---"] * header.index("n")
            assert set(rule[header.index("n") :]) == {"---:"}
            tables.append([dict(zip(header, row, strict=True)) for row in rows])
    return tables


def test_markdown() -> None:
    regression, classification = markdown_tables(table().to_markdown())
    assert regression == [CELL | SHOWN]
    empty = {"Δ backends": "", "Δ rounding": "", "failed": ""}
    assert classification == [
        {"data set": "sonar", "method": "A"} | SHOWN_OF_CLASSES | empty,
    ]


def test_terminal() -> None:
    console = Console(width=140, file=io.StringIO(), color_system=None)
    with console.capture() as printed:
        console.print(table())
    lines = [line.rstrip() for line in printed.get().splitlines()]
    header = next(line for line in lines if line.startswith("data set"))
    row = next(line for line in lines if line.startswith("airfoil"))
    for heading, text in SHOWN.items():
        end = header.index(f" {heading}", len("data set  method")) + 1 + len(heading)
        # a number ends where its heading does
        assert (row[:end].rpartition("  ")[2], row[end:][:2].strip()) == (text, ""), heading
    assert lines[0] == "by-hand, regression"
    assert "by-hand, classification" in lines


def test_csv_and_json_hold_every_digit_under_the_same_names() -> None:
    (listed, *_), (plain, *_) = (
        csv.DictReader(io.StringIO(table().to_csv())),
        table().to_json()["rows"],
    )
    assert "" not in listed  # no column of row numbers
    for name, value in REGRESSION.items():
        assert float(listed[f"{name}_mean"]) == plain[f"{name}_mean"]
        assert plain[f"{name}_mean"] == pytest.approx(value, rel=1e-15), name
        if name == "elbo":
            assert (listed["elbo_se"], plain["elbo_se"]) == ("", None)
            continue
        assert float(listed[f"{name}_se"]) == plain[f"{name}_se"]
        assert plain[f"{name}_se"] == pytest.approx(0.02 * abs(value), rel=1e-12), name
    assert (listed["error_rate_mean"], plain["error_rate_mean"]) == ("", None)
    assert float(listed["backends_differ"]) == plain["backends_differ"] == pytest.approx(0.2)
    assert float(listed["rounding_differs"]) == plain["rounding_differs"] == pytest.approx(0.05)
    assert (listed["cells"], listed["ok"]) == ("4", "2")
    assert (plain["splits"], plain["seeds"]) == (2, 1)
    assert (listed["failed"], plain["failed"]) == (
        '{"oom": 1, "not_pd": 1}',
        {"oom": 1, "not_pd": 1},
    )
    assert [listed[key] for key in ("data", "task", "method", "backend")] == [
        "airfoil", "regression", "A", "jax",
    ]  # fmt: skip


def test_two_backends_are_shown_with_their_names_before_the_numbers() -> None:
    records = [record(cell(backend=b), -x, rmse=x) for b, x in (("jax", 1.0), ("torch", 2.0))]
    (rows,) = markdown_tables(Finals().build(collected(*records), ("jax", "torch")).to_markdown())
    assert [(row["backend"], row["ELBO"], row["RMSE"]) for row in rows] == [
        ("jax", "-1.000", "1.000"),
        ("torch", "-2.000", "2.000"),
    ]
    (alone,) = markdown_tables(Finals().build(collected(*records), ("torch",)).to_markdown())
    assert [(row["ELBO"], "backend" in row) for row in alone] == [("-2.000", False)]


def test_footnotes_say_which_scores_are_of_standardised_targets() -> None:
    raw = DataConfig(name="airfoil", standardise_y=False)
    of_raw = record(cell().model_copy(update={"data": raw}), nlpd=1.0, rmse=2.0, nlpd_original=1.0)
    of_others = record(cell("naval"), nlpd=1.0, rmse=2.0, nlpd_original=3.0)
    columns = ("nlpd", "rmse", "nlpd_original")

    def units(*records: Record) -> str:
        return Finals(metrics=columns).build(collected(*records)).footnotes[2]

    assert units(of_raw) == "NLPD, RMSE and NLPD [y] in the units of y"
    assert units(of_raw, of_others) == (
        "NLPD and RMSE of y standardised by the training part, on data whose y is standardised; "
        "NLPD [y] in the units of y"
    )


def test_footnotes_say_where_and_in_which_units() -> None:
    notes = table().footnotes
    assert notes[0].endswith("that ended well, on jax")
    assert notes[1].startswith("±: standard error, of a test score over splits, corrected for")
    assert notes[2] == (
        "NLPD and RMSE of y standardised by the training part; NLPD [y] in the units of y"
    )
    assert notes[3].endswith("one cell's final ELBO between jax, torch")
    assert notes[4].startswith("Δ rounding: ")
    only_classes = Finals().build(
        collected(record(cell("sonar", likelihood="bernoulli-logit"), **CLASSES), notes=["mind"])
    )
    assert [note.split()[0] for note in only_classes.footnotes] == ["mean", "±:", "mind"]
    both = Finals().build(
        collected(record(cell(), -1.0), record(cell(backend="torch"), -1.0)), ("jax", "torch")
    )
    assert both.footnotes[0].endswith("that ended well")


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (-412.3142, 5.17, "-412.3±5.2"),
        (1234.567, 12.34, "1235±12"),
        (1234.567, 123.4, "1235±123"),
        (-0.5, 0.0951, "-0.500±0.095"),
        (0.123456, 0.0010001, "0.123±0.001"),
        (0.123456, 0.00099, "0.1235±0.0010"),  # four places from here on
        (2.0, 9e-7, "2.000±0"),
        (2.0, 1.1e-6, "2.0000±0.0000"),
        (999_999.0, 1.5, "999999.0±1.5"),
        (5.0, 2e6, "5.00e+00±2e+06"),
        (-5.1e8, 2.2e7, "-5.10e+08±2e+07"),
        (math.nan, math.nan, "–"),
        (-192.63, math.nan, "-192.6"),
        (0.05, math.nan, "0.0500"),
        (0.0, math.nan, "0.000"),
        (4.9e-5, math.nan, "4.90e-05"),
        (3.21e-14, 1.6e-15, "3.21e-14±2e-15"),
        (-3.21e-14, 0.0, "-3.21e-14±0"),
        (1e-5, 6e-5, "0.0000±0.0001"),
        (0.0, 0.0, "0.000±0"),
    ],
)  # fmt: skip
def test_numbers_are_rounded_to_what_their_error_supports(
    mean: float, error: float, text: str
) -> None:
    assert plus_minus((mean, error)) == text


def test_a_difference_has_one_digit() -> None:
    assert [difference(x) for x in (3.46e-12, 0.0)] == ["3e-12", "0"]
