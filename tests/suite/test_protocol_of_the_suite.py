"""The protocol with records in memory: its tasks, the rates that go on, and resumption anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hand_records import record
from hypothesis import given, settings
from hypothesis import strategies as st
from small_suite import BUDGETS, small_suite

from svgpbench.cli.progress import cell_title
from svgpbench.config import RatePair
from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify
from svgpbench.results.records import Record, write_record
from svgpbench.suite.board import Board
from svgpbench.suite.cells import SuiteRun, cell_of, read_iterations, task
from svgpbench.suite.joining import with_entrant
from svgpbench.suite.outcomes import Outcomes, finished, outcomes, read_outcomes
from svgpbench.suite.protocol import RecordFinder, run_protocol, stages
from svgpbench.suite.schema import Entrant, Suite, SuiteProblem, load_suite

Key = tuple[str, str, str, Any, int]
SUITE = load_suite()
PROBLEM = next(x for x in SUITE.problems if x.title == "airfoil")
BY_LABEL = {x.label: x for x in SUITE.entrants}
RATES = {"e_rates": (0.03, 0.1, 0.3, 1.0), "m_rates": (0.003, 0.01, 0.03)}
TIED, ADAM = (BY_LABEL[x].model_copy(update=RATES) for x in ("t-SVGP", "q-SVGP Adam"))
SGPR = BY_LABEL["SGPR"]
ITERATIONS = {(p.title, e.label): 900 for p in SUITE.problems for e in SUITE.entrants}
MS = dict.fromkeys(ITERATIONS, 2.0)


def key(x: SuiteRun) -> Key:
    return x.problem.title, x.entrant.label, x.stage, x.rates, x.fold


def usual_score(x: SuiteRun) -> float | None:
    """NLPD of a task: 1 + 100 |e − 0.1| + |m − 0.01|, best in the middle of the grid; a third of θ's fail."""
    if x.rates is None:
        return 0.5
    if x.stage != "run" and x.rates.m == 0.03 and x.rates.e > 0.3:
        return None
    return 1.0 + 100 * abs(x.rates.e - 0.1) + abs(x.rates.m - 0.01) + 0.01 * x.fold


def test_trials_are_told_apart_in_progress_by_their_rates() -> None:
    (_, trials), *_ = stages(SUITE, ITERATIONS, PROBLEM, TIED, lambda task: None)
    titles = [cell_title(x.cell) for x in trials]
    assert titles[0] == "airfoil, fold 0, t-SVGP, jax, rates 0.03, 0.003"
    assert len(set(titles)) == 12
    run = task(SUITE, ITERATIONS, PROBLEM, TIED, "run", RatePair(0.1, 0.01))
    assert cell_title(run.cell) == "airfoil, fold 0, t-SVGP, jax"


class Memory:
    """Records in memory; `execute` stops when it has run as many tasks as it may."""

    def __init__(self, score: Callable[[SuiteRun], float | None] = usual_score) -> None:
        self.score, self.records, self.executed = score, dict[Key, Record](), list[SuiteRun]()
        self.batches: list[list[Key]] = []
        self.may_run = 10**9

    def find_record(self, x: SuiteRun) -> Record | None:
        return self.records.get(key(x))

    def execute(self, tasks: list[SuiteRun]) -> bool:
        self.batches.append([key(x) for x in tasks])
        for x in tasks:
            if not self.may_run:
                return False
            self.may_run -= 1
            self.executed.append(x)
            self.records[key(x)] = self.made(x)
        return True

    def made(self, x: SuiteRun) -> Record:
        nlpd = self.score(x)
        if nlpd is None:
            return record(x.cell, status="diverged", data={"constant": {"nlpd": 3.0, "elbo": -9.0}})
        trace = {
            "iteration": [1, 90, 900],
            "nlpd": [3.0, nlpd + 0.25, nlpd],
            "elbo": [-300.0, -100.0, -109.0],
            "seconds": [0.0, 0.0, 0.0],
        }
        constant = {"nlpd": 3.0, "elbo": -400.0}
        return record(x.cell, -109.0, trace=trace, data={"constant": constant}, nlpd=nlpd, rmse=0.5)

    def run(
        self, problems: list[SuiteProblem], entrants: list[Entrant], *, at_once: int = 1
    ) -> bool:
        return run_protocol(
            SUITE, ITERATIONS, problems, entrants, self.find_record, self.execute, at_once=at_once
        )

    def outcomes(self, problems: list[SuiteProblem], entrants: list[Entrant]) -> Outcomes:
        done = finished(SUITE, ITERATIONS, problems, entrants, self.find_record)
        return outcomes(SUITE, done, MS)


