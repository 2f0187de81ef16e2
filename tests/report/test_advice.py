"""What records say of data like the user's: near cases, a ranking by intervals, or that there is nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from committed_records import RESULTS
from hand_records import cell, record

from svgpbench.cli.application import exit_code
from svgpbench.config import InducingConfig
from svgpbench.report.advice import Field, field_of
from svgpbench.report.cases import Case, Question, near, nearest
from svgpbench.runner.records import Record

GAUSSIAN = Question(("gaussian",), 1000, 8)


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
    assert (asked.takes(few), asked.takes(many)) == (False, True)


def test_the_nearest_are_those_of_the_likelihood_by_the_size_that_is_farthest() -> None:
    far, farther = case(n=10_000), case(n=1000, dimensions=200)
    cases = [farther, far, case(likelihood="poisson")]
    assert nearest(cases, GAUSSIAN) == [far, farther]


def records(data: str, **nlpd: float) -> list[Record]:
    """Five folds of each method, every fold alike but for a common shift."""
    return [
        record(cell(data, name, fold=fold), -1.0, nlpd=value + 0.01 * fold)
        for name, value in nlpd.items()
        for fold in range(5)
    ]


def field(*of_data: list[Record], question: Question = GAUSSIAN) -> Field:
    cases = [
        Case("by-hand", several[0].config.data.name, "gaussian", 90, 5, (50,), tuple(several))
        for several in of_data
    ]
    found = field_of(question, "nlpd", cases)
    assert found is not None
    return found


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
    assert found.answer == (
        "never beaten in NLPD: first, second; of these first takes the fewest FLOPs"
    )


def test_a_method_that_is_never_beaten_goes_before_one_of_a_better_rank() -> None:
    found = field(
        records("airfoil", risky=0.300, safe=0.305),
        records("boston", risky=0.300, safe=0.305),
        records("concrete", risky=0.900, safe=0.305),
    )
    assert [(one.method, len(one.beaten)) for one in found.methods] == [("safe", 0), ("risky", 1)]
    assert found.methods[0].rank > found.methods[1].rank


def test_where_all_are_as_good_the_cheapest_is_named_and_where_nothing_is_decided_nobody() -> None:
    alike = field(records("airfoil", a=0.300, b=0.302))
    assert alike.answer.startswith("no method is shown to be worse than another in NLPD")
    one_start = [r for r in records("airfoil", a=0.3, b=0.9) if r.config.split.fold == 0]
    assert field(one_start).answer == "nothing is decided in NLPD between the 2 methods"
    assert field(records("airfoil", a=0.3)).answer.startswith("one method alone")


def test_a_method_that_fails_is_beaten_and_last() -> None:
    several = records("airfoil", a=0.1, b=0.9)
    several[0] = several[0].model_copy(update={"status": "diverged"})
    assert [(one.method, one.beaten, one.rank) for one in field(several).methods] == [
        ("b", (), 1.0), ("a", ("airfoil",), 2.0),
    ]  # fmt: skip


def test_a_field_is_of_methods_that_ran_on_every_near_data_set() -> None:
    found = field(records("airfoil", a=0.1, b=0.9), records("boston", b=0.9, c=0.1))
    assert [one.method for one in found.methods] == ["b"]
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
    printed = capsys.readouterr().out
    assert printed.startswith("## Gaussian, N = 100, D = 1\n")
    assert "### kobe2021-fig4.2, gaussian" in printed
    assert "- evidence: 60 records of `kobe2021-fig4.2` on 1 data set" in printed
    assert exit_code(["advise", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["evidence"], found["question"]["N"]) == (True, 100)
    assert len(found["fields"][0]["methods"]) == 6


@pytest.mark.parametrize(
    "asked",
    [("--n", "100000", "--D", "1"), ("--n", "90", "--D", "1", "--likelihood", "student-t"), ("pima",)],
)  # fmt: skip
def test_where_no_record_is_near_there_is_no_evidence_and_no_ranking(
    asked: tuple[str, ...], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["advise", *asked, "--results", str(results)]) == 0
    printed = capsys.readouterr().out
    assert "**No evidence**" in printed and "average rank" not in printed.partition("\n- ")[0]
    here = "The nearest: kobe2021-fig4.2, thesis-sinusoid (N = 90" in printed
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
        (("--metric", "crps"), "region of practical equivalence"),
        (("airfoyl",), "airfoil"),
        (("--results", "nowhere"), "no such folder"),
    ],
)
def test_a_mistake_is_one_line(
    asked: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["advise", *asked]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


COMMAND = "svgpbench advise --results results"


@pytest.mark.slow
def test_the_page_is_what_the_command_says_of_the_committed_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = RESULTS.parent
    monkeypatch.chdir(root)
    page = (root / "docs" / "which-parameterization.md").read_text(encoding="utf-8")
    assert exit_code(COMMAND.split()[1:]) == 0
    assert page.partition(f"<!-- {COMMAND} -->\n\n")[2] == capsys.readouterr().out
