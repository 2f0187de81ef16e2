"""What the explorer shows of planted records: counts, costs, means, looks and who is better."""

from __future__ import annotations

from typing import Any

import pytest
from hand_records import cell, collected, record

from svgpbench.results.pareto import COSTS
from svgpbench.results.records import Record
from svgpbench.site.explorer import OUTCOMES, explorer_data
from svgpbench.site.fields import Field

SECONDS = (1.0, 2.0, 9.0, 30.0, 40.0)
LOOKS = {"iteration": [1, 2, 3], "elbo": [-9.0, -5.0, -1.0], "nlpd": [0.9, 0.7, 0.5]}


def folds(method: str, nlpd: float, data: str = "airfoil", **more: Any) -> list[Record]:
    """Five folds, of which the last took longest; a replica of one, and a start that failed."""
    made = [
        record(
            cell(data, method, fold=fold, **more),
            -1.0 - fold,
            nlpd=nlpd + 1e-3 * fold,
            trace=LOOKS | {"seconds": [s / 4, s / 2, s]},
        ).model_copy(update={"timing": {"train_s": s}})
        for fold, s in enumerate(SECONDS)
    ]
    failed = record(cell(data, method, fold=4, seed=1, **more), -99.0, status="not_pd", nlpd=9.0)
    return [
        *made,
        failed,
        record(cell(data, method, perturbation=1e-15, **more), -7.0, nlpd=nlpd + 6.0),
    ]


def records() -> list[Record]:
    return [
        *folds("B", 0.9), *folds("A", 0.5), *folds("C", 0.5),
        *folds("A", 0.9, "boston"), *folds("B", 0.5, "boston"),
        *folds("A", 0.5, backend="torch"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    return explorer_data(Field(collected(*records())))


def group(shown: dict[str, Any], data: str, method: str, backend: str = "jax") -> dict[str, Any]:
    place = [
        shown[k].index(x) for k, x in (("data", data), ("methods", method), ("backends", backend))
    ]
    (found,) = [one for one in shown["groups"] if [one["d"], one["m"], one["b"]] == place]
    return found


def test_cells_splits_and_failures_are_counted_without_replicas(shown: dict[str, Any]) -> None:
    one = group(shown, "airfoil", "A")
    assert (one["n"], one["splits"], one["failed"]) == (6, 5, 1)
    assert len(shown["groups"]) == 6


def test_a_cost_is_the_median_over_good_cells_of_the_reference(shown: dict[str, Any]) -> None:
    costs = dict(zip(COSTS, group(shown, "airfoil", "A")["cost"], strict=True))
    assert costs["seconds"] == 9.0
    assert group(shown, "airfoil", "A", "torch")["cost"] == [None, None]


def test_means_are_of_good_cells_and_each_number_stands_under_its_metric(
    shown: dict[str, Any],
) -> None:
    names = [one["name"] for one in shown["metrics"]]
    one = group(shown, "airfoil", "A")
    end = dict(zip(names, one["end"], strict=True))
    assert end["elbo"][0] == pytest.approx(-3.0)
    assert end["nlpd"][0] == pytest.approx(0.502)
    assert shown["iterations"] == [1, 2, 3]
    steps = one["steps"][names.index("nlpd")]
    assert [mean for mean, _ in steps] == [0.9, 0.7, 0.5]


def test_a_look_counts_from_its_own_second_on(shown: dict[str, Any]) -> None:
    """The slowest fold looks at 10, 20 and 40 s: before that there is no mean of all."""
    names = [one["name"] for one in shown["metrics"]]
    curve = group(shown, "airfoil", "A")["time"][names.index("elbo")]
    last = {
        s: [[-9.0, -5.0, -1.0][k] for k, share in enumerate((4, 2, 1)) if s >= total / share]
        for s in shown["times"]
        for total in [SECONDS[-1]]
    }
    for (mean, _), looks in zip(curve, last.values(), strict=True):
        assert (mean is None) == (not looks)
    assert shown["times"][-1] == 40.0 and curve[-1][0] == -1.0


def test_an_outcome_is_that_of_the_first_of_a_pair_on_its_data_set() -> None:
    shown = explorer_data(Field(collected(*(one for one in records() if one.status == "ok"))))
    found = {
        (shown["data"][d], shown["methods"][a], shown["methods"][b]): OUTCOMES[outcome]
        for d, a, b, outcome in shown["effects"]["nlpd"]
    }
    # one method of a pair stands for both: the other side is the other way round
    turned = {"better": "worse", "worse": "better"}
    both = found | {(d, b, a): turned.get(o, o) for (d, a, b), o in found.items()}
    assert both["airfoil", "A", "B"] == "better"
    assert both["airfoil", "B", "A"] == "worse"
    assert both["boston", "A", "B"] == "worse"
    assert both["airfoil", "A", "C"] == "equal"
    assert ("boston", "A", "C") not in both
