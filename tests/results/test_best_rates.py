"""Of methods that differ in their rates, the cells at the rates with the best mean bound on each data set."""

from __future__ import annotations

import math

import pytest
from hand_records import cell, record

from svgpbench.config import TrainingConfig
from svgpbench.results.best_rates import at_best_rates
from svgpbench.results.frames import final_frame
from svgpbench.results.records import Record

Bounds = dict[str, list[float | None]]
"""By rate, a bound a fold; None where the cell failed."""


def rated(data: str, bounds: Bounds, method: str = "Adam") -> list[Record]:
    return [
        record(
            cell(
                data,
                f"{method} {rate}",
                fold=fold,
                training=TrainingConfig(e_rate=float(rate), m_rate=float(rate)),
            ),
            bound if bound is not None else 99.0,
            status="ok" if bound is not None else "diverged",
        )
        for rate, values in bounds.items()
        for fold, bound in enumerate(values)
    ]


def best(*records: Record) -> list[tuple[str, str, float]]:
    finals = final_frame(records)
    finals["elbo"] = finals["elbo"].where(finals["status"] == "ok", 99.0)  # before it failed
    frame = at_best_rates(finals, records)
    rows = frame[["data", "method", "elbo"]].itertuples(index=False)
    return [(data, method, elbo) for data, method, elbo in rows]


@pytest.mark.parametrize(
    ("bounds", "chosen"),
    [
        ({"0.1": [-3.9, -4.1], "0.3": [-4.5, -1.0], "1.0": [-0.5, -9.0]}, [-4.5, -1.0]),
        ({"0.1": [-3.0, -5.0], "0.3": [-1.0, None]}, [-3.0, -5.0]),  # whatever the others reach
        ({"0.1": [-3.0, -5.0], "0.3": [-1.0, math.nan]}, [-3.0, -5.0]),
    ],
)
def test_the_highest_mean_of_all_cells(bounds: Bounds, chosen: list[float]) -> None:
    assert best(*rated("airfoil", bounds)) == [("airfoil", "Adam", elbo) for elbo in chosen]


def test_each_data_set_and_method_has_a_rate_of_its_own() -> None:
    found = best(
        *rated("airfoil", {"0.1": [-1.0], "0.3": [-2.0]}),
        *rated("boston", {"0.1": [-4.0], "0.3": [-3.0]}),
        record(cell("airfoil", "exact 2", of="gpr"), -0.5),  # one label: no rate to leave out
    )
    assert found == [
        ("airfoil", "Adam", -1.0),
        ("boston", "Adam", -3.0),
        ("airfoil", "exact 2", -0.5),
    ]


def test_methods_that_differ_in_more_than_rates_are_not_merged() -> None:
    more = TrainingConfig(e_rate=0.3, m_rate=0.3, m_steps=9)
    found = best(
        *rated("airfoil", {"0.1": [-1.0]}),
        record(cell("airfoil", "Adam long 0.3", training=more), -2.0),
    )
    assert [method for _, method, _ in found] == ["Adam 0.1", "Adam long 0.3"]
