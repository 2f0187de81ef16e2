"""Advice from the board: which problems it rests on, what it recommends, and what following it costs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from svgpbench.config import DataConfig, RatePair
from svgpbench.experiments import load_experiment, resolve
from svgpbench.suite.advice import (
    _table,
    advise,
    experiment_file,
    group_of,
    held_out_costs,
    recommend,
)
from svgpbench.suite.cells import cell_of, read_iterations
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import load_suite
from svgpbench.suite.step_times import read_step_times

SUITE = load_suite()
BY_TITLE = {problem.title: problem for problem in SUITE.problems}
SMALL, MIDDLE, LARGE = SUITE.sizes
DUAL, ADAM, SGPR = "t-SVGP", "q-SVGP Adam", "SGPR"
LABELS = ["pima", "banana:full", "chess-krvkp", "bank", "twonorm"]


def run(problem: str, entrant: str, nlpd: float, **more: Any) -> dict[str, Any]:
    """Return a run's row; the constant prediction has an NLPD of 2, and the best known one of 1."""
    row = {"problem": problem, "entrant": entrant, "fold": 0, "status": "ok", "nlpd": nlpd}
    return row | {"constant_nlpd": 2.0, "best_nlpd": 1.0, "ms": 2.0, "seconds_90": 1.0} | more


def trial(problem: str, entrant: str, e: float, m: float, nlpd: float) -> dict[str, Any]:
    row = {"problem": problem, "entrant": entrant, "stage": 1, "status": "ok"}
    return row | {"e_rate": e, "m_rate": m, "nlpd": nlpd}


def table(scores: dict[str, tuple[float, float]]) -> Outcomes:
    """Return outcomes of the dual and the Adam entrant, with a trial each, by problem."""
    pairs = [
        (p, x, v) for p, both in scores.items() for x, v in zip((DUAL, ADAM), both, strict=True)
    ]
    trials = [trial(p, x, 0.3, 0.03, v) for p, x, v in pairs]
    return Outcomes(pd.DataFrame([run(*x) for x in pairs]), pd.DataFrame(trials))


def test_an_answer_rests_on_problems_of_the_likelihood_and_size_if_they_are_five() -> None:
    ran = [*LABELS, "airfoil", "kin8nm"]
    sizes = {SUITE.size_of(BY_TITLE[x]) for x in LABELS}
    assert len(sizes) > 1  # or the next line would say nothing
    group = group_of(SUITE, ran, "bernoulli-probit", SMALL)
    assert [x.title for x in group.problems] == LABELS
    assert group.name == "bernoulli-probit; only 1 with about as many rows as yours"
    four = group_of(SUITE, [*LABELS[1:], "airfoil"], "bernoulli-probit", SMALL)
    assert four.name == "all likelihoods; only 4 with bernoulli-probit"
    whole = group_of(SUITE, ran, "gaussian", SMALL)
    assert [x.title for x in whole.problems] == ["airfoil", "kin8nm", *LABELS]
    assert whole.name == "all likelihoods; only 2 with gaussian"
    large = [x.title for x in SUITE.problems if x.likelihood.name == "gaussian"]
    of_size = [x for x in large if SUITE.size_of(BY_TITLE[x]) == LARGE]
    assert len(of_size) >= 5
    group = group_of(SUITE, large, "gaussian", LARGE)
    assert [x.title for x in group.problems] == of_size
    assert group.name == "gaussian, about as many rows as yours"