def test_twelve_trials_then_four_then_five_runs() -> None:
    memory = Memory()
    assert memory.run([PROBLEM], [TIED])
    stages = [x.stage for x in memory.executed]
    assert stages == ["trial 1"] * 12 + ["trial 2"] * 4 + ["run"] * 5
    assert [len(x) for x in memory.batches] == [12, 4, 5]
    grid = [(e, m) for e in (0.03, 0.1, 0.3, 1.0) for m in (0.003, 0.01, 0.03)]
    assert [x.rates for x in memory.executed[:12]] == grid
    # the four nearest to (0.1, 0.01): those of e = 0.1 by m, then (0.03, 0.01), the best first
    four = [(0.1, 0.01), (0.1, 0.003), (0.1, 0.03), (0.03, 0.01)]
    assert [x.rates for x in memory.executed[12:16]] == four
    assert {x.rates for x in memory.executed[16:]} == {(0.1, 0.01)}
    assert [x.fold for x in memory.executed] == [0] * 16 + [0, 1, 2, 3, 4]
    assert memory.run([PROBLEM], [TIED]) and len(memory.executed) == 21  # nothing is left


def test_the_second_round_decides_between_the_four() -> None:
    def score(x: SuiteRun) -> float | None:
        reverse = x.stage == "trial 2"
        return (usual_score(x) or 9.0) * (-1 if reverse else 1)

    memory = Memory(score)
    memory.run([PROBLEM], [TIED])
    assert {x.rates for x in memory.executed if x.stage == "run"} == {(0.03, 0.01)}


def test_failed_trials_are_results_and_the_others_go_on() -> None:
    def score(x: SuiteRun) -> float | None:
        return 1.0 if x.rates and x.rates.e == 1.0 and x.rates.m < 0.02 else None

    memory = Memory(score)
    assert memory.run([PROBLEM], [TIED])
    assert Counter(x.stage for x in memory.executed) == {"trial 1": 12, "trial 2": 2, "run": 5}
    assert {x.rates for x in memory.executed if x.stage == "run"} == {(1.0, 0.003)}  # of equal ones
    trials = memory.outcomes([PROBLEM], [TIED]).trials
    assert (trials["status"] == "diverged").sum() == 10 and trials["nlpd"].isna().sum() == 10


@pytest.mark.parametrize("last", ["trial 1", "trial 2"])
def test_where_every_trial_failed_there_is_a_row_for_every_fold(last: str) -> None:
    memory = Memory(lambda x: None if x.stage == last else usual_score(x))
    assert memory.run([PROBLEM], [TIED])
    assert [x.stage for x in memory.executed][-1] == last
    assert len(memory.executed) == {"trial 1": 12, "trial 2": 16}[last]
    runs, trials = memory.outcomes([PROBLEM], [TIED])
    assert runs["status"].to_list() == ["no trial finished"] * 5
    assert runs["fold"].to_list() == [0, 1, 2, 3, 4]
    assert len(trials) == len(memory.executed)


def test_an_entrant_of_which_every_trial_failed_takes_no_vote_from_the_others() -> None:
    memory = Memory(lambda x: None if x.entrant == ADAM else usual_score(x))
    assert memory.run([PROBLEM], [TIED, ADAM])
    found = memory.outcomes([PROBLEM], [TIED, ADAM])
    failed = found.runs["entrant"] == ADAM.label
    assert set(found.runs.loc[failed, "status"]) == {"no trial finished"}
    best = found.runs.set_index("fold")["best_nlpd"]
    assert best[failed.to_numpy()].to_dict() == best[~failed.to_numpy()].to_dict()
    assert Board(found, [TIED.label, ADAM.label]).problems == [PROBLEM.title]


def test_without_a_finished_entrant_or_with_references_alone_the_tables_have_their_columns() -> (
    None
):
    whole = Memory()
    whole.run([PROBLEM], [TIED])
    columns = [list(x.columns) for x in whole.outcomes([PROBLEM], [TIED])]
    empty, references = Memory(), Memory()
    references.run([PROBLEM], [SGPR])
    failed = Memory(lambda x: None)
    failed.run([PROBLEM], [TIED])
    for memory, entrant in ((empty, TIED), (references, SGPR), (failed, TIED)):
        found = memory.outcomes([PROBLEM], [entrant])
        assert [list(x.columns) for x in found] == columns
        board = Board(found, ["t-SVGP"])
        assert (board.entrants, board.rows(), board.default_rates()) == ([], [], {})


