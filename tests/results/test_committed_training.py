"""The committed runs of training to quality: of the shipped plans, each contestant on every seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from committed_records import RESULTS

from svgpbench.benchmarks.time_to_target.plan import SHIPPED, read_learning_plan, shipped_plans
from svgpbench.benchmarks.time_to_target.records import read_training

PLANS = [SHIPPED, *map(Path, shipped_plans())]
CONTESTANTS = {"plan": 26, "adam2021-fig4": 4, "salimbeni2018-fig2c": 4}


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_committed_runs_are_of_a_shipped_plan_and_whole(path: Path) -> None:
    plan = read_learning_plan(path)
    digests = {plan.digest(problem) for problem in plan.problems}
    found = {
        run: record
        for run, record in read_training(RESULTS / "learning").items()
        if run.plan in digests
    }
    assert {run.plan for run in found} == digests
    trained = Counter((run.problem, run.contestant) for run in found if not run.search)
    searched = {(x.run.problem, x.run.contestant) for x in found.values() if x.status != "skipped"}
    assert trained == dict.fromkeys(searched, len(plan.seeds))
    assert len(trained) == CONTESTANTS[path.stem]


def test_no_committed_run_is_of_a_plan_that_is_not_shipped() -> None:
    plans = [read_learning_plan(path) for path in PLANS]
    digests = {plan.digest(problem) for plan in plans for problem in plan.problems}
    assert {run.plan for run in read_training(RESULTS / "learning")} == digests