def test_a_recommendation_has_its_wins_gain_rates_and_seconds() -> None:
    iterations = read_iterations()
    runs = [
        *(run("airfoil", DUAL, 1.0, seconds_90=3.0), run("airfoil", ADAM, 1.5, seconds_90=9.0)),
        *(
            run("kin8nm", DUAL, 1.25, seconds_90=4.0),
            run("kin8nm", ADAM, 1.125, seconds_90=float("nan")),
        ),
        *(run("boston:no-rad", DUAL, 1.0), run("boston:no-rad", ADAM, 1.0)),
        *(run("airfoil", SGPR, 0.5), run("kin8nm", SGPR, 0.5), run("boston:no-rad", SGPR, 0.5)),
    ]
    trials = [
        *(trial("airfoil", DUAL, 0.3, 0.1, 1.0), trial("airfoil", DUAL, 1.0, 0.03, 1.125)),
        *(trial("kin8nm", DUAL, 0.3, 0.1, 1.875), trial("kin8nm", DUAL, 1.0, 0.03, 1.25)),
        *(trial("airfoil", ADAM, 0.1, 0.01, 1.5), trial("kin8nm", ADAM, 0.1, 0.01, 1.5)),
    ]
    outcomes = Outcomes(pd.DataFrame(runs), pd.DataFrame(trials))
    group = group_of(SUITE, set(outcomes.runs["problem"]), "gaussian", SMALL)
    first, second = recommend(SUITE, outcomes, group, "gaussian", LARGE)
    assert (first.entrant, second.entrant) == (DUAL, ADAM)
    # ranks 1, 2, 1.5 and 2, 1, 1.5: of equal averages, the first of the suite
    assert (first.won, second.won) == pytest.approx((2 / 3, 2 / 3))
    assert (first.share, second.share) == pytest.approx((2.75 / 3, (0.5 + 0.875 + 1) / 3))
    assert (first.rates, second.rates) == (RatePair(1.0, 0.03), RatePair(0.1, 0.01))
    # the middle of three runs took 3 and 9 seconds, at 2 ms an iteration; the table's takes longer
    times, large = read_step_times(), [x for x in SUITE.problems if SUITE.size_of(x) == LARGE]
    gaussian = [x.title for x in large if x.likelihood.name == "gaussian"]
    ms = [
        float(np.median([times[title, x] for title in gaussian if (title, x) in times]))
        for x in (DUAL, ADAM)
    ]
    assert min(ms) > 3.0
    assert (first.seconds, second.seconds) == pytest.approx((1.5 * ms[0], 4.5 * ms[1]))
    counts = sorted(iterations[x, DUAL] for x in ("airfoil", "kin8nm", "boston:no-rad"))
    assert first.iterations == counts[1]
    assert first.whole_run == pytest.approx(counts[1] * ms[0] / 1e3)


def test_three_are_recommended_also_of_a_table_beyond_all_sizes() -> None:
    labels = [x.label for x in SUITE.entrants if not x.reference and not x.bases][:4]
    runs = [run("airfoil", x, 1.0 + 0.125 * place) for place, x in enumerate(labels)]
    trials = [trial("airfoil", x, 0.1, 0.03, 1.0) for x in labels]
    outcomes = Outcomes(pd.DataFrame(runs), pd.DataFrame(trials))
    advice = advise(SUITE, outcomes, "gaussian", 2 * LARGE.rows_below, 8)
    assert [x.entrant for x in advice.recommended] == labels[:3]
    assert advice.inducing == LARGE.inducing > MIDDLE.inducing


def test_a_likelihood_without_times_at_a_size_has_those_of_the_size() -> None:
    times = read_step_times()
    timed = [x for x in SUITE.problems if (x.title, DUAL) in times and SUITE.size_of(x) == SMALL]
    assert {x.likelihood.name for x in timed}.isdisjoint({"poisson"})
    outcomes = table({"airfoil": (1.0, 1.25)})
    group = group_of(SUITE, {"airfoil"}, "poisson", SMALL)
    first, second = recommend(SUITE, outcomes, group, "poisson", SMALL)
    assert (first.won, second.won) == (1.0, 0.0)
    ms = np.median([times[x.title, DUAL] for x in timed])
    assert first.whole_run == pytest.approx(read_iterations()["airfoil", DUAL] * ms / 1e3)


def test_the_cost_of_the_advice_is_that_of_what_the_other_problems_recommend() -> None:
    scores = {"airfoil": (1.0, 1.25), "kin8nm": (1.0, 1.5), "pima": (1.75, 1.0), "bank": (1.0, 1.0)}
    costs = held_out_costs(SUITE, table(scores)).set_index("problem")
    # without pima, t-SVGP is best on two of three; without airfoil, ranks are 1, 2, 1.5 and 2, 1, 1.5
    assert costs["advised"].to_dict() == dict.fromkeys(scores, DUAL)
    assert costs["cost"].to_dict() == {"airfoil": 0.0, "kin8nm": 0.0, "pima": 0.75, "bank": 0.0}
    assert costs.loc["pima", "best"] == ADAM
    # each of two problems advises what is best there, which is worst on the other
    apart = held_out_costs(SUITE, table({"airfoil": (1.0, 1.5), "kin8nm": (1.75, 1.0)}))
    assert apart["advised"].tolist() == [ADAM, DUAL]
    assert apart["cost"].tolist() == [0.5, 0.75]
    # two problems of one table: neither may advise for the other
    twice = {"gas": (1.0, 1.5), "gas, Student-t": (1.0, 1.5), "pima": (1.75, 1.0)}
    costs = held_out_costs(SUITE, table(twice)).set_index("problem")
    assert costs["advised"].to_dict() == {"gas": ADAM, "gas, Student-t": ADAM, "pima": DUAL}
    alone = held_out_costs(SUITE, table({"airfoil": (1.0, 1.5)}))
    assert alone.empty  # nothing is left to advise from


