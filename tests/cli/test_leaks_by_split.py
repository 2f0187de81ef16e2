"""Repeated rows are a leak by the splits that an experiment has, and by no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Cli
from own_experiment import write_own

from svgpbench.config import DataConfig, SplitConfig
from svgpbench.experiments.leaks import audit_table

GROUPS = ('task = "regression" }', 'task = "regression", groups = "clinic" }')


def visits(folder: Path, across: int) -> None:
    """120 rows of 12 clinics, 30 repeated in their clinic and some in another."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.standard_normal((120, 3)).round(6), columns=["x", "z", "y"])
    rows["clinic"] = np.repeat([f"c{at:02}" for at in range(12)], 10)
    within = rows.sample(30, random_state=1)
    other = rows.iloc[:across].assign(clinic="c11")
    pd.concat([rows, within, other]).sample(frac=1, random_state=2).to_csv(
        folder / "rows.csv", index=False
    )


def told(folder: Path, split: str) -> tuple[int, int]:
    """Return repeated and all test rows of the fold that reveals most, counted from the file alone."""
    rows = pd.read_csv(folder / "rows.csv")
    if split == "blocks":
        folds = np.array_split(np.arange(len(rows)), 4)
        tests = [np.isin(rows.index, fold) for fold in folds]
    else:
        tests = [(rows["clinic"] == name).to_numpy() for name in sorted(rows["clinic"].unique())]
    counts = []
    for test in tests:
        seen = set(map(tuple, rows.loc[~test, ["x", "z", "y"]].to_numpy().tolist()))
        inside = rows.loc[test, ["x", "z", "y"]].to_numpy().tolist()
        counts.append((sum(tuple(row) in seen for row in inside), len(inside)))
    return max(counts, key=lambda count: count[0] / count[1])


def leaks(cli: Cli, *arguments: str) -> list[str]:
    outcome = cli(*arguments)
    assert outcome.code == 0, outcome.err
    return re.findall(r"^LEAK.*", outcome.out.replace("\n ", " "), re.MULTILINE)


def test_groups_that_keep_repeated_rows_together_have_no_leak(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path, GROUPS, ("folds = 4\n", 'kind = "groups"\nfolds = 4\n'))
    visits(tmp_path, across=0)
    assert json.loads(cli("run", "mine.toml", "--json").out)["leaks"] == []
    assert leaks(cli, "table", "mine.toml") == []


def test_a_k_fold_that_was_run_is_reported_with_its_folds_and_seed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    write_own(tmp_path, GROUPS, ("folds = 4\n", "folds = 4\nseed = 3\n"))
    visits(tmp_path, across=0)
    (line,) = leaks(cli, "run", "mine.toml")
    assert line.startswith("LEAK in rows: ")
    assert re.search(r"\(k-fold, fold [01] of 4, seed 3; 2 of 2 splits leak\)", line)
    assert leaks(cli, "table", "mine.toml") == [line]


@pytest.mark.parametrize("split", ["blocks", "column"])
def test_the_fold_that_reveals_most_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    more = {"blocks": "folds = 4\n", "column": "run_folds = [0, 1, 2, 3, 4]\n"}
    own = f'kind = "{split}"\n{more[split]}'
    write_own(tmp_path, GROUPS, ("folds = 4\nrun_folds = [0, 1]\n", own))
    visits(tmp_path, across=9)
    (line,) = leaks(cli, "run", "mine.toml")
    repeated, rows = told(tmp_path, split)
    assert f"{repeated} of {rows} test rows" in line
    assert f", {repeated} with its target ({split}, fold " in line
    assert "seed" not in line


def test_a_table_of_which_all_rows_train_has_no_such_leak(tmp_path: Path) -> None:
    visits(tmp_path, across=9)
    data = DataConfig(
        name="rows", path=str(tmp_path / "rows.csv"), target="y", task="regression", groups="clinic"
    )
    usual, none = audit_table(data), audit_table(data, [SplitConfig(kind="none")])
    assert usual.facts.split == "groups, fold 0 of 5, seed 0"
    assert usual.facts.test_rows >= 20
    assert (none.leaks, none.facts.test_rows, none.facts.split) == ((), 0, "no test rows")


def test_a_target_that_scores_hang_on_is_said_by_run_and_table(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    write_own(tmp_path)
    rows = pd.read_csv(tmp_path / "rows.csv")
    rows["y"] = np.exp(9.0 * np.random.default_rng(0).standard_normal(40))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    ratio = rows["y"].max() / rows["y"].median()
    assert ratio > 100
    words = f"is {ratio:.0f} times the median: predict its logarithm, unless these are counts"
    run = cli("run", "mine.toml")
    assert (run.code, run.out.count(words)) == (0, 1)
    assert f"note on rows: the greatest target {rows['y'].max():g} {words}" in run.out
    assert words in cli("table", "mine.toml").out
