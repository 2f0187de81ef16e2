"""`svgpbench data split`: train and test rows of a data set, their hashes, and a file of masks."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.data.audit import Features, Groups, NoHeader, TableTask, Targets
from svgpbench.cli.one_data_set import one_data_set
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import print_json, show
from svgpbench.config import DataConfig, SplitConfig
from svgpbench.experiments.cell import load_data, split_rows
from svgpbench.experiments.error_messages import as_user_errors
from svgpbench.output.table import Column, Table, number
from svgpbench.plugins import registry_of
from svgpbench_datasets import Split
from svgpbench_datasets.masks import write_masks
from svgpbench_datasets.splits import Indices


class SplitKind(StrEnum):
    """Kinds of splits."""

    k_fold = "k-fold"
    random = "random"
    fixed = "fixed"
    groups = "groups"
    blocks = "blocks"
    column = "column"


DEFAULT = SplitConfig()


def split_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="Name of a data set, or a table file of your own."
        ),
    ],
    *,
    target: Targets = None,
    task: TableTask = None,
    no_header: NoHeader = False,
    features: Features = None,
    groups: Groups = None,
    kind: Annotated[
        SplitKind,
        typer.Option(
            "--kind",
            help="Kind of split; fixed ones are published with the data set, groups and column "
            "need --groups.",
        ),
    ] = SplitKind.k_fold,
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="Number of folds of k-fold, groups and blocks.")
    ] = DEFAULT.folds,
    test_fraction: Annotated[
        float,
        typer.Option(
            "--test-fraction", help="Share of test rows of a random split, between 0 and 1."
        ),
    ] = DEFAULT.test_fraction,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Random seed of k-fold, random and groups.")
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
    with as_user_errors():
        data = one_data_set(
            name, target or (), task, no_header=no_header, features=features, groups=groups
        )
        n, numbers, published = _rows(data)
        counts = {SplitKind.random: 1, SplitKind.fixed: published}
        if kind == SplitKind.column and numbers is not None:
            # every group is a fold, whatever --folds says
            counts[kind] = int(numbers.max()) + 1
        # not validated here: `split_rows` reports invalid numbers
        config = SplitConfig.model_construct(
            kind=kind.value, folds=folds, test_fraction=test_fraction, seed=seed
        )
        splits = [
            split_rows(data, config.model_copy(update={"fold": fold}), n, numbers)
            for fold in range(counts.get(kind, folds))
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


def _rows(data: DataConfig) -> tuple[int, Indices | None, int]:
    """Return the rows of a data set, the group of each, and the number of published splits, at least 1.

    A registered data set need not be downloaded.
    """
    if data.path is not None:
        dataset = load_data(data)
        return len(dataset.y), dataset.groups, 1
    entry = registry_of(data.name).describe(data.name)
    return entry.rows, None, entry.splits.count if entry.splits else 1


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
