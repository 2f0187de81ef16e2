"""A table with a text id is audited, split and asked about by naming its inputs or its groups."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Cli

from svgpbench_datasets import group_fold

ROWS = 90
TABLE = ("visits.csv", "--target", "y")


@pytest.fixture(autouse=True)
def visits(tmp_path: Path) -> pd.DataFrame:
    """90 rows of 9 clinics; each row of the first 20 is repeated in its clinic."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.standard_normal((ROWS - 20, 3)).round(6), columns=["a", "b", "y"])
    rows["clinic"] = [f"c{at % 9}" for at in range(len(rows))]
    rows = pd.concat([rows, rows.iloc[:20]])
    rows.to_csv(tmp_path / "visits.csv", index=False)
    return rows


def facts(cli: Cli, *options: str) -> dict[str, object]:
    done = cli("data", "audit", *TABLE, *options, "--json")
    assert done.code == 0, done.err
    (audited,) = json.loads(done.out)
    return dict(audited)


def test_an_audit_takes_the_inputs_or_the_groups(cli: Cli) -> None:
    for options in (("--features", "a,b"), ("--features", "a", "--features", "b")):
        by_rows = facts(cli, *options)
        assert by_rows["feature_names"] == ["a", "b"]
        assert (by_rows["split"], by_rows["test_told"] > 0) == ("k-fold, fold 0 of 5, seed 0", True)  # type: ignore[operator]
    assert facts(cli, "--features", "b")["feature_names"] == ["b"]
    by_groups = facts(cli, "--groups", "clinic")
    assert by_groups["feature_names"] == ["a", "b"]
    assert (by_groups["split"], by_groups["test_told"]) == ("groups, fold 0 of 5, seed 0", 0)
    shown = cli("data", "show", *TABLE, "--groups", "clinic")
    assert (shown.code, "(groups, fold 0 of 5, seed 0)" in shown.out) == (0, True)


def test_an_id_as_groups_is_noted(cli: Cli, visits: pd.DataFrame) -> None:
    visits.assign(clinic=[f"p{at}" for at in range(ROWS)]).to_csv("visits.csv", index=False)
    flags = facts(cli, "--groups", "clinic")["flags"]
    assert "groups-of-one" in [flag["kind"] for flag in flags]  # type: ignore[attr-defined]


def test_a_table_is_split_as_an_experiment_splits_it(cli: Cli, visits: pd.DataFrame) -> None:
    def split(kind: str, *options: str) -> list[dict[str, object]]:
        done = cli(
            "data", "split", *TABLE, "--groups", "clinic", "--kind", kind, *options, "--json"
        )
        assert done.code == 0, done.err
        return list(json.loads(done.out))

    numbers = visits["clinic"].str.removeprefix("c").to_numpy(np.int64)
    expected = [group_fold(numbers, 3, fold, 4).hash for fold in range(3)]
    found = split("groups", "--folds", "3", "--seed", "4")
    assert [one["hash"] for one in found] == expected
    assert [one["n_test"] for one in split("column")] == np.bincount(numbers).tolist()
    blocks = split("blocks", "--folds", "4", "--out", "masks.csv")
    assert [one["n_test"] for one in blocks] == [23, 23, 22, 22]
    masks = np.loadtxt("masks.csv", delimiter=",")
    assert masks.shape == (ROWS, 4)
    assert np.array_equal(np.flatnonzero(masks[:, 0]), np.arange(23))
    assert len(split("k-fold")) == 5
    assert len(split("random")) == 1


def test_inducing_and_advise_take_them_too(cli: Cli) -> None:
    done = cli("inducing", *TABLE, "--groups", "clinic", "--count", "3", "--count", "5")
    assert done.code == 0, done.err
    assert "M = " in done.out
    assert done.err == ""  # progress goes to a terminal alone
    advice = cli("advise", *TABLE, "--features", "a,b")
    assert advice.code == 0, advice.err
    assert "2 inputs" in advice.out
