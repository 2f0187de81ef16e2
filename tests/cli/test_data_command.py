"""`svgpbench data`: what it shows, flags and splits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Cli

from svgpbench_datasets import REGISTRY, k_fold, random_split
from svgpbench_datasets.masks import read_masks

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


def test_folds_are_those_of_a_run_and_their_masks_partition_the_rows(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "folds.csv"
    printed = cli("data", "split", "boston", "--folds", "4", "--seed", "1", "--out", out, "--json")
    assert (printed.code, printed.err) == (0, "")
    told = json.loads(printed.out)
    masks = read_masks(out.read_bytes(), 506, 4, "folds.csv")
    assert (masks.sum(axis=1) == 1).all()
    for fold, facts in enumerate(told):
        split = k_fold(506, 4, fold, 1)
        assert facts["hash"] == split.hash
        assert (facts["n_train"], facts["n_test"]) == (len(split.train), len(split.test))
        assert np.array_equal(np.flatnonzero(masks[:, fold]), split.test)
    assert sorted(tmp_path.iterdir()) == [out]


def test_a_random_split_is_the_one_of_a_run(cli: Cli) -> None:
    random = cli("data", "split", "sonar", "--kind", "random", "--test-fraction", "0.25").out
    assert random.splitlines()[1].split() == ["0", "156", "52", random_split(208, 0.25, 0).hash]
