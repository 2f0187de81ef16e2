"""Selection of the rates with the best bound among methods that differ in their rates alone."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

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
    labels: dict[tuple[str, ...], list[str]] = {}  # by all settings but the rates
    rates: Any = {"e_rate": True, "m_rate": True, "online": {"rates"}}
    for config in (record.config for record in records):
        settings = (
            config.method.model_dump_json(exclude={"label"}),
            config.inducing.model_dump_json(),
            config.training.model_dump_json(exclude=rates),
        )
        titles = labels.setdefault(settings, [])
        if config.method.title not in titles:
            titles.append(config.method.title)
    names = {
        title: title if len(titles) == 1 else RATE.sub("", titles[0]) or titles[0]
        for titles in labels.values()
        for title in titles
    }
    bound = frame["elbo"].where(frame["status"] == "ok", -math.inf).fillna(-math.inf)
    means = bound.groupby([frame["data"], frame["method"].map(names), frame["method"]]).mean()
    best = means.groupby(level=[0, 1]).idxmax()
    best_pairs = {(data, label) for data, _, label in best}
    is_best = [pair in best_pairs for pair in zip(frame["data"], frame["method"], strict=True)]
    return frame[is_best].assign(method=lambda rows: rows["method"].map(names))