def test_a_reference_has_no_search_and_takes_part_where_it_may() -> None:
    memory = Memory()
    magic = next(x for x in SUITE.problems if x.title == "magic")
    large = next(x for x in SUITE.problems if x.title == "kin40k")
    assert memory.run([PROBLEM, magic, large], [SGPR])
    assert [(x.problem.title, x.stage, x.rates, x.fold) for x in memory.executed] == [
        ("airfoil", "run", None, fold) for fold in range(5)
    ]
    runs = memory.outcomes([PROBLEM, magic, large], [SGPR]).runs
    assert len(runs) == 5 and runs["e_rate"].isna().all()


def test_problems_come_one_by_one_or_together() -> None:
    two = [PROBLEM, next(x for x in SUITE.problems if x.title == "pima")]
    one_by_one, together = Memory(), Memory()
    one_by_one.run(two, [TIED, ADAM])
    together.run(two, [TIED, ADAM], at_once=2)
    assert [len(x) for x in one_by_one.batches] == [24, 8, 10, 24, 8, 10]
    assert [len(x) for x in together.batches] == [48, 16, 20]
    assert {*map(key, one_by_one.executed)} == {*map(key, together.executed)}
    first = [x.problem.title for x in one_by_one.executed]
    assert first == ["airfoil"] * 42 + ["pima"] * 42


def assert_same(one: Outcomes, other: Outcomes) -> None:
    for a, b in zip(one, other, strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True)


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(0, 25), max_size=8))
def test_interrupted_anywhere_it_runs_the_same_tasks_once(stops: list[int]) -> None:
    problems, entrants = [PROBLEM], [TIED, ADAM, SGPR]
    whole, resumed = Memory(), Memory()
    assert whole.run(problems, entrants)
    for count in stops:
        resumed.may_run = count
        left = 47 - len(resumed.executed)
        assert resumed.run(problems, entrants) == (left <= count)
    resumed.may_run = 10**9
    assert resumed.run(problems, entrants)
    counts = Counter(map(key, resumed.executed))
    assert counts == Counter(map(key, whole.executed)) and set(counts.values()) == {1}
    assert_same(resumed.outcomes(problems, entrants), whole.outcomes(problems, entrants))


def test_what_is_not_finished_is_not_on_the_board() -> None:
    memory = Memory()
    memory.may_run = 12 + 4 + 4
    assert not memory.run([PROBLEM], [TIED])
    runs, trials = memory.outcomes([PROBLEM], [TIED])
    assert len(runs) == len(trials) == 0
    *searches, _ = stages(SUITE, ITERATIONS, PROBLEM, TIED, memory.find_record)
    found = [(task, memory.find_record(task)) for _, trials in searches for task in trials]
    assert [x.stage for x, _ in found] == ["trial 1"] * 12 + ["trial 2"] * 4


def test_outcomes_by_hand() -> None:
    """Constant 3, best known 1 on fold 0, a tenth of 900 iterations at 90, 2 ms each."""
    memory = Memory()
    memory.run([PROBLEM], [TIED, ADAM])
    runs, trials = memory.outcomes([PROBLEM], [TIED, ADAM])
    row = runs[(runs["entrant"] == "t-SVGP") & (runs["fold"] == 0)].iloc[0].to_dict()
    assert (row["e_rate"], row["m_rate"], row["status"]) == (0.1, 0.01, "ok")
    assert (row["nlpd"], row["nlpd_tenth"]) == (1.0, 1.25)
    assert (row["elbo"], row["elbo_tenth"]) == (-109.0, -100.0)
    assert (row["constant_nlpd"], row["constant_elbo"], row["best_nlpd"]) == (3.0, -400.0, 1.0)
    assert row["drop"] == pytest.approx(9.0 / 90)
    assert (row["rows"], row["ms"], row["rmse"]) == (90, 2.0, 0.5)
    # 1.2 between 1.25 at 0.18 s and 1 at 1.8 s; 1.02
    assert row["seconds_90"] == pytest.approx(0.18 * 10 ** (0.05 / 0.25), rel=5e-6)
    assert row["seconds_99"] == pytest.approx(0.18 * 10 ** (0.23 / 0.25), rel=5e-6)
    first = trials[trials["entrant"] == "t-SVGP"]
    assert first["stage"].to_list() == [1] * 12 + [2] * 4
    pairs = first[["e_rate", "m_rate"]].iloc[:12].to_numpy().tolist()
    assert pairs == [[e, m] for e in RATES["e_rates"] for m in RATES["m_rates"]]
    assert first["nlpd"].iloc[0] == pytest.approx(1.0 + 7.0 + 0.007)


