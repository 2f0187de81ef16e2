"""The one data set that a command is about: its name, or a table file with its target and task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from svgpbench.cli.data.audit import TargetKind, split_names
from svgpbench.config import DataConfig
from svgpbench.errors import UserError
from svgpbench_datasets.user_table import is_table_file

USUAL_LIKELIHOODS = {
    TargetKind.regression: ("gaussian",),
    TargetKind.classification: ("bernoulli-probit", "bernoulli-logit"),
    TargetKind.multiclass: ("softmax", "robust-max"),
}
"""Usual likelihoods of each task; the first is the default."""


def one_data_set(
    name: str,
    targets: Sequence[str],
    task: TargetKind | None,
    *,
    no_header: bool = False,
    features: Sequence[str] | None = None,
    groups: str | None = None,
) -> DataConfig:
    """Return the configuration of a data set. Raises `UserError` for options that do not fit it."""
    if is_table_file(name):
        if len(targets) != 1:
            raise UserError(f"{name}: give one --target, the column to predict")
        kind = task or TargetKind.regression
        return DataConfig(
            name=Path(name).stem,
            path=name,
            target=targets[0],
            task=kind.value,
            header=False if no_header else None,
            features=split_names(features),
            groups=groups,
        )
    if targets or task or no_header or features or groups:
        raise UserError(f"{name} is a data set of a registry, which says its target and its task")
    return DataConfig(name=name)