def test_a_problem_is_shipped_once_every_entrant_has_finished_it() -> None:
    everybody = {x.label for x in SUITE.entrants if SUITE.takes_part(x, BY_TITLE["pima"])}
    assert SGPR not in everybody  # which takes part in regression alone
    runs = [run("pima", x, 1.0) for x in everybody] + [run("airfoil", x, 1.0) for x in everybody]
    trials = [trial(p, DUAL, 0.3, 0.03, 1.0) for p in ("pima", "airfoil")]
    outcomes = Outcomes(pd.DataFrame(runs), pd.DataFrame(trials))
    shipped = outcomes.finished_by_all(SUITE)
    assert set(shipped.runs["problem"]) == set(shipped.trials["problem"]) == {"pima"}
    whole = pd.DataFrame([*runs, run("airfoil", SGPR, 1.0)])
    assert set(Outcomes(whole, outcomes.trials).finished_by_all(SUITE).runs["problem"]) == {
        "pima",
        "airfoil",
    }


def test_tables_within_tables_and_all_letters_are_read_back() -> None:
    values = {"a": {"b": [1, 2.5, True], "c": {"d": 'π 🎈 "x"'}}, "e": []}
    assert tomllib.loads(f"x = {_table(values)}") == {"x": values}


@pytest.mark.parametrize("data", ["airfoil", "banana:full", "waveform-noise"])
def test_the_written_experiment_runs_the_cells_of_the_suite(data: str, tmp_path: Path) -> None:
    problem = BY_TITLE[data]
    name = problem.likelihood.name
    titles = list(dict.fromkeys([data, "pima", "banana:full", "chess-krvkp"]))
    outcomes = table(dict.fromkeys(titles, (1.0, 1.5)))
    bases = next(x.label for x in SUITE.entrants if x.bases)
    runs = pd.concat([outcomes.runs, pd.DataFrame([run(x, bases, 1.25) for x in titles])])
    trials = [trial(x, bases, 0.1, 0.03, 1.25) for x in titles]
    outcomes = Outcomes(runs, pd.concat([outcomes.trials, pd.DataFrame(trials)]))
    advice = advise(SUITE, outcomes, name, problem.rows, problem.dimensions)
    assert [x.entrant for x in advice.recommended] == [DUAL, bases, ADAM]
    path = tmp_path / "my.toml"
    path.write_text(experiment_file(SUITE, advice, DataConfig(name=data)), "utf-8")
    cells = resolve(load_experiment(str(path)))
    assert len(cells) == 3 * SUITE.protocol.folds
    by_label = {x.label: x for x in SUITE.entrants}
    for cell in cells:
        entrant = by_label[str(cell.method.label)]
        rates = next(x.rates for x in advice.recommended if x.entrant == entrant.label)
        own = cell_of(SUITE, problem, entrant, "run", rates, cell.split.fold, read_iterations())
        training = own.training.model_copy(update={"em_iterations": cell.training.em_iterations})
        assert cell.training == training
        for part in (
            "data",
            "split",
            "kernel",
            "inducing",
            "method",
            "backend",
            "jitter",
            "likelihood",
        ):
            assert getattr(cell, part) == getattr(own, part), part


@pytest.mark.parametrize(
    ("rows", "count", "bases"), [(3, 2, (1, 1)), (60, 48, (16, 32)), (500, 50, (35, 70))]
)
def test_a_small_table_gets_no_more_inducing_inputs_than_rows_that_train(
    rows: int, count: int, bases: tuple[int, int], tmp_path: Path
) -> None:
    titles = ("airfoil", "boston:no-rad")
    outcomes = table(dict.fromkeys(titles, (1.0, 1.5)))
    runs = [run(x, "ORTH natural", 1.25) for x in titles]
    trials = [trial(x, "ORTH natural", 0.1, 0.03, 1.25) for x in titles]
    outcomes = Outcomes(
        pd.concat([outcomes.runs, pd.DataFrame(runs)]),
        pd.concat([outcomes.trials, pd.DataFrame(trials)]),
    )
    advice = advise(SUITE, outcomes, "gaussian", rows, 2)
    assert advice.inducing == count
    declared = tomllib.loads(experiment_file(SUITE, advice, DataConfig(name="airfoil")))
    assert declared["inducing"]["count"] == count
    (two,) = (x["inducing"] for x in declared["methods"] if x["label"] == "ORTH natural")
    assert (two["count"], two["gamma"]) == bases