def test_the_best_known_is_of_all_entrants_and_of_the_same_fold() -> None:
    """References included; runs that failed are not."""
    scores = {"SGPR": 0.5, "t-SVGP": 0.75, "q-SVGP Adam": 1.5}

    def score(x: SuiteRun) -> float | None:
        failed = x.entrant is SGPR and x.fold == 2
        return None if failed else scores[x.entrant.label] + x.fold

    memory, entrants = Memory(score), [SGPR, TIED, ADAM]
    memory.run([PROBLEM], entrants)
    runs = memory.outcomes([PROBLEM], entrants).runs
    best = runs.groupby("fold")["best_nlpd"].agg(["min", "max"])
    assert best["min"].to_list() == best["max"].to_list() == [0.5, 1.5, 2.75, 3.5, 4.5]


def test_a_new_entrant_is_measured_against_the_best_known_of_the_version() -> None:
    memory = Memory()
    memory.run([PROBLEM], [TIED])
    done = list(finished(SUITE, ITERATIONS, [PROBLEM], [TIED], memory.find_record))
    shipped = outcomes(SUITE, done, MS).runs.assign(best_nlpd=0.25)
    own = outcomes(SUITE, done, MS, best=shipped).runs
    assert set(own["best_nlpd"]) == {0.25}


def test_outcomes_are_read_as_they_were_written(tmp_path: Any) -> None:
    memory = Memory(lambda x: None if x.fold == 3 else usual_score(x))
    memory.run([PROBLEM], [TIED])
    made = memory.outcomes([PROBLEM], [TIED])
    made.write(tmp_path)
    read = Outcomes.read(tmp_path)
    for a, b in zip(made, read, strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True, check_dtype=False)
    assert np.isfinite(read.runs["seconds_90"].iloc[0]) and read.runs["nlpd"].isna().sum() == 1


def test_what_two_machines_do_differently_decides_nothing() -> None:
    """Six digits of a score count: the last ones of a run are rounding errors."""
    noise = {"t-SVGP": 1e-9, "q-SVGP Adam": 0.0}

    def score(x: SuiteRun) -> float:
        return 1.25 + 0.001 * x.fold + noise[x.entrant.label]

    memory = Memory(score)
    memory.run([PROBLEM], [TIED, ADAM])
    runs = memory.outcomes([PROBLEM], [TIED, ADAM]).runs
    scores = runs.pivot(index="fold", columns="entrant", values="nlpd")
    assert scores["t-SVGP"].to_list() == scores["q-SVGP Adam"].to_list()


def test_records_that_other_code_of_a_plugin_made_run_again_once(tmp_path: Any) -> None:
    """A method that was changed keeps its id, and often its number of iterations."""
    x = task(SUITE, ITERATIONS, PROBLEM, TIED, "trial 1", RatePair(0.1, 0.01))
    identity = identify(x.cell)
    kernel = f"kernel {x.cell.kernel.name}"
    for code, counts in (({kernel: "svgpbench:1"}, True), ({kernel: "stranger:1"}, False)):
        made = record(identity.config, 1.0, versions={}, nlpd=1.0)
        assert made.environment
        where = made.environment.model_copy(update={"code": code})
        write_record(
            tmp_path,
            made.model_copy(update={"cell_id": identity.cell_id, "environment": where}),
        )
        find_record = RecordFinder(tmp_path)
        assert (find_record(x) is not None) is counts
        find_record.try_all([x])
        assert find_record(x) is not None
        assert RecordFinder(tmp_path, any_status=True)(x) is not None


