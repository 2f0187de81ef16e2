"""Iterations saved and gains by quarter, on records whose numbers are stated here, and on Figure 3."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from committed_records import RESULTS, committed
from hand_records import cell, record
from scipy import stats

from svgpbench.cli.application import exit_code
from svgpbench.comparison.over_training import (
    ALL,
    draw_gains,
    gain_table,
    gains,
    iterations_saved,
    saved_table,
    trend,
)
from svgpbench.results.records import Record

N_TRAIN = 90


def run(
    label: str, *, fold: int = 0, seed: int = 0, data: str = "airfoil", **trace: object
) -> Record:
    """A run with an evaluation in each iteration; a trace's numbers are those of its evaluations."""
    columns = {name: list(values) for name, values in trace.items()}  # type: ignore[call-overload]
    count = len(next(iter(columns.values())))
    iterations = {"iteration": list(range(1, count + 1))}
    return record(
        cell(data, label, fold=fold, seed=seed, iterations=count),
        trace=iterations | columns,
        nmae=0.5,
    )


def pair(
    first: object, second: object, metric: str = "elbo", **where: object
) -> tuple[Record, Record]:
    return run("A", **where, **{metric: first}), run("B", **where, **{metric: second})  # type: ignore[arg-type]


def test_iterations_to_the_others_last_bound_by_hand() -> None:
    rising = [1.0, 2, 3, 4, 5, 6, 7, 8]
    pairs = [
        pair(
            [2.0, 8, 7, 9, 9, 9, 9, 9], rising, seed=0
        ),  # there at the second, although it falls again
        pair([0.0, 0, 0, 8, 8, 8, 8, 8], rising, seed=1),
        pair([0.0] * 8, rising, seed=2),  # never
    ]
    (saved,) = iterations_saved(pairs)
    assert (saved.runs, saved.sooner, saved.budget, saved.reached) == (3, 2, 8.0, 4.0)
    assert saved.factor == 2.0
    assert saved.low is None, "three runs make no interval"
    assert saved_table([saved], "A", "B").texts == [["airfoil", "3", "2", "8", "4", "2.00 ×"]]


def test_the_interval_is_that_of_resampled_runs() -> None:
    rising = [1.0, 2, 3, 4, 5, 6, 7, 8]
    at = [2, 2, 4, 4, 8]  # iterations at which each run has a bound of 8
    pairs = [pair([0.0] * (k - 1) + [8.0] * (9 - k), rising, seed=i) for i, k in enumerate(at)]
    (saved,) = iterations_saved(pairs)
    # the median of five draws is 2 with probability .317, 8 with probability .058
    assert (saved.low, saved.factor, saved.high) == (1.0, 2.0, 4.0)


def test_a_method_that_is_never_there_saves_none() -> None:
    (saved,) = iterations_saved([pair([0.0, 0.0], [1.0, 2.0])])
    assert (saved.factor, saved.reached) == (0.0, math.inf)
    assert saved_table([saved], "A", "B").texts[0][-2:] == ["never", "none"]


def test_a_gain_is_the_paired_difference_of_the_means_of_a_quarter() -> None:
    A = [[9.0, 9, 1, 3, 5, 5, 6, 8], [9.0, 9, 2, 2, 5, 5, 7, 7]]
    B = [[9.0, 9, 6, 6, 8, 8, 8, 8]] * 2
    pairs = [pair(a, b, "nlpd", fold=i) for i, (a, b) in enumerate(zip(A, B, strict=True))]
    (gain,) = gains(pairs, "nlpd")
    assert [part.value for part in gain.parts] == [0.0, 4.0, 3.0, 1.0]
    assert gain.change.value == -3.0
    assert trend(gain) == "fades"
    assert gain_table([gain], "A", "B").texts[0][:4] == ["airfoil", "+0", "+4", "+3"]


def test_the_interval_of_a_test_score_is_over_splits_with_their_overlap() -> None:
    last = [1.0, 2.0, 4.0]
    pairs = [pair([0.0, 0, 0, 0], [9.0, 9, 9, x], "nlpd", fold=i) for i, x in enumerate(last)]
    (gain,) = gains(pairs, "nlpd")
    error = np.std(last, ddof=1) * math.sqrt(1 / 3 + 45 / N_TRAIN)
    half = stats.t.ppf(0.975, 2) * error
    part = gain.parts[-1]
    assert (part.low, part.high) == pytest.approx((7 / 3 - half, 7 / 3 + half))


def test_units_compare_data_sets() -> None:
    (relative,) = gains([pair([3.0] * 4, [4.0] * 4, "mae")], "mae")
    assert [part.value for part in relative.parts] == [25.0] * 4, "% of the second's value"
    (bound,) = gains([pair([10.0] * 4, [1.0] * 4)], "elbo")
    assert [part.value for part in bound.parts] == [10.0] * 4, "9 nats of 90 rows"


