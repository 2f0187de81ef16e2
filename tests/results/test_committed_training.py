"""The committed runs of training to quality: of the shipped plan, each contestant on every seed."""

from __future__ import annotations

from collections import Counter

from committed_records import RESULTS

from svgpbench.benchmarks.time_to_target import records
from svgpbench.benchmarks.time_to_target.plan import read_plan
from svgpbench.benchmarks.time_to_target.records import REFUSED


def test_committed_runs_are_of_the_shipped_plan_and_whole() -> None:
    plan = read_plan()
    found = records.read(RESULTS / "learning")
    assert {run.plan for run in found} == {plan.digest(problem) for problem in plan.problems}
    trained = Counter((run.problem, run.contestant) for run in found if not run.search)
    searched = {(x.run.problem, x.run.contestant) for x in found.values() if x.end != REFUSED}
    assert trained == dict.fromkeys(searched, len(plan.seeds))
    assert len(trained) == 12
