"""A stranger's entrant: from a method's name or a file, with its iterations and its place on the board."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.suite import joining
from svgpbench.suite.cells import SuiteRun, read_iterations
from svgpbench.suite.joining import REFERENCE, added_entrant, own_iterations, with_entrant
from svgpbench.suite.outcomes import Outcomes, finished
from svgpbench.suite.schema import Entrant, load_suite
from svgpbench.suite.step_times import read_step_times, two_digits

SUITE = load_suite()
FILE = """
label = "mine"
name = "t-svgp"
options = { tying = "untied" }
e_rates = [0.1]
m_rates = [0.01, 0.03]
"""


def grid_of(label: str) -> list[tuple[float, float]]:
    return [tuple(x) for x in next(x for x in SUITE.entrants if x.label == label).grid]


@pytest.mark.parametrize(
    ("method", "like", "joint", "bases"),
    [
        ("t-svgp", "t-SVGP", False, False),  # the suite's t-SVGP has another label
        ("decoupled", "q-SVGP Adam", True, True),
        ("orth", "q-SVGP Adam", True, True),
        ("diagonal-precision", "t-SVGP", False, False),
    ],
)
def test_a_method_has_the_grid_of_those_that_move_as_it_does(
    method: str, like: str, joint: bool, bases: bool
) -> None:
    entrant = added_entrant(SUITE, method)
    assert (entrant.label, entrant.name, entrant.options) == (method, method, {})
    assert [tuple(x) for x in entrant.grid] == grid_of(like)
    assert entrant.joint is joint
    assert bool(entrant.bases) is bases


def test_an_entrant_of_a_file_is_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    entrant = added_entrant(SUITE, str(file))
    assert entrant == Entrant(
        label="mine",
        name="t-svgp",
        options={"tying": "untied"},
        e_rates=(0.1,),
        m_rates=(0.01, 0.03),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("e_rates", "e_rate"), r"mine\.toml: unknown key 'e_rate'.*e_rates"),
        (('"t-svgp"', '"t-svpg"'), "did you mean 't-svgp'"),
        (('"mine"', '"t-SVGP"'), "already; give yours another label"),
        (("[0.1]", "[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]"), "14 pairs of rates; at most 12"),
        (('tying = "untied"', 'tyings = "untied"'), "tyings"),
    ],
)
def test_mistakes_of_a_file_are_told(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE.replace(*change))
    with pytest.raises(UserError, match=message):
        added_entrant(SUITE, str(file))


def test_an_unknown_method_and_a_missing_file_are_told() -> None:
    with pytest.raises(UserError, match="did you mean 'q-svgp'"):
        added_entrant(SUITE, "q-svpg")
    with pytest.raises(UserError, match=r"cannot read the entrant none\.toml"):
        added_entrant(SUITE, "none.toml")


def entrant_called(label: str) -> Entrant:
    return Entrant(label=label, name="t-svgp", e_rates=(0.1,), m_rates=(0.01,))


def never(cells: list[CellConfig], folder: Path) -> bool:
    raise AssertionError("nothing is to be measured")


@pytest.mark.parametrize("label", ["mine", "../../mine"])
def test_budgets_that_were_measured_stay(tmp_path: Path, label: str) -> None:
    """A resumed search has the budgets with which it began, from a file in its folder."""
    problems = [x for x in SUITE.problems if x.title in ("airfoil", "pima")]
    folder = tmp_path / "deep" / "entrants"
    folder.mkdir(parents=True)
    name = {"mine": "mine.csv", "../../mine": "..-..-mine.csv"}[label]
    table = pd.DataFrame({"problem": ["airfoil", "pima"], "iterations": [90, 70], "ms": [2.5, 3.0]})
    table.to_csv(folder / name, index=False)
    budgets, ms = own_iterations(SUITE, problems, entrant_called(label), folder, never)
    assert budgets == {("airfoil", label): 90, ("pima", label): 70}
    assert ms == {("airfoil", label): 2.5, ("pima", label): 3.0}


def test_a_budget_is_as_long_as_the_reference_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entrant that takes twice as long has half as many iterations, on any machine."""
    problem = next(x for x in SUITE.problems if x.title == "airfoil")
    rows = [("airfoil", REFERENCE, 30.0, 29.0, 31.0), ("airfoil", "mine", 60.0, 59.0, 61.0)]
    times = pd.DataFrame(rows, columns=["problem", "entrant", "ms", "least", "most"])
    monkeypatch.setattr(joining, "measured", lambda *_: times)
    budgets, ms = own_iterations(SUITE, [problem], entrant_called("mine"), tmp_path, never)
    reference = ("airfoil", REFERENCE)
    assert budgets == {("airfoil", "mine"): two_digits(read_iterations()[reference] / 2)}
    assert ms == {("airfoil", "mine"): 2 * read_step_times()[reference]}


def test_the_board_has_the_problems_and_folds_that_the_entrant_ran(tmp_path: Path) -> None:
    runs = pd.DataFrame(
        [(p, "A", fold, 1.0, 0.5) for p in ("airfoil", "pima", "bank") for fold in range(5)],
        columns=["problem", "entrant", "fold", "nlpd", "best_nlpd"],
    )
    trials = pd.DataFrame({"problem": ["airfoil", "bank"], "entrant": "A", "stage": 1})
    one_fold = SUITE.protocol.model_copy(update={"run_folds": 1})
    lite = SUITE.model_copy(update={"protocol": one_fold})
    problems = [x for x in SUITE.problems if x.title in ("airfoil", "pima")]
    budgets = {(x.title, "mine"): 10 for x in problems}
    shipped = Outcomes(runs, trials)
    args = (shipped, problems, entrant_called("mine"), budgets, {}, tmp_path)
    found = with_entrant(lite, *args)
    assert found.runs[["problem", "fold"]].to_numpy().tolist() == [["airfoil", 0], ["pima", 0]]
    assert found.trials["problem"].tolist() == ["airfoil"]
    assert len(with_entrant(SUITE, *args).runs) == 10


def test_problems_without_a_number_of_iterations_have_no_outcomes() -> None:
    def look(task: SuiteRun) -> None:
        raise AssertionError("nothing can have run")

    assert list(finished(SUITE, {}, SUITE.problems, SUITE.entrants, look)) == []