def test_over_data_sets_the_sets_are_the_units_and_an_unlearned_one_is_left_out() -> None:
    by_set = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}
    pairs = [pair([0.0] * 4, [x] * 4, "nlpd", data=name) for name, x in by_set.items()]
    unlearned = [
        one.model_copy(update={"metrics": {"nmae": 0.99}})
        for one in pair([0.0] * 4, [100.0] * 4, "nlpd", data="f")
    ]
    rows = {row.data: row for row in gains([*pairs, (unlearned[0], unlearned[1])], "nlpd")}
    half = stats.t.ppf(0.975, 4) * np.std([*by_set.values()], ddof=1) / math.sqrt(5)
    part = rows[ALL].parts[-1]
    assert (part.value, part.low, part.high) == pytest.approx((3.0, 3.0 - half, 3.0 + half))
    assert trend(rows["f"]) == "no method learns it" and not rows["f"].learned
    assert rows["a"].parts[-1].low is None, "one start of one split makes no interval"


def test_failed_cells_and_replicas_are_left_out() -> None:
    one, other = pair([3.0] * 4, [4.0] * 4, "nlpd")
    failed = one.model_copy(update={"status": "not_pd"})
    assert not gains([(failed, other)], "nlpd")
    assert not iterations_saved([(failed, other)])
    replica = one.config.model_copy(update={"perturbation": 1e-15})
    assert not gains([(one.model_copy(update={"config": replica}), other)], "nlpd")


@pytest.mark.parametrize(
    ("end", "word"), [(5.0, "grows"), (1.0, "fades"), (-2.0, "turns"), (2.0, "no change shown")]
)
def test_a_trend_is_told_by_the_interval_of_the_change(end: float, word: str) -> None:
    pairs = [
        pair([0.0] * 4, [0.0, 2.0, 2.0, end + x], "nlpd", fold=i)
        for i, x in enumerate((-0.01, 0, 0.01))
    ]
    (gain,) = gains(pairs, "nlpd")
    assert trend(gain) == word


def test_a_loss_that_grows_is_called_so() -> None:
    B = ([0.0, -2.0, -2.0, x] for x in (-5.01, -5.0, -4.99))
    pairs = [pair([0.0] * 4, b, "nlpd", fold=i) for i, b in enumerate(B)]
    (gain,) = gains(pairs, "nlpd")
    assert trend(gain) == "loss grows"


def test_figure_3_as_another_program_finds_it() -> None:
    """Iterations of t-SVGP to q-SVGP's last bound, read from the records by a loop of another kind."""
    runs: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    records: dict[tuple[str, int, int], dict[str, Record]] = {}
    for one in committed("adam2021-fig3"):
        c = one.config
        plain = c.perturbation == 0 and c.backend.name == "jax" and c.split.folds == 5
        if plain and c.method.title in ("t-SVGP", "q-SVGP natgrad"):
            key = (c.data.title, c.split.fold, c.seed)
            runs.setdefault(key, {})[c.method.title] = one.trace["elbo"]  # type: ignore[assignment]
            records.setdefault(key, {})[c.method.title] = one
    medians: dict[str, list[float]] = {}
    for (data, *_), two in runs.items():
        if len(two) == 2:
            last = two["q-SVGP natgrad"][-1]
            first = next((i for i, x in enumerate(two["t-SVGP"], 1) if x >= last), math.inf)
            medians.setdefault(data, []).append(first)
    expected = {data: float(np.median(values)) for data, values in medians.items()}
    pairs = [(x["t-SVGP"], x["q-SVGP natgrad"]) for x in records.values() if len(x) == 2]
    found = {row.data: row.reached for row in iterations_saved(pairs)}
    assert found == expected
    reviewed = {
        "airfoil": 9,
        "boston:no-rad": 10,
        "concrete:5": 9,
        "sonar": 17,
        "ionosphere": 18,
        "pima": 16,
    }
    assert {data: found[data] for data in reviewed} == reviewed


def test_runs_of_fewer_evaluations_than_parts_are_drawn(tmp_path: Path) -> None:
    pairs = [pair([1.0, 2, 3, 4], [1.0, 1, 1, 1], seed=seed) for seed in range(5)]
    path = tmp_path / "gain.svg"
    caption = draw_gains(pairs, ["elbo"], "A", "B", path)
    assert caption.startswith("Gain of A over B")
    assert path.read_text(encoding="utf-8").startswith("<?xml")


ASKED = [
    "compare",
    "t-SVGP",
    "q-SVGP natgrad",
    "--experiment",
    "adam2021-fig3",
    "--preset",
    "starts",
]


def test_the_command_prints_draws_and_gives_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*ASKED, "--results", str(RESULTS), "--over-training", "--metric", "elbo"]
    figure = tmp_path / "gain.svg"
    assert exit_code([*asked, "--figure", str(figure)]) == 0
    assert "2.22 × [" in capsys.readouterr().out
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert exit_code([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["data"] for row in found["gains"]} >= {"airfoil", ALL}
    assert found["iterations_saved"][0]["budget"] == 20


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_same_gains_drawn_later_are_the_same_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [pair([1.0, 2, 4, 8], [1.0, 2, 3, 4], seed=seed) for seed in range(5)]
    contents = []
    for epoch in ("0", "1000000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)  # Matplotlib's clock
        path = tmp_path / f"{epoch}.{suffix}"
        draw_gains(pairs, ["elbo"], "A", "B", path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--markdown"], "give one of them"),
        (["--figure", "a.png"], "give it too"),
        (["--over-training", "--metric", "heldout_elbo"], "no trace has one of heldout_elbo"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*ASKED, "--results", str(RESULTS), *more]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
