"""The front of accuracy against compute, on records whose scores and costs the tests state."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from committed_records import RESULTS
from hand_records import cell, collected, record
from matplotlib.figure import Figure

from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError
from svgpbench.experiments import FigureEntry, TableEntry, load_experiment
from svgpbench.output.built_table import BuiltTable
from svgpbench.output.figure_and_table_types import kind_of
from svgpbench.output.figures.pareto import Pareto
from svgpbench.output.pareto_table import ParetoTable
from svgpbench.plugins import FIGURES, TABLES
from svgpbench.results import pareto
from svgpbench.results.records import Record

Scores = tuple[float, float]
"""Mean NLPD, and seconds."""


def made(*methods: tuple[str, Scores], spread: float = 0.0, data: str = "airfoil") -> list[Record]:
    """Five folds of each method; with a spread, the folds of a method differ from those of the others."""
    return [
        timed(
            record(cell(data, name, fold=fold), -1.0, nlpd=nlpd + spread * wave(at, fold)), seconds
        )
        for at, (name, (nlpd, seconds)) in enumerate(methods)
        for fold in range(5)
    ]


def wave(at: int, fold: int) -> float:
    return math.cos(2.1 * at + 1.3 * fold)


def timed(one: Record, seconds: float) -> Record:
    return one.model_copy(update={"timing": {"train_s": seconds}})


def table(*records: Record, **keys: Any) -> BuiltTable:
    return ParetoTable(**keys).build(collected(*records))


def places(built: BuiltTable, cost: str = "seconds") -> dict[str, str]:
    (shown,) = built.tables
    at = shown.header.index(f"at its {cost}")
    return {row[1]: row[at] for row in shown.texts}


def of_cost(built: BuiltTable, cost: str) -> pd.DataFrame:
    return built.frame[built.frame["cost"] == cost]


def test_a_method_is_dominated_by_a_cheaper_better_one_and_by_a_cheaper_equal_one() -> None:
    records = made(
        ("cheap", (0.50, 1.0)),
        ("good", (0.30, 2.0)),
        ("worse", (0.40, 3.0)),  # than `good`, which costs less
        ("as good", (0.302, 4.0)),  # within the region of 0.01
        ("better", (0.20, 5.0)),
    )
    assert places(table(*records)) == {
        "cheap": "front",
        "good": "front",
        "worse": "dominated: good",
        "as good": "dominated: good",
        "better": "front",
    }


def test_costs_within_a_tenth_are_alike() -> None:
    """A better one may cost a tenth more, an equal one must cost a tenth less to dominate."""
    records = made(("a", (0.50, 10.0)), ("b", (0.30, 10.9)), ("c", (0.305, 10.0)))
    assert places(table(*records)) == {"a": "dominated: b, c", "b": "front", "c": "front"}
    dearer = made(("a", (0.50, 10.0)), ("b", (0.30, 11.1)))
    assert places(table(*dearer)) == {"a": "front", "b": "front"}


def test_a_cost_is_the_median_over_good_cells() -> None:
    """Neither the mean nor the least or most decides who is cheaper, nor a cell that failed."""
    uneven = {"a": (1.0, 1.0, 10.0, 90.0, 95.0), "b": (8.0, 9.0, 12.0, 13.0, 14.0)}
    records = [
        timed(record(cell(method=name, fold=fold), -1.0, nlpd=nlpd), seconds)
        for (name, costs), nlpd in zip(uneven.items(), (0.4, 0.3), strict=True)
        for fold, seconds in enumerate(costs)
    ]
    assert places(table(*records)) == {"a": "front", "b": "front"}
    failed = timed(record(cell(method="b", fold=5), status="not_pd"), 1e6)
    for built in (table(*records), table(*records, failed)):
        assert list(of_cost(built, "seconds")["value"]) == [10.0, 12.0]


def test_what_the_interval_does_not_tell_is_open() -> None:
    records = made(("cheap", (0.30, 1.0)), ("dear", (0.28, 2.0)), spread=0.05)
    assert places(table(*records)) == {"cheap": "front", "dear": "open: cheap"}


def test_a_replica_that_rounding_moves_leaves_the_difference_open() -> None:
    records = made(("cheap", (0.30, 1.0)), ("dear", (0.40, 2.0)))
    assert places(table(*records))["dear"] == "dominated: cheap"
    chaos = [
        record(cell(method=name, fold=fold, perturbation=1e-15), -1.0, nlpd=nlpd)
        for name, nlpd in (("cheap", 0.9), ("dear", 0.1))
        for fold in range(5)
    ]
    built = table(*records, *chaos)
    assert places(built)["dear"] == "open: cheap"
    assert list(of_cost(built, "seconds")["mean"]) == [pytest.approx(0.3), pytest.approx(0.4)]


def test_failed_cells_dominate_nobody_and_a_method_without_a_good_one_has_no_place() -> None:
    records = made(("cheap", (0.1, 1.0)), ("sound", (0.5, 2.0)))
    records[0] = records[0].model_copy(update={"status": "not_pd"})
    assert places(table(*records)) == {"cheap": "front", "sound": "front"}
    records[:5] = [one.model_copy(update={"status": "not_pd"}) for one in records[:5]]
    assert places(table(*records)) == {"cheap": "failed", "sound": "front"}


def test_flops_are_counted_from_the_configuration_and_differ_where_the_method_does() -> None:
    """An untied M-step rebuilds its sums from all rows; both methods take the same seconds."""
    options = {"tied": {"tying": "tied-projected"}, "untied": {"tying": "untied"}}
    records = [
        timed(record(with_options(name, of, fold), -1.0, nlpd=0.4), 1.0)
        for name, of in options.items()
        for fold in range(5)
    ]
    built = table(*records)
    tied, untied = of_cost(built, "flops")["value"]
    assert 1.2 < untied / tied < 3.0
    assert places(built, "FLOPs") == {"tied": "front", "untied": "dominated: tied"}
    assert list(of_cost(built, "seconds")["value"]) == [1.0, 1.0]
    assert places(built) == {"tied": "front", "untied": "front"}


def with_options(name: str, options: dict[str, str], fold: int) -> Any:
    config = cell(method=name, fold=fold)
    return config.model_copy(
        update={"method": config.method.model_copy(update={"options": options})}
    )


def test_every_form_has_the_rule_and_the_places() -> None:
    built = table(*made(("cheap", (0.5, 1.0)), ("good", (0.3, 2.0)), ("worse", (0.4, 3.0))))
    assert "| airfoil | worse | 5 |" in built.to_markdown()
    for text in (built.to_markdown(), json.dumps(built.to_json(), allow_nan=False)):
        assert pareto.RULE in text
    assert "dominated: good" in built.to_latex()
    header, *rows = built.to_csv().splitlines()
    assert header == "data,method,metric,mean,se,cost,value,place,by"
    assert "airfoil,worse,nlpd,0.4,0.0,seconds,3.0,dominated,good" in rows
    assert len(rows) == 6


@pytest.mark.parametrize("group", [FIGURES, TABLES])
def test_a_metric_that_no_region_is_declared_for_is_refused(group: str) -> None:
    entry = {FIGURES: FigureEntry, TABLES: TableEntry}[group]
    keys = {"metric": "brier"} if group == FIGURES else {"metrics": ["brier"]}
    declared = load_experiment("adam2021-fig3")
    with pytest.raises(UserError, match="region of practical equivalence 'brier'"):
        kind_of(group, entry(name="any", kind="pareto", **keys), declared)


def test_several_backends_are_refused() -> None:
    with pytest.raises(UserError, match="one --backend"):
        ParetoTable().build(collected(*made(("a", (0.1, 1.0)))), ("jax", "torch"))


def test_the_figure_fills_the_front_and_labels_what_leaves_the_panel(
    draw: Callable[..., tuple[Figure, str]],
) -> None:
    records = made(
        ("cheap", (0.50, 1.0)),
        ("good", (0.30, 2.0)),
        ("worse", (0.40, 3.0)),
        ("no better", (0.298, 3.5)),
        ("off", (9.0, 4.0)),
    )
    figure, caption = draw(Pareto(costs=("seconds",)), *records)
    (panel,) = figure.axes
    faces = {
        line.get_xdata()[0]: line.get_markerfacecolor()
        for line in panel.lines
        if line.get_marker() in "osD^v"
    }  # fmt: skip
    assert [x for x, face in faces.items() if face != "white"] == [1.0, 2.0]
    assert [x for x, face in faces.items() if face == "white"] == [3.0, 3.5]
    (steps,) = [line for line in panel.lines if line.get_drawstyle() == "steps-post"]
    assert list(steps.get_xdata()) == [1.0, 2.0, 4.0]
    assert list(steps.get_ydata()) == pytest.approx([0.5, 0.3, 0.3])
    assert [text.get_text() for text in panel.texts] == [r"$\uparrow$ off 9"]
    assert panel.get_ylim()[1] < 1.0
    assert "against seconds of training" in caption and "`measures = true`" in caption


def test_the_committed_figure_3_has_a_front(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = ("adam2021-fig3", "--preset", "starts", "--results", str(RESULTS), "--kind", "pareto")
    assert exit_code(["table", *chosen, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    by_flops = [row for row in rows if row["cost"] == "flops"]
    assert len(by_flops) == 6 * 5
    on_it = {
        row["data"] for row in by_flops if row["method"] == "t-SVGP" and row["place"] == "front"
    }
    assert on_it == {"airfoil", "concrete:5", "pima"}
    # on regression the paper's Adam takes one step of rate 1
    straw = [row for row in by_flops if row["method"] == "q-SVGP Adam"]
    assert {row["data"] for row in straw if row["place"] == "dominated"} == {
        "airfoil", "boston:no-rad", "concrete:5",
    }  # fmt: skip


def test_a_kind_and_a_name_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    for command, option in (("table", "--table"), ("plot", "--figure")):
        assert exit_code([command, "adam2021-fig3", option, "fig3", "--kind", "pareto"]) == 2
        assert "give one" in capsys.readouterr().err
    assert exit_code(["table", "adam2021-fig3", "--kind", "paretto"]) == 2
    assert "pareto" in capsys.readouterr().err
