"""A stranger's entrant: from a method's name or a file, with its iterations and its place on the board."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hand_records import record

from svgpbench.cli import leaderboard
from svgpbench.cli.application import exit_code
from svgpbench.cli.suite_runs import JoinedEntrant
from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify
from svgpbench.results.records import write_record
from svgpbench.suite import joining, step_times
from svgpbench.suite.board import Board
from svgpbench.suite.cells import SuiteRun, read_iterations
from svgpbench.suite.joining import (
    REFERENCE,
    added_entrant,
    collect_entrants,
    entrants_file,
    own_iterations,
    with_entrant,
)
from svgpbench.suite.outcomes import Outcomes, finished
from svgpbench.suite.schema import Entrant, Suite, load_suite
from svgpbench.suite.step_times import read_step_times, two_digits
from svgpbench.suite.tables import entrant_table

SUITE = load_suite()
FILE = """
label = "mine"
name = "t-svgp"
options = { tying = "untied" }
e_rates = [0.1]
m_rates = [0.01, 0.03]
"""
RATES = "e_rates = [0.1]\nm_rates = [0.01, 0.03]"
LIKE_T_SVGP = 'name = "t-svgp"\noptions = { tying = "untied" }'


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
        (("[0.1]", "[0.1, 0.3, 0.1]"), "'mine': a rate is there twice"),
        ((RATES, "reference = true"), "a reference has no place on the board: give e_rates and"),
        (("e_rates", "bases = { 50 = [35, 70] }\ne_rates"), "'t-svgp' has one basis"),
        ((LIKE_T_SVGP, 'name = "orth"'), "'orth' has two bases: give bases"),
        (
            (LIKE_T_SVGP, 'name = "orth"\nbases = { 50 = [35, 70] }'),
            "bases has no 100, the number of inducing points below 10000 rows",
        ),
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
    with pytest.raises(UserError, match="'q-SVGP natural' is on the board already"):
        added_entrant(SUITE, "q-SVGP natural")


def entrant_called(label: str) -> Entrant:
    return Entrant(label=label, name="t-svgp", e_rates=(0.1,), m_rates=(0.01,))


def never(cells: list[CellConfig], folder: Path) -> bool:
    raise AssertionError("nothing is to be measured")


AIRFOIL_AND_PIMA = [x for x in SUITE.problems if x.title in ("airfoil", "pima")]


def ratios(*rows: tuple[str, float, float, float]) -> Callable[..., pd.DataFrame]:
    """A measurement that finds these ratios, by problem, with their quartiles."""
    table = pd.DataFrame(rows, columns=["problem", "ratio", "low", "high"]).set_index("problem")
    return lambda suite, problems, *_: table.loc[[x.title for x in problems]]


def test_a_budget_is_as_long_as_the_reference_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entrant that takes twice as long has half as many iterations, on any machine."""
    monkeypatch.setattr(joining, "ratios", ratios(("airfoil", 2.0, 1.95, 2.05)))
    lines: list[str] = []
    args = (SUITE, AIRFOIL_AND_PIMA[:1], entrant_called("mine"), tmp_path / "mine.csv", never)
    budgets, ms = own_iterations(*args, lines.append)
    reference = ("airfoil", REFERENCE)
    assert budgets == {("airfoil", "mine"): two_digits(read_iterations()[reference] / 2)}
    assert ms == {("airfoil", "mine"): 2 * read_step_times()[reference]}
    assert lines == ["airfoil: an iteration takes 2.00 times as long (1.95 to 2.05), 1200 fit"]


def test_ratios_that_scatter_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ratios(("airfoil", 2.0, 1.5, 2.5), ("pima", 1.0, 0.95, 1.05))
    monkeypatch.setattr(joining, "ratios", found)
    lines: list[str] = []
    file = tmp_path / "mine.csv"
    own_iterations(SUITE, AIRFOIL_AND_PIMA, entrant_called("mine"), file, never, lines.append)
    assert lines[-1].startswith("warning: the times of airfoil are unsure")
    assert "pima" not in lines[-1]


