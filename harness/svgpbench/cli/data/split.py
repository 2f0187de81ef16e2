"""`svgpbench data split`: train and test rows of a data set, their hashes, and a file of masks."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import print_json, show
from svgpbench.config import DataConfig, SplitConfig
from svgpbench.experiments.cell import split_rows
from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench.output.table import Column, Table, number
from svgpbench.plugins import registry_of
from svgpbench_datasets import Split
from svgpbench_datasets.masks import write_masks


class SplitKind(StrEnum):
    """Kinds of splits."""

    k_fold = "k-fold"
    random = "random"
    fixed = "fixed"


DEFAULT = SplitConfig()


def split_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a data set or of a variant.")
    ],
    *,
    kind: Annotated[
        SplitKind,
        typer.Option("--kind", help="Kind of split; fixed ones are published with the data set."),
    ] = SplitKind.k_fold,
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="Number of folds of k-fold.")
    ] = DEFAULT.folds,
    test_fraction: Annotated[
        float,
        typer.Option(
            "--test-fraction", help="Share of test rows of a random split, between 0 and 1."
        ),
    ] = DEFAULT.test_fraction,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Random seed of k-fold and random splits.")
    ] = DEFAULT.seed,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.csv",
            help="File of masks: one column per split, 1 for a test row.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the splits of a data set, and write them to a file.

    Each has the hash of its row numbers, to compare with other software.
    """
    with data_errors_are_the_users():
        entry = registry_of(name).describe(name)
        counts = {SplitKind.k_fold: folds, SplitKind.random: 1, SplitKind.fixed: 1}
        if kind == SplitKind.fixed and entry.splits is not None:
            counts[SplitKind.fixed] = entry.splits.count
        # not validated here: `split_rows` reports invalid numbers
        config = SplitConfig.model_construct(
            kind=kind.value, folds=folds, test_fraction=test_fraction, seed=seed
        )
        splits = [
            split_rows(DataConfig(name=name), config.model_copy(update={"fold": fold}), entry.rows)
            for fold in range(counts[kind])
        ]
        if out is not None:
            write_masks(out, splits)
    if as_json:
        print_json([_as_json(split) for split in splits])
    else:
        columns = (
            *(number(name) for name in ("fold", "train", "test")),
            Column("hash of the row numbers", wrap=False),
        )
        rows = [[x.fold, len(x.train), len(x.test), x.hash] for x in splits]
        show(Table(columns, rows))


def _as_json(split: Split) -> dict[str, int | str]:
    return {
        "kind": split.kind,
        "fold": split.fold,
        "folds": split.folds,
        "seed": split.seed,
        "n_train": len(split.train),
        "n_test": len(split.test),
        "hash": split.hash,
    }
