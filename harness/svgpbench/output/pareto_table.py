"""Table of accuracy against compute: the score, costs and place on the front of each method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, get_args

import pandas as pd
from pydantic import field_validator

from svgpbench.errors import UserError
from svgpbench.metrics import METRICS
from svgpbench.output.built_table import BuiltTable
from svgpbench.output.figure_and_table_types import MetricName, TableKind
from svgpbench.output.number_formats import plus_minus, scaled
from svgpbench.output.plot_data import PlotData
from svgpbench.output.table import Column, Table, number
from svgpbench.results.collect import Collected
from svgpbench.results.frames import count_by
from svgpbench.results.pareto import RULE, Cost, Point, costs_of, known_score, points
from svgpbench.stats.means import WHICH_ERROR

Points: TypeAlias = tuple[list[Point], list[Point]]
"""Points by FLOPs, and by seconds, in the same order."""

MEANINGS = (
    f"mean over the cells of n splits that ended well; ±: standard error, {WHICH_ERROR}",
    "FLOPs: of all training steps, counted on shapes with nothing fused; evaluation left out",
    f"seconds: {METRICS['seconds'].formula}; as the FLOPs, the median over cells",
    f"place: {RULE}",
)


class ParetoTable(TableKind):
    """Score, FLOPs and seconds of each method, and whether it is on the front of either.

    `metrics`: scores with a region of practical equivalence; NLPD by default.
    """

    metrics: tuple[MetricName, ...] = ("nlpd",)

    @field_validator("metrics")
    @classmethod
    def _are_judged(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(known_score, names))

    def build(self, collected: Collected, backends: tuple[str, ...] = ()) -> BuiltTable:
        """Return the table on the reference backend.

        Raises `UserError` if no record has one of the scores, or if several backends are given.
        """
        if len(backends) > 1:
            raise UserError("costs are compared on one backend: give one --backend")
        plot_data = PlotData.from_records(collected.experiment, self.records_of(collected))
        plot_data.check_recorded([METRICS[name] for name in self.metrics], plot_data.finals)
        costs, cost_notes = costs_of(plot_data.records)
        frame = plot_data.with_replicas
        scores = {
            name: (points(frame, costs, name, "flops"), points(frame, costs, name, "seconds"))
            for name in self.metrics
        }
        ended = plot_data.finals[plot_data.finals["status"] == "ok"]
        unique = ended.drop_duplicates(["data", "method", "split_seed", "fold"])
        splits = count_by(unique, "data", "method")
        notes = (
            *collected.notes,
            f"on {plot_data.backend}",
            *cost_notes,
            *plot_data.warning_of_times,
        )
        rows = [
            {
                "data": point.data, "method": point.method, "metric": score, "mean": point.mean,
                "se": point.error, "cost": cost, "value": point.cost, "place": point.place,
                "by": [effect.of for effect in point.rivals],
            }
            for score, by_cost in scores.items()
            for cost, cost_points in zip(get_args(Cost), by_cost, strict=True)
            for point in cost_points
        ]  # fmt: skip
        return BuiltTable(
            collected.experiment,
            tuple(_tables(collected.experiment, scores, splits)),
            pd.DataFrame(rows),
            MEANINGS,
            notes,
            {"rule": RULE},
        )


def _tables(
    experiment: str, scores: Mapping[str, Points], splits: Mapping[tuple[str, ...], int]
) -> Iterator[Table]:
    """Yield a table for each score."""
    for score, (by_flops, by_seconds) in scores.items():
        title = METRICS[score].label
        rows = [
            [
                a.data, a.method, splits[a.data, a.method], (a.mean, a.error),
                a.cost, b.cost, a.text, b.text,
            ]
            for a, b in zip(by_flops, by_seconds, strict=True)
        ]  # fmt: skip
        columns = (
            *(Column("data set", wrap=False), Column("method"), number("n")),
            number(title, plus_minus),
            *(number(name, scaled) for name in ("FLOPs", "seconds")),
            *(Column(f"at its {name}", numeric=True, wrap=True) for name in ("FLOPs", "seconds")),
        )
        yield Table(columns, rows, f"{experiment}: {title} against compute", grouped=True)