def test_a_run_that_failed_for_its_machine_counts_on_a_board(tmp_path: Any) -> None:
    """Of the suite's entrants and of a new one; its problem would be missing for ever."""
    entrant = BY_LABEL["t-SVGP"]
    new = entrant.model_copy(update={"label": "mine"})
    budgets = read_iterations()
    own = {(PROBLEM.title, "mine"): 900}
    for one, counts in ((entrant, budgets), (new, own)):
        memory = Memory()
        arguments = (SUITE, counts, [PROBLEM], [one], memory.find_record, memory.execute)
        assert run_protocol(*arguments, at_once=1)
        for x in memory.executed:
            made = memory.records[key(x)]
            if x.stage == "run" and x.fold == 4:
                made = record(x.cell, status="oom", data=made.data)
            identity = identify(x.cell)
            own_id = {"cell_id": identity.cell_id, "config": identity.config}
            write_record(tmp_path, made.model_copy(update=own_id))
    statuses = ["ok"] * 4 + ["oom"]
    shipped = read_outcomes(SUITE, [PROBLEM], [entrant], tmp_path)
    assert shipped.runs["status"].to_list() == statuses
    together = with_entrant(SUITE, shipped, [PROBLEM], new, own, dict.fromkeys(own, 2.0), tmp_path)
    runs = together.runs[together.runs["entrant"] == "mine"]
    assert runs["status"].to_list() == statuses


def test_cells_of_trials_and_runs() -> None:
    first = task(SUITE, ITERATIONS, PROBLEM, TIED, "trial 1", RatePair(0.1, 0.01)).cell
    second = task(SUITE, ITERATIONS, PROBLEM, TIED, "trial 2", RatePair(0.1, 0.01)).cell
    run = task(SUITE, ITERATIONS, PROBLEM, TIED, "run", RatePair(0.1, 0.01), 3).cell
    assert [x.training.em_iterations for x in (first, second, run)] == [100, 300, 900]
    assert [x.split.held_out for x in (first, second, run)] == [0.1, 0.1, None]
    assert [(x.split.fold, x.seed, x.split.seed) for x in (first, run)] == [(0, 0, 0), (3, 3, 0)]
    assert [x.split.folds for x in (first, run)] == [5, 5]
    plans = [x.training.evaluation for x in (first, run)]
    assert [x and (x.count, x.train_rows, x.test_rows) for x in plans] == [
        (10, 5000, 2000),
        (40, 5000, 2000),
    ]
    assert (run.training.e_rate, run.training.m_rate) == (0.1, 0.01)
    assert run.training.cool_down == first.training.cool_down == 1 / 3
    assert (run.training.batch_size, run.inducing.count, run.inducing.gamma) == (256, 50, None)
    assert (run.experiment, run.method.label, run.backend.name) == ("suite-1", "t-SVGP", "jax")


def test_cells_of_two_bases_small_tables_joint_steps_and_references() -> None:
    boston = next(x for x in SUITE.problems if x.title == "boston:no-rad")
    orth = task(SUITE, ITERATIONS, boston, BY_LABEL["ORTH Adam"], "run", RatePair(0.1, 0.01)).cell
    assert (orth.inducing.count, orth.inducing.gamma) == (39, 78)
    assert orth.training.joint and orth.training.batch_size is None  # below 1,000 rows
    reference = task(SUITE, ITERATIONS, boston, SGPR, "run", None, 1).cell
    assert (reference.training.optimiser, reference.training.batch_size) == ("l-bfgs", None)
    assert reference.training.cool_down is None
    airfoil = task(SUITE, ITERATIONS, PROBLEM, SGPR, "run", None).cell
    assert airfoil.training.batch_size is None  # though the table has 1,503 rows


def test_every_entrant_gets_as_many_trials_and_no_cell_is_there_twice() -> None:
    assert {len(x.grid) for x in SUITE.entrants if not x.reference} == {12}
    memory = Memory()
    memory.run([PROBLEM], list(SUITE.entrants))
    cells = [x.cell.model_dump_json() for x in memory.executed]
    assert len(set(cells)) == len(cells) == 12 * 21 + 5


def test_without_a_budget_the_message_says_what_to_do(tmp_path: Any) -> None:
    suite: Suite = small_suite(tmp_path)
    problem, entrant = suite.problems[0], suite.entrants[0]
    with pytest.raises(
        UserError, match=r"'tied' has no number of iterations on .*'thesis-sinusoid'"
    ):
        cell_of(suite, problem, entrant, "run", RatePair(1.0, 1.0), 0, {})
    few = task(suite, BUDGETS | {("thesis-sinusoid", "tied"): 1}, problem, entrant, "trial 1", None)
    assert few.cell.training.em_iterations == 1
