"""The suite's file and its command: each mistake is one line with the name that was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_suite import BUDGETS, small_suite, write_suite

from svgpbench.cli import suite_runs
from svgpbench.cli.application import exit_code
from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.methods import build_method
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import GRID, USUAL, load_suite, of_groups

SHIPPED = load_suite()


def test_the_shipped_suite_has_enough_of_everything() -> None:
    """And every name in it exists."""
    candidates = [x for x in SHIPPED.entrants if not x.reference]
    assert len(SHIPPED.problems) >= 24 and len(candidates) >= 9
    for entrant in SHIPPED.entrants:
        build_method(entrant.name, entrant.options)
        assert not entrant.bases or {x.inducing for x in SHIPPED.sizes} == set(entrant.bases)
    assert {len(x.grid) for x in candidates} == {GRID}
    assert sum(x.lite for x in SHIPPED.problems) == 8
    for problem in SHIPPED.problems:
        assert SHIPPED.size_of(problem).inducing <= problem.rows / 5
        assert problem.dimensions > 0


def test_a_small_suite_is_read(tmp_path: Path) -> None:
    suite = small_suite(tmp_path)
    assert [x.title for x in suite.problems] == ["thesis-sinusoid", "banana, probit"]
    assert [x.title for x in suite.entrants[0].grid] == ["0.5, 0.02", "1, 0.02"]
    assert suite.experiment == "suite-small"
    assert [suite.size_of(x).inducing for x in suite.problems] == [5, 6]
    taken = [[x.label for x in suite.entrants if suite.takes_part(x, p)] for p in suite.problems]
    assert taken == [["tied", "adam", "reference"], ["tied", "adam"]]


GRID_OF_13 = ("m_rates = [0.02, 0.1]", f"m_rates = {[0.01 * i for i in range(1, 14)]}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("batch_size = 32", "batch_sise = 32"), ["protocol", "batch_sise", "'batch_size'"]),
        (('label = "tied"', 'label = "tied"\nrate = 1'), ["entrants", "rate"]),
        (("joint = true", "joined = true"), ["entrants", "joined", "'joint'"]),
        (('why = "labels, minibatches"', "lit = true"), ["[[problems]] no. 2", "'lit'", "'lite'"]),
        (("folds = 2", "folds = 1"), ["[protocol] folds", "2"]),
        (("held_out = 0.2", "held_out = 1.0"), ["[protocol] held_out", "less than 1"]),
        (('label = "adam"', 'label = "tied"'), ["entrant 'tied' is there 2 times"]),
        (
            ('name = "banana, probit"\ndata = "banana"', 'data = "thesis-sinusoid"'),
            ["problem 'thesis-sinusoid' is there 2 times"],
        ),
        (("rows_below = 200\n", "rows_below = 3000\n"), ["[3000, 2000]; sort them"]),
        (GRID_OF_13, ["'adam'", "13 pairs of rates", "at most 12"]),
        (("e_rates = [0.02]\nm_rates = [0.02, 0.1]\n", ""), ["'adam'", "give e_rates and m_rates"]),
        (
            ("reference = true", "reference = true\ne_rates = [0.1]\nm_rates = [0.1]"),
            ["'reference'", "a reference has no rates"],
        ),
        (("e_rates = [0.02]", "e_rates = [-0.02]"), ["e_rates"]),
        (("[0.5, 1.0]", "[0.5, 0.50]"), ["'tied'", "a rate is there twice"]),
        (('["gaussian"]', '["gausian"]'), ["likelihoods", "'gausian'; did you mean 'gaussian'"]),
        (("folds = 2", "folds = 2\nrun_folds = 3"), ["protocol: run_folds is 3, of 2 folds"]),
        (
            ('name = "t-svgp"', 'name = "orth"\nbases = { 6 = [3, 4] }'),
            ["'tied'", "bases has no 5, the number of inducing points below 200 rows"],
        ),
        (('version = "small"', "version = small"), ["line 2"]),
    ],
)
def test_a_mistake_in_the_file_is_named_with_file_and_key(
    tmp_path: Path, change: tuple[str, str], words: list[str]
) -> None:
    path = write_suite(tmp_path, change)
    with pytest.raises(UserError) as error:
        load_suite(path)
    message = str(error.value)
    assert "\n" not in message
    for word in ["small.toml", *words]:
        assert word in message, message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read the suite .*nowhere\.toml: No such file"):
        load_suite(tmp_path / "nowhere.toml")


def test_a_problem_beyond_all_sizes_is_named(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path, ("rows_below = 2000", "rows_below = 201")))
    with pytest.raises(UserError, match=r"problem 'banana, probit': \d+ rows, beyond all"):
        suite.size_of(suite.problems[1])


def test_a_data_set_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path, ('data = "banana"', 'data = "bannana"')))
    with pytest.raises(UserError, match="'bannana'; did you mean 'banana'"):
        suite.size_of(suite.problems[1])


def test_groups_are_by_likelihood_rows_and_inputs() -> None:
    every = SHIPPED.problems
    soft = of_groups(every, ["softmax"])
    assert soft and {x.likelihood.name for x in soft} == {"softmax"}
    few, many = of_groups(every, ["rows<2000"]), of_groups(every, ["rows>=2000"])
    assert sorted(x.title for x in [*few, *many]) == sorted(x.title for x in every)
    assert max(x.rows for x in few) < 2000 <= min(x.rows for x in many)
    both = of_groups(every, ["gaussian", "inputs >= 30"])
    assert both == [x for x in every if x.likelihood.name == "gaussian" and x.dimensions >= 30]
    assert of_groups(every, []) == list(every)
    for group in USUAL:
        assert of_groups(every, [group])
    exactly = next(x for x in every if x.title == "airfoil").rows
    assert "airfoil" in {x.title for x in of_groups(every, [f"rows>={exactly}"])}
    assert "airfoil" not in {x.title for x in of_groups(every, [f"rows<{exactly}"])}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--problem", "kin8nn"), "unknown problem of the suite 'kin8nn'; did you mean 'kin8nm'?"),
        (("--entrant", "t-SVPG"), "unknown entrant of the suite 't-SVPG'; did you mean 't-SVGP'?"),
        (("--group", "sofmax"), "unknown group of problems 'sofmax'; did you mean 'softmax'?"),
        (("--group", "rows<abc"), "unknown group of problems 'rows<abc' (known: "),
        (("--group", "rows<3"), "no problem of the suite is in rows<3"),
        (("--group", "softmax", "--group", "gaussian"), "softmax and gaussian"),
        (("--problem", "kin8nm", "--group", "softmax"), "unknown group of problems 'softmax'"),
        (("--preset", "light"), "'light' is not one of 'lite', 'full'"),
        (("--suite", "nowhere.toml"), "cannot read the suite nowhere.toml: No such file"),
        (("--figure", "board.xyz"), "board.xyz"),
        (("--json", "--markdown"), "--json and --markdown exclude each other"),
        (("--run", "--jobs", "2", "--dask", "tcp://x:1"), "--jobs"),
    ],
)
@pytest.mark.parametrize("first", [(), ("--run",)])
def test_a_mistake_on_the_command_line_is_one_line_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    first: tuple[str, ...],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    code = exit_code(["leaderboard", *first, *arguments])
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.startswith("error: ") and printed.err.count("\n") == 1
    assert words in printed.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--run", "--step-times"])
def test_without_the_suite_s_backend_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path, ('backend = "numpy"', 'backend = "nunpy:fast"'))
    pd.DataFrame(BUDGETS, index=["n"]).T["n"].unstack().to_csv("small-iterations.csv")
    assert exit_code(["leaderboard", "--suite", "small.toml", option]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: unknown backend 'nunpy'; did you mean 'numpy'?")
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert {x.name for x in tmp_path.iterdir()} == {"small.toml", "small-iterations.csv"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--problem", "mnist"), "the board has none of these problems yet (it has: airfoil; "),
        (("--add", "t-svgp", "--problem", "mnist"), "the board has none of these problems yet"),
        (("--entrant", "SGPR"), "a reference has no rank: without --entrant it stands below"),
        (("--add", "small.toml"), "tiny takes part in none of these problems"),
    ],
)
def test_a_part_of_this_version_s_board_without_an_entrant_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    entrant = 'label = "tiny"\nname = "t-svgp"\nrows_below = 5\ne_rates = [1.0]\nm_rates = [0.1]\n'
    (tmp_path / "small.toml").write_text(entrant)
    assert exit_code(["leaderboard", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert words in printed.err and "None" not in printed.err


def test_problems_on_which_nobody_gains_have_no_board(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = Outcomes.read()
    runs = shipped.runs.assign(best_nlpd=shipped.runs["constant_nlpd"])
    monkeypatch.setattr(Outcomes, "read", lambda: Outcomes(runs, shipped.trials))
    assert exit_code(["leaderboard", "--problem", "pima"]) == 2
    message = "error: no entrant gains on pima: there is nothing to rank\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("folder", ["empty", "nowhere"])
def test_a_folder_without_a_finished_problem_says_how_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write_suite(tmp_path)
    pd.DataFrame(BUDGETS, index=["n"]).T["n"].unstack().to_csv("small-iterations.csv")
    code = exit_code(["leaderboard", "--suite", "small.toml", "--results", folder])
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert printed.err.startswith(
        f"error: no entrant of the suite has finished a problem in {folder}"
    )


def test_without_iterations_it_says_to_measure_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path)
    code = exit_code(["leaderboard", "--suite", "small.toml", "--run"])
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert "yet; --step-times measures it" in printed.err
    assert [x.name for x in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize("option", ["--run", "--step-times"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("small-iterations.csv", ""),
        ("small-iterations.csv", "problem,tied\nthesis-sinusoid,many\n"),
        ("small-step-times.csv", "problem,ms\nthesis-sinusoid,1.5\n"),
        ("small-step-times.csv", "problem,entrant,ms\nthesis-sinusoid,tied,fast\n"),
    ],
)
def test_a_damaged_table_beside_the_suite_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, name: str, text: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suite_runs, "_run_cells", lambda *_: False)
    write_suite(tmp_path)
    pd.DataFrame(BUDGETS, index=["n"]).T["n"].unstack().to_csv("small-iterations.csv")
    (tmp_path / name).write_text(text)
    assert exit_code(["leaderboard", "--suite", "small.toml", option]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {name} is damaged: ") and error.count("\n") == 1


def test_problems_without_iterations_are_left_out_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path)
    budgets = pd.DataFrame(BUDGETS, index=["n"]).T["n"].unstack()
    budgets.drop("thesis-sinusoid").to_csv("small-iterations.csv")
    ran: list[str] = []

    def run_cells(cells: list[CellConfig], *_: object) -> bool:
        ran.extend(x.data.name for x in cells)
        return False

    monkeypatch.setattr(suite_runs, "_run_cells", run_cells)
    assert exit_code(["leaderboard", "--suite", "small.toml", "--run"]) == 130
    assert set(ran) == {"banana"}
    told = " ".join(capsys.readouterr().err.split())
    assert "which --step-times measures: thesis-sinusoid" in told