def test_budgets_that_were_measured_stay_until_the_entrant_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed search has the budgets with which it began; other code or options have others."""
    file, entrant = tmp_path / "suite-1-entrants.csv", entrant_called("../../mine")
    found = ratios(("airfoil", 2.0, 2.0, 2.0), ("pima", 1.0, 1.0, 1.0))
    monkeypatch.setattr(joining, "ratios", found)
    first = own_iterations(SUITE, AIRFOIL_AND_PIMA, entrant, file, never)
    faster = ratios(("airfoil", 0.5, 0.5, 0.5), ("pima", 0.5, 0.5, 0.5))
    monkeypatch.setattr(joining, "ratios", faster)
    assert own_iterations(SUITE, AIRFOIL_AND_PIMA, entrant, file, never) == first
    other = entrant.model_copy(update={"options": {"tying": "untied"}})
    longer = own_iterations(SUITE, AIRFOIL_AND_PIMA, other, file, never).budgets
    assert all(longer[key] > count for key, count in first.budgets.items())
    monkeypatch.setattr(joining, "code_of", lambda group, name: "of-another-version")
    assert own_iterations(SUITE, AIRFOIL_AND_PIMA, entrant, file, never).budgets == longer
    assert len(pd.read_csv(file)) == 6


def test_an_entrant_whose_timed_runs_all_fail_has_no_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("svgpbench.checks.quick_check", lambda *_, **__: SimpleNamespace(ok=True))
    monkeypatch.setattr(joining, "own_iterations", lambda *_: joining.Measured({}, {}))
    assert exit_code(["leaderboard", "--add", "t-svgp", "--preset", "lite"]) == 2
    message = "error: t-svgp failed on every problem while it was timed; see above\n"
    assert capsys.readouterr().err.endswith(message)


def test_markdown_has_what_the_board_says_of_a_new_entrant_and_its_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = Outcomes.read()
    problems = ["pima", "airfoil"]
    fold = shipped.runs[shipped.runs["problem"].isin(problems) & (shipped.runs["fold"] == 0)]
    own = fold[fold["entrant"] == "t-SVGP"].assign(entrant="mine")
    both = Outcomes(pd.concat([fold, own]), shipped.trials)
    joined = JoinedEntrant("mine", {(x, "mine"): 1200 for x in problems}, both)
    monkeypatch.setattr(leaderboard, "_joined", lambda *_: joined)
    assert exit_code(["leaderboard", "--add", "mine", "--preset", "lite", "--markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("* mine has place ") and "signs only" in out
    assert "On a new problem" not in out  # on one fold nothing is said of other entrants
    assert out.index("| mine | iterations |") < out.index("| entrant | rank |")


def test_a_new_entrant_on_problems_without_a_vote_is_not_ranked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = Outcomes.read()
    runs = shipped.runs[shipped.runs["problem"] == "pima"]
    own = runs[runs["entrant"] == "t-SVGP"].assign(entrant="mine")
    level = pd.concat([runs, own]).assign(constant_nlpd=0.5, best_nlpd=0.5)
    joined = JoinedEntrant("mine", {("pima", "mine"): 1200}, Outcomes(level, shipped.trials))
    monkeypatch.setattr(leaderboard, "_joined", lambda *_: joined)
    assert exit_code(["leaderboard", "--add", "mine", "--problem", "pima"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "error: no entrant gains on pima: there is nothing to rank\n"


@pytest.mark.parametrize("label", ["01", "NA"])
def test_a_digest_and_a_label_that_look_like_numbers_are_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    monkeypatch.setattr(joining, "_made_of", lambda entrant: "12e4567890123456")
    monkeypatch.setattr(joining, "ratios", ratios(("airfoil", 2.0, 2.0, 2.0)))
    args = SUITE, AIRFOIL_AND_PIMA[:1], entrant_called(label), tmp_path / "x.csv", never
    first = own_iterations(*args)
    monkeypatch.setattr(joining, "ratios", never)
    assert own_iterations(*args) == first


def test_a_damaged_file_of_budgets_is_told(tmp_path: Path) -> None:
    file = tmp_path / "suite-1-entrants.csv"
    for text, message in (("", "is damaged"), ("problem,ms\npima,1\n", "has other columns than")):
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            own_iterations(SUITE, AIRFOIL_AND_PIMA, entrant_called("mine"), file, never)


def test_budgets_are_collected_with_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "ratios", ratios(("airfoil", 2.0, 2.0, 2.0)))
    entrants = [entrant_called(label) for label in ("mine", "yours")]
    for entrant in entrants:
        file = entrants_file(tmp_path / entrant.label / "deep", SUITE.experiment)
        file.parent.mkdir(parents=True)
        own_iterations(SUITE, AIRFOIL_AND_PIMA[:1], entrant, file, never)
    board = tmp_path / "board"
    board.mkdir()
    for _ in range(2):  # a second time changes nothing
        collect_entrants([tmp_path / "mine", tmp_path / "yours", board], board)
    file = entrants_file(board, SUITE.experiment)
    assert pd.read_csv(file)["entrant"].tolist() == ["mine", "yours"]
    monkeypatch.setattr(joining, "ratios", never)
    for entrant in entrants:
        own_iterations(SUITE, AIRFOIL_AND_PIMA[:1], entrant, file, never)


def test_an_iteration_is_timed_at_the_end_of_runs_that_ended_well(tmp_path: Path) -> None:
    traces = [([0, 10, 30], [0.0, 9.0, 11.0]), ([0, 20], [0.0, 1.0]), ([0, 20], [0.0, 1.0])]

    def run(cells: list[CellConfig], folder: Path) -> bool:
        for place, (iterations, seconds) in enumerate(traces):  # the last cell has no record
            identity = identify(cells[place])
            trace = {"iteration": iterations, "seconds": seconds}
            made = record(identity.config, 1.0, trace=trace)
            if place == 2:
                made = made.model_copy(update={"status": "diverged"})
            write_record(folder, made.model_copy(update={"cell_id": identity.cell_id}))
        return True

    turns = [(AIRFOIL_AND_PIMA[0], x) for x in SUITE.entrants[:4]]
    found = step_times._timed(SUITE, turns, 0, tmp_path, run)
    labels = [x.label for _, x in turns]
    assert found == {("airfoil", labels[0]): 100.0, ("airfoil", labels[1]): 50.0}


def test_a_ratio_is_of_neighbours_and_each_is_the_first_in_every_other_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that slows down by half in every round leaves the ratio as it is."""
    orders: list[list[str]] = []

    def timed(
        suite: Suite, turns: Any, round_number: int, folder: Path, run: object
    ) -> dict[tuple[str, str], float]:
        orders.append([f"{problem.title} {x.label}" for problem, x in turns])
        ms = {"A": 3.0, "B": 2.0}
        return {(p.title, x.label): ms[x.label] * 1.5**round_number for p, x in turns}

    monkeypatch.setattr(step_times, "_timed", timed)
    pair = entrant_called("A"), entrant_called("B")
    rounds: list[int] = []
    found = step_times.ratios(SUITE, AIRFOIL_AND_PIMA, *pair, never, rounds.append)
    assert rounds == [*range(1, step_times.ROUNDS_OF_A_PAIR + 1)]
    assert found.index.tolist() == ["airfoil", "pima"]
    np.testing.assert_allclose(found[["ratio", "low", "high"]], 1.5)
    assert orders[0] == ["airfoil B", "airfoil A", "pima B", "pima A"]
    assert orders[1] == ["airfoil A", "airfoil B", "pima A", "pima B"]


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
    assert found.runs.index.is_unique and found.trials.index.is_unique
    assert len(with_entrant(SUITE, *args).runs) == 10


def test_a_new_entrant_is_last_where_it_failed_while_it_was_timed(tmp_path: Path) -> None:
    """A method that fails on hard problems would otherwise be ranked on the easy ones alone."""
    problems = [x for x in SUITE.problems if x.title in ("airfoil", "pima")]
    shipped = Outcomes.read()
    found = with_entrant(SUITE, shipped, problems, entrant_called("mine"), {}, {}, tmp_path)
    board = Board(found, ["t-SVGP", "q-SVGP Adam", "mine"], ["airfoil", "pima"])
    assert board.ranks()["mine"].tolist() == [3.0, 3.0] and board.rows()[-1].failed_runs == 1.0
    pair = board.pair("mine", "t-SVGP")
    assert (pair.better, pair.level, pair.worse) == (0, 0, 2)
    rows = entrant_table(board, "mine", {}).rows
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("airfoil", None, "3 of 3"),
        ("pima", None, "3 of 3"),
    ]


def test_problems_without_a_number_of_iterations_have_no_outcomes() -> None:
    def find_record(task: SuiteRun) -> None:
        raise AssertionError("nothing can have run")

    assert list(finished(SUITE, {}, SUITE.problems, SUITE.entrants, find_record)) == []
