"""Selection of the rates with the best bound among methods that differ in their rates alone."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import pandas as pd

from svgpbench.results.records import Record

RATE: Final = re.compile(r"[ .\d]+$")
"""Pattern of the rate at the end of a label."""


def at_best_rates(frame: pd.DataFrame, records: Sequence[Record]) -> pd.DataFrame:
    """Return the cells of each method and data set at the rates with the highest mean bound.

    Rates with a failed cell are ranked last. A method that has several rates is named by its first label
    without the rate.

    Args:
        frame: one row per cell.
        records: the records of the cells.
    """
    labels: dict[str, list[str]] = {}
    for record in records:
        several = labels.setdefault(_but_rates(record), [])
        if record.config.method.title not in several:
            several.append(record.config.method.title)
    names = {label: _name(several) for several in labels.values() for label in several}
    bound = frame["elbo"].where(frame["status"] == "ok", -math.inf).fillna(-math.inf)
    means = bound.groupby([frame["data"], frame["method"].map(names), frame["method"]]).mean()
    best = means.groupby(level=[0, 1]).idxmax()
    kept = {(data, label) for data, _, label in best}
    chosen = [pair in kept for pair in zip(frame["data"], frame["method"], strict=True)]
    return frame[chosen].assign(method=lambda rows: rows["method"].map(names))


def _but_rates(record: Record) -> str:
    config = record.config
    parts = [config.method.model_dump_json(exclude={"label"}), config.inducing.model_dump_json()]
    return " ".join(
        [
            *parts,
            config.training.model_dump_json(
                exclude={"e_rate": True, "m_rate": True, "online": {"rates"}}
            ),
        ]
    )


def _name(labels: Sequence[str]) -> str:
    """Return one name for several labels: `t-SVGP` for `t-SVGP 0.1` and `t-SVGP 0.01`."""
    if len(labels) == 1:
        return labels[0]
    return RATE.sub("", labels[0]) or labels[0]
