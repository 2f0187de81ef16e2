"""What records support on data like the user's: near cases, runs that deserve it, or no advice and why."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from committed_records import RESULTS
from hand_records import cell, collected, record

from svgpbench.cli.application import exit_code
from svgpbench.comparison.advice import Advice, ExperimentField, field_of
from svgpbench.comparison.advice_by_time import TimedContestant, TimedField, is_no_later
from svgpbench.comparison.advice_text import advice_as_markdown, answer_lines
from svgpbench.comparison.cases import Case, Question, cases_in, near, nearest
from svgpbench.config import InducingConfig, MethodConfig, TrainingConfig
from svgpbench.experiments.schema import Rates
from svgpbench.results.records import Record

GAUSSIAN = Question(("gaussian",), 1000, 8)
OTHER = MethodConfig(name="q-svgp", label="b")


def case(n: int = 1000, dimensions: int = 8, likelihood: str = "gaussian", *counts: int) -> Case:
    return Case("by-hand", "any", likelihood, n, dimensions, counts or (50,), ())


def test_a_case_is_near_within_the_factor_in_each_size_and_with_the_likelihood_alone() -> None:
    fits = [case(), case(n=3000), case(n=334), case(dimensions=24), case(dimensions=3)]
    far = [case(n=3001), case(n=333), case(dimensions=25), case(dimensions=2)]
    other = [case(likelihood="student-t")]
    assert near([*fits, *far, *other], GAUSSIAN) == fits
    assert near([*fits, *far, *other], Question()) == [*fits, *far, *other]
    assert near(far, Question(("gaussian",), 1000, 8, within=5.0)) == far


def test_inducing_points_count_where_they_are_asked_for() -> None:
    asked = Question(("gaussian",), 1000, 8, inducing=100)
    small, both = case(1000, 8, "gaussian", 20), case(1000, 8, "gaussian", 20, 100)
    assert near([small, both], asked) == [both]
    few, many = (record(cell(inducing=InducingConfig(count=count)), -1.0) for count in (20, 100))
    assert (asked.accepts(few), asked.accepts(many)) == (False, True)


def test_the_nearest_are_those_of_the_likelihood_by_the_size_that_is_farthest() -> None:
    far, farther = case(n=10_000), case(n=1000, dimensions=200)
    cases = [farther, far, case(likelihood="poisson")]
    assert nearest(cases, GAUSSIAN) == [far, farther]


SETTLED = [-1.0, -1.0, -1.0, -1.0]
"""A bound that stays where it is in the last quarter of a run."""
TABLES = (
    "airfoil",
    "boston",
    "concrete",
    "energy",
    "kin8nm",
    "naval",
    "power",
    "protein",
    "wine",
    "yacht",
)


def records(data: str, bounds: dict[str, list[float]] | None = None, **nlpd: float) -> list[Record]:
    """Five folds of each method, every fold alike but for a common shift.

    Args:
        data: a data set.
        bounds: the bound of a method at iterations 1, 80, 90 and 100; settled where it is not named.
        nlpd: of each method.
    """
    return [
        record(
            cell(data, name, fold=fold),
            -1.0,
            nlpd=value + 0.01 * fold,
            trace={"iteration": [1, 80, 90, 100], "elbo": (bounds or {}).get(name, SETTLED)},
        )
        for name, value in nlpd.items()
        for fold in range(5)
    ]


def field(
    *of_data: list[Record], question: Question = GAUSSIAN, rates: Rates = "none needed"
) -> ExperimentField:
    cases = [
        Case("by-hand", several[0].config.data.title, "gaussian", 90, 5, (50,), tuple(several))
        for several in of_data
    ]
    found = field_of(question, "nlpd", cases, rates)
    assert found is not None
    return found


def names(found: ExperimentField) -> list[str]:
    return [one.method for one in found.recommended]


def test_methods_are_ranked_by_where_they_are_beaten_and_then_by_rank() -> None:
    """A mean that is lower by less than what matters beats nobody."""
    found = field(
        records("airfoil", worst=0.9, second=0.302, first=0.300),
        records("boston", worst=0.9, second=0.304, first=0.300),
    )
    assert [one.method for one in found.methods] == ["first", "second", "worst"]
    assert [one.beaten for one in found.methods] == [(), (), ("airfoil", "boston")]
    assert [one.rank for one in found.methods] == [1.0, 2.0, 3.0]
    assert [effect.value for effect in found.methods[2].against] == pytest.approx([0.6, 0.6])
    assert found.methods[0].against == ()


def test_a_method_that_is_never_beaten_goes_before_one_of_a_better_rank() -> None:
    found = field(
        records("airfoil", risky=0.300, safe=0.305),
        records("boston", risky=0.300, safe=0.305),
        records("concrete", risky=0.900, safe=0.305),
    )
    assert [(one.method, len(one.beaten)) for one in found.methods] == [("safe", 0), ("risky", 1)]
    assert found.methods[0].rank > found.methods[1].rank


def test_ten_data_sets_recommend_and_nine_do_not() -> None:
    every = [records(data, first=0.300, second=0.302, worst=0.9) for data in TABLES]
    ten, nine = field(*every[:10]), field(*every[:9])
    assert (names(ten), names(nine)) == (["first", "second"], [])
    assert ten.answer == (
        "first, second: no worse than any of 3 methods on 10 data sets; of these first takes the "
        "fewest FLOPs"
    )
    assert nine.answer == "no advice: there are 9 data sets, and 10 are needed"
    assert nine.methods[2].beaten  # evidence all the same


def test_rates_that_were_not_searched_recommend_nothing() -> None:
    every = [records(data, first=0.3, worst=0.9) for data in TABLES]
    assert names(field(*every)) == ["first"]
    printed = field(*every, rates="as printed")
    assert (names(printed), printed.answer) == ([], "no advice: learning rates were not searched")


@pytest.mark.parametrize(
    ("bound", "why"),
    [
        ([-9.0, -3.0, -2.0, -1.0], "has not converged: its bound rose by 2 in the last quarter"),
        ([-9.0, -1.0, -5.0, -1.0], "is unstable at its rate: its bound fell by 4"),
    ],
)
def test_a_method_that_has_not_settled_on_a_data_set_is_named_and_compared_with_nothing(
    bound: list[float], why: str
) -> None:
    """It would be the best, and better than the second best."""
    every = [records(data, first=0.1, second=0.3, worst=0.9) for data in TABLES[:9]]
    late = records("yacht", {"first": bound}, first=0.1, second=0.3, worst=0.9)
    found = field(*every, late)
    assert [one.method for one in found.methods] == ["second", "worst"]
    assert found.methods[0].beaten == ()
    assert names(found) == ["second"]
    assert [(one.method, one.data) for one in found.unsettled] == [("first", "yacht")]
    assert why in found.unsettled[0].why


def test_a_fall_in_one_run_counts_and_a_rise_in_the_median() -> None:
    falls, rises = [-9.0, -1.0, -5.0, -1.0], [-9.0, -3.0, -2.0, -1.0]

    def last_of_five(bound: list[float]) -> ExperimentField:
        here = records("airfoil", a=0.3, b=0.9)
        here[4] = records("airfoil", {"a": bound}, a=0.3)[4]
        return field(here, records("boston", a=0.3, b=0.9))

    assert [one.method for one in last_of_five(falls).unsettled] == ["a"]
    assert last_of_five(rises).unsettled == ()


def test_a_run_whose_end_was_hardly_looked_at_is_not_known_to_have_converged() -> None:
    several = [
        one.model_copy(update={"trace": {"iteration": [1, 100], "elbo": [-9.0, -1.0]}})
        for one in records("airfoil", a=0.3, b=0.9)
    ]
    found = field(several)
    assert found.methods == ()
    assert found.answer == "no advice: no method is known to have converged and to be stable"


def test_a_data_set_on_which_one_method_alone_has_settled_is_not_counted() -> None:
    rises = [-9.0, -3.0, -2.0, -1.0]
    every = [records(data, a=0.3, b=0.9) for data in TABLES[:9]]
    found = field(*every, records("yacht", {"a": rises}, a=0.3, b=0.9))
    assert (found.sources, names(found)) == (9, [])
    assert [one.method for one in found.methods] == ["a", "b"]


def test_variants_and_outputs_of_a_table_are_one_data_set() -> None:
    every = [records(data, a=0.3, b=0.9) for data in TABLES[:9]]
    twice = [records("concrete:5", a=0.3, b=0.9), records("concrete:4", a=0.3, b=0.9)]
    found = field(*every, *twice)
    assert (len(found.counted), found.sources, names(found)) == (11, 9, [])
    assert found.methods[1].beaten == TABLES[:9]
    assert field(*every, records("yacht", a=0.3, b=0.9)).sources == 10


def test_a_variant_that_gives_the_target_away_is_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    both = collected(*records("magic", a=0.3), *records("magic:row-number", a=0.1))
    monkeypatch.setattr("svgpbench.comparison.cases.collected_in", lambda *_, **__: ([both], []))
    cases, notes = cases_in(Path())
    assert [case.data for case in cases] == ["magic"]
    assert notes == ["left out, because an input gives the target away: magic:row-number"]


def test_a_method_is_taken_at_its_best_rates_where_these_were_searched() -> None:
    """Of two rates the one of the better bound, though the other tests better."""

    def at(rate: float, elbo: float, nlpd: float) -> list[Record]:
        training = TrainingConfig(e_rate=rate, em_iterations=100)
        trace = {"iteration": [1, 80, 90, 100], "elbo": SETTLED}
        cells = [cell("airfoil", f"a {rate:g}", fold=fold, training=training) for fold in range(5)]
        return [record(x, elbo, nlpd=nlpd + 0.01 * x.split.fold, trace=trace) for x in cells]

    other = [
        one.model_copy(update={"config": one.config.model_copy(update={"method": OTHER})})
        for one in records("airfoil", b=0.9)
    ]
    several = [*at(0.1, -2.0, 0.1), *at(0.5, -1.0, 0.3), *other]
    found = field(several, rates="searched")
    assert [one.method for one in found.methods] == ["a", "b"]
    assert found.methods[1].against[0].value == pytest.approx(0.6)
    assert len(field(several).methods) == 3


def test_a_method_that_is_worse_on_one_data_set_is_not_recommended() -> None:
    every = [records(data, a=0.3, b=0.305) for data in TABLES[:9]]
    found = field(*every, records("yacht", a=0.9, b=0.3))
    assert names(found) == ["b"]


def test_where_half_is_open_nothing_is_recommended() -> None:
    """One fold has no interval."""
    every = [records(data, a=0.3, b=0.9) for data in TABLES]
    open_ones = [[r for r in several if r.config.split.fold == 0] for several in every]
    assert names(field(*every[:6], *open_ones[6:])) == ["a"]
    half = field(*every[:5], *open_ones[5:])
    assert half.answer == (
        "no advice: no method is no worse than every other on more than half of the data sets"
    )


def test_a_method_that_fails_is_beaten_and_last() -> None:
    several = records("airfoil", a=0.1, b=0.9)
    several[0] = several[0].model_copy(update={"status": "diverged"})
    found = field(several)
    assert [(one.method, one.beaten, one.rank) for one in found.methods] == [
        ("b", (), 1.0), ("a", ("airfoil",), 2.0),
    ]  # fmt: skip
    assert found.failed == ("a",)


def test_a_field_is_of_methods_that_ran_on_every_near_data_set() -> None:
    found = field(records("airfoil", a=0.1, b=0.9), records("boston", b=0.9, c=0.1))
    assert found.tried == 1
    assert found.notes == ("not on every near data set, and left out: a, c",)


def test_data_sets_that_few_methods_ran_on_do_not_cost_the_others_their_ranking() -> None:
    found = field(
        records("airfoil", a=0.1, b=0.5, c=0.9),
        records("boston", a=0.1, b=0.5, c=0.9),
        records("concrete", b=0.1),
    )
    assert [(one.method, one.rank) for one in found.methods] == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert [case.data for case in found.cases] == ["airfoil", "boston"]
    assert found.records == len(records("airfoil", a=0.1, b=0.5, c=0.9)) * 2
    assert found.notes == ("left out, for want of some of these methods: 1 of 3 near data sets",)


def test_what_is_not_compared_is_named_with_the_reason() -> None:
    bounds = {"first": [-9.0, -3.0, -2.0, -1.0], "second": [-9.0, -1.0, -5.0, -1.0]}
    several = records("airfoil", bounds, first=0.1, second=0.2, third=0.3, worst=0.9)
    found = Advice(GAUSSIAN, "nlpd", (field(several),), (), (), ())
    short, whole = advice_as_markdown(found), advice_as_markdown(found, evidence=True)
    row = next(line for line in short.splitlines() if line.startswith("| gaussian"))
    assert "not known to have converged: 2 of 4 methods; unstable: `second`" in row
    assert (
        "- not compared: first, on 1 data set (airfoil: has not converged: its bound rose" in whole
    )
    assert "- not compared: second, on 1 data set (airfoil: is unstable at its rate" in whole


def test_the_answer_is_three_lines_with_the_methods_that_ten_data_sets_support() -> None:
    several = field(*(records(data, a=0.3, b=0.302, c=0.304, d=0.303, e=0.9) for data in TABLES))
    other = field(records("airfoil", a=0.3, b=0.9), rates="as printed")
    assert answer_lines(Advice(GAUSSIAN, "nlpd", (several, other), (), (), ())) == (
        ("method", "a, b, d and 1 more (gaussian, by NLPD)"),
        ("data", "gaussian, N = 1000, D = 8; records near it have N = 90"),
        ("evidence", "250 records of 10 data sets; comparable rates in 1 of 1 experiment"),
    )
    nothing = answer_lines(Advice(GAUSSIAN, "nlpd", (other,), (), (), ()))
    assert nothing[0] == (
        "method",
        "no advice: 2 of 2 methods, counted per experiment, are known to have converged",
    )
    assert "comparable rates in 0 of 1 experiment" in nothing[2][1]


def timed(**seconds: Sequence[float]) -> dict[str, tuple[float, ...]]:
    """Seconds to the target of ten problems, `first` in nine of them and `last` in the tenth."""
    every = {f"p{at}": tuple(seconds["first"]) for at in range(9)}
    return every | {"p9": tuple(seconds["last"])}


@pytest.mark.parametrize(
    ("last", "no_later"),
    [((2.0, 2.0), True), ((9.0, 2.0), True), ((9.0, 9.0), False), ((math.inf, math.inf), False)],
)
def test_a_method_is_no_later_where_no_problem_has_it_later_in_every_seed(
    last: tuple[float, float], no_later: bool
) -> None:
    mine, theirs = timed(first=(2.0, 2.1), last=last), timed(first=(2.0, 2.0), last=(2.0, 2.0))
    assert is_no_later(mine, theirs, {name: name for name in mine}) is no_later


def test_runs_that_both_miss_the_target_say_nothing() -> None:
    never = timed(first=(math.inf, math.inf), last=(math.inf, math.inf))
    assert not is_no_later(never, never, {name: name for name in never})


def test_a_plan_recommends_from_ten_data_sets_on_and_where_rates_were_searched() -> None:
    def plan(count: int, searched: bool) -> TimedField:
        cases = tuple(case_of(f"p{at}") for at in range(count))
        seconds = {one.data: (2.0,) for one in cases}
        methods = (TimedContestant("a", seconds, True), TimedContestant("b", seconds, False))
        targets = dict.fromkeys(seconds, 0.1)
        return TimedField("plan", "gaussian", searched, cases, targets, methods, 1.0)

    assert plan(10, True).answer == "a: no later than any of 2 methods on 10 data sets"
    assert plan(9, True).answer == "no advice: there are 9 data sets, and 10 are needed"
    assert plan(10, False).answer == "no advice: learning rates were not searched"


def case_of(data: str) -> Case:
    return Case("learn plan", data, "gaussian", 90, 5, (50,), ())


def test_the_table_has_ten_rows_at_most_and_says_what_an_answer_costs() -> None:
    every = [records(data, first=0.3, worst=0.9) for data in TABLES]
    advising = field(*every)
    others = [
        replace(
            field(records("airfoil", a=0.3, b=0.9), rates="as printed"),
            cases=(replace(case_of("airfoil"), likelihood=f"of-{at}"),),
        )
        for at in range(11)
    ]
    advice = Advice(GAUSSIAN, "nlpd", (advising, *others), (), (), ())
    text = advice_as_markdown(advice)
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 10
    assert "first: no worse than any of 2 methods on 10 data sets" in rows[0]
    assert "first: " in rows[0].split("|")[6] and "FLOPs" in rows[0].split("|")[6]
    assert "**no advice**: learning rates were not searched" in rows[1]
    assert "2 more rows are left out" in text
    assert text.count("What would be needed") == 1 and "### " not in text
    assert "### by-hand, gaussian" in advice_as_markdown(advice, evidence=True)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The committed records of one experiment: N = 90, D = 1, Gaussian."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "kobe2021-fig4.2.parquet").symlink_to(RESULTS / "kobe2021-fig4.2.parquet")
    return folder


def test_a_table_of_ones_own_is_answered_by_records_of_its_size(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.csv"
    own.write_text("a,y\n" + "".join(f"{i},{i % 7}.5\n" for i in range(100)))
    asked = (str(own), "--target", "y", "--results", str(results))
    assert exit_code(["advise", *asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["method", "data", "evidence"]
    assert "no advice" in lines[0] and "gaussian, N = 100, D = 1; records near it" in lines[1]
    assert "70 records of 1 data set; comparable rates in 0 of 1 experiment" in lines[2]
    assert lines[3] == "" and lines[-1] == f"next: svgpbench advise {shlex.join(asked)} --evidence"
    assert not any(re.search(r"\*\*|^#", line) for line in lines)
    assert exit_code(["advise", *asked, "--evidence"]) == 0
    printed = capsys.readouterr().out
    assert "kobe2021-fig4.2, gaussian" in printed
    assert "records of `kobe2021-fig4.2` on 1 data set" in printed
    assert printed.endswith(f"next: svgpbench inducing {own} --target y\n")
    assert exit_code(["advise", *asked, "--markdown"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("## Gaussian, N = 100, D = 1\n\n- method: no advice")
    assert (
        "| gaussian | 90 | 10 |" in printed
        and "**no advice**: learning rates were not searched" in printed
    )
    assert "###" not in printed
    assert exit_code(["advise", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["evidence"], found["question"]["N"]) == (True, 100)
    first = found["fields"][0]
    assert {"NGD", "Adam"} <= {x["method"] for x in first["methods"] + first["not_compared"]}


@pytest.mark.parametrize(
    "asked",
    [("--n", "100000", "--D", "1"), ("--n", "90", "--D", "1", "--likelihood", "student-t"), ("pima",)],
)  # fmt: skip
def test_where_no_record_is_near_there_is_no_evidence_and_no_ranking(
    asked: tuple[str, ...], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["advise", *asked, "--results", str(results)]) == 0
    printed = capsys.readouterr().out
    assert "No evidence" in printed and "not converged or failed" not in printed
    assert "no records here are near" in printed.splitlines()[2]
    here = "The nearest: kobe2021-fig4.2, thesis-sinusoid (N = 90" in " ".join(printed.split())
    assert here == ("100000" in asked)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("airfoil", "--n", "3"), "leave --n and --D out"),
        (("own.csv",), "one --target"),
        (("airfoil", "--target", "y"), "registry"),
        (("--target", "y"), "name the file first"),
        (("--within", "0.5"), "at least 1"),
        (("--likelihood", "gausian"), "gaussian"),
        (("--metric", "brier"), "region of practical equivalence"),
        (("airfoyl",), "airfoil"),
        (("--results", "nowhere"), "no such folder"),
        (("--experiment", "nowhere.toml"), "cannot be read"),
    ],
)
def test_a_mistake_is_one_line(
    asked: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["advise", *asked]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


COMMAND = "svgpbench advise --results results --markdown"


@pytest.mark.slow
def test_the_page_is_what_the_command_says_of_the_committed_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = RESULTS.parent
    monkeypatch.chdir(root)
    page = (root / "docs" / "which-parameterization.md").read_text(encoding="utf-8")
    assert exit_code(COMMAND.split()[1:]) == 0
    assert page.partition(f"<!-- {COMMAND} -->\n\n")[2] == capsys.readouterr().out
