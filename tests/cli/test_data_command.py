"""`svgpbench data`: what it shows, and what it flags."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Cli

from svgpbench_datasets import REGISTRY

PRINTED = Path(__file__).parents[2] / "docs" / "data-sets.md"


@pytest.fixture(autouse=True)
def nothing_but_what_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)


def test_show_prints_what_is_known_and_what_is_counted(cli: Cli) -> None:
    out = cli("data", "show", "boston").out
    assert "506, 506 with distinct inputs" in out
    assert "5 to 50, 229 different values" in out
    assert "the greatest target 50 stands in 16 rows: capped?" in out
    assert "Harrison and Rubinfeld (1978)" in out
    assert REGISTRY.describe("boston").fingerprint in out.replace("\n", "").replace(" ", "")


def test_show_as_json_holds_the_same_facts(cli: Cli) -> None:
    shown = json.loads(cli("data", "show", "pima", "--json").out)
    assert shown["classes"] == {"0": 500, "1": 268}
    assert (shown["rows"], shown["features"], shown["fixed_splits"]) == (768, 8, 0)
    assert [flag["kind"] for flag in shown["flags"]] == ["lowest-apart"]
    assert shown["licence"]
    assert shown["verified"]
    asked = {
        "rows", "distinct_inputs", "repeated_rows", "constant_columns", "missing_cells",
        "missing_rows", "missing_treatment", "target_range", "target_values", "row_correlation",
        "row_correlation_ratio", "test_seen", "test_rows", "test_told", "split", "citation",
    }  # fmt: skip
    assert asked <= shown.keys()


def test_show_names_each_fact(cli: Cli) -> None:
    lines = cli("data", "show", "ionosphere").out.splitlines()
    card = {line[:25].strip(): line[25:].strip() for line in lines[1:] if not line.startswith(" ")}
    assert card["rows"] == "351, 350 with distinct inputs"
    assert card["repeated rows"] == "1 (inputs and target of an earlier row)"
    assert card["constant columns"] == "pulse_01_im"
    assert card["missing values"] == "none"
    assert card["classes"] == "b: 126, g: 225"
    assert card["row number and target"] == "|correlation| 0.36, over classes 0.36"
    assert card["linear fit"] == "R² 0.62 over all rows"
    assert card["test inputs in training"].startswith(
        "1 of 71, 1 with their target (k-fold, fold 0"
    )
    assert {"licence", "citation", "upstream", "fingerprint"} <= card.keys()


def test_what_is_declared_is_shown_of_a_set_that_cannot_be_had(cli: Cli, tmp_path: Path) -> None:
    out = cli("data", "show", "3droad", "--declared").out
    for words in ("434874", "told by its form", "3D_spatial_network.txt", "OSM_ID", "CC BY 4.0"):
        assert words in out
    assert "sha256 baadf729" in " ".join(cli("data", "show", "boston", "--declared").out.split())
    torque = cli("data", "show", "kuka@torque3", "--declared").out
    assert "target torque3" in torque
    assert "torque1, torque2, torque4, torque5, torque6, torque7: kuka@torque1, ..." in torque
    declared = json.loads(cli("data", "show", "naval", "--declared", "--json").out)
    assert declared["fingerprint"] == REGISTRY.describe("naval").fingerprint
    assert declared["files"][0]["addresses"][0]["url"].startswith("https://")
    assert not (tmp_path / "cache").exists()


def test_audit_is_a_table_of_what_is_at_hand(cli: Cli) -> None:
    outcome = cli("data", "audit", "sonar", "banana:full")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["name", "rows", "D", "distinct", "row~target", "seen", "flags"]
    assert lines[1].split()[:6] == ["sonar", "208", "60", "208", "0.86", "0.0%"]
    assert "row number and target go together" in lines[1]
    listed = json.loads(cli("data", "audit", "--json").out)
    shipped = [name for name in REGISTRY.names() if REGISTRY.describe(name).shipped]
    assert [one["name"] for one in listed if one["name"] in REGISTRY.names()] == shipped


def test_table_is_markdown_with_a_line_for_every_data_set(cli: Cli) -> None:
    printed = cli("data", "table").out.splitlines()
    ours = {f"| `{name}` " for name in REGISTRY.names()}
    lines = printed[:2] + [x for x in printed[2:] if x[: x.index("|", 1)] in ours]
    assert lines[:2] == [
        "| name | rows | features | task | fingerprint |",
        "|---|---:|---:|---|---|",
    ]
    assert len(lines) == 2 + len(REGISTRY.names())
    assert "| `mnist` | 70000 | 784 | multiclass |" in "\n".join(lines)
    assert "| `3droad` | 434874 | 2 | regression | no copy seen |" in lines
    assert PRINTED.read_text().split("\n\n")[-1].splitlines() == lines  # the documented table


def test_a_table_that_names_a_wrong_output_is_not_begun(cli: Cli) -> None:
    outcome = cli("data", "table", "boston", "boston@RAD")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: data set 'boston' has no output 'RAD' (it has one)\n"


def test_a_wrong_name_or_a_set_that_is_not_there_is_one_line(cli: Cli) -> None:
    for name, message in (
        ("bostn", "did you mean 'boston'?"),
        ("kuka", "kuka/kuka1.csv could not be had (no place is known that serves it)"),
        ("walker-stand-in", "once: `python datasets/scripts/make_walker.py` in a clone"),
    ):
        outcome = cli("data", "show", name)
        assert (outcome.code, outcome.out) == (2, "")
        assert message in outcome.err
        assert len(outcome.err.splitlines()) == 1


def own_table(folder: Path) -> None:
    """500 rows in which the id is in the order of the target, and a price after tax is an input."""
    rng = np.random.default_rng(0)
    price = np.sort(rng.gamma(2.0, 50.0, 500))
    rows = [
        f"{at},{rng.normal():.6f},{1.19 * y:.6f},{y:.6f}" for at, y in enumerate(price, start=1)
    ]
    text = "\n".join(["id,size,with_tax,price", *rows]) + "\n"
    (folder / "mine.csv").write_text(text, encoding="utf-8")


def test_a_table_of_the_users_own_is_audited(cli: Cli, tmp_path: Path) -> None:
    own_table(tmp_path)
    (found,) = json.loads(cli("data", "audit", "mine.csv", "--target", "price", "--json").out)
    leaks = {flag["text"].partition(" (")[0] for flag in found["flags"] if flag["leak"]}
    assert {"id counts the rows", "id alone determines the target"} <= leaks
    assert "with_tax alone determines the target" in leaks
    assert (found["name"], found["rows"], found["feature_names"][0]) == ("mine.csv", 500, "id")
    shown = cli("data", "show", "mine.csv", "--target", "price").out
    assert "regression, target price" in shown
    assert "LEAK" in shown
    both = cli("data", "audit", "sonar", "mine.csv")
    assert both.code == 2
    assert "which column of mine.csv is to be predicted? name it with --target" in both.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("boston", "--target", "RAD"),
            "--target goes with numbers of a file (.csv, .parquet, ...), not with 'bo",
        ),
        (("mine.csv", "--target", "prise"), "no column 'prise' for the target; did you mean 'pri"),
        (("mine.csv", "--target", "price", "--task", "classification"), "500 distinct"),
        (("no.csv", "--target", "price"), "no.csv"),
        ((".", "--target", "price"), ". is a folder; name a file in it"),
        (("mine.csv", "--target", "price", "--target", "price"), "--target price is given twice"),
        (("huge.csv", "--target", "y"), "column 'y' is too large to standardise"),
    ],
)
def test_an_audit_of_what_is_no_table_is_one_line(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    own_table(tmp_path)
    (tmp_path / "huge.csv").write_text("x,y\n" + "".join(f"{at},{at}e200\n" for at in range(9)))
    outcome = cli("data", "show", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("option", [("--target", "RAD"), ("--task", "classification")])
def test_what_a_registry_says_is_not_said_again(cli: Cli, option: tuple[str, str]) -> None:
    for command in (("show",), ("show", "--declared"), ("audit",)):
        outcome = cli("data", *command, "boston", *option)
        assert outcome.code == 2
        assert f"{option[0]} goes with numbers of a file" in outcome.err
