"""Iterations that the dual M-step saves, on planted runs with known answers."""

from __future__ import annotations

from racing import run_of, tiny_plan

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns
from svgpbench.benchmarks.time_to_target.plan import Contestant, LearningPlan
from svgpbench.benchmarks.time_to_target.records import Evaluation, TrainingRecord
from svgpbench.benchmarks.time_to_target.tables import saved_table


def trained(
    plan: LearningPlan, library: str, method: str, *reached: int | None, end: int = 100
) -> ContestantRuns:
    """Runs of a seed each, with an NLPD of 1.0 from the iteration `reached` on, and 2.0 before."""
    who = Contestant(library, method)
    runs = []
    for seed, iterations in enumerate(reached):
        looks = [Evaluation(1.0, 1, -1.0, 2.0)]
        looks += [Evaluation(2.0, iterations, -1.0, 1.0)] if iterations else []
        looks += [Evaluation(3.0, end, -1.0, 1.0 if iterations else 2.0)]
        run = run_of(plan, who, seed=seed)
        runs.append(TrainingRecord(run=run, status="ok", looks=tuple(looks)))
    return ContestantRuns(who, (), None, tuple(runs))


def texts(*entries: ContestantRuns) -> list[list[str]]:
    return saved_table(tiny_plan(), {"tiny": entries}).texts


def test_the_ratio_is_paired_by_seed() -> None:
    plan = tiny_plan()
    dual, other = (
        trained(plan, "svgpbench", "t-svgp", 10, 20, 40),
        trained(plan, "svgpbench", "q-svgp", 30, 30, 80),
    )
    # by seed 3, 1.5 and 2; of the medians it would be 1.5
    assert texts(dual, other) == [
        ["tiny", "svgpbench", "1.2", "20", "30", "2.00 (1.50–3.00)"],
    ]


def test_a_run_that_misses_the_target_makes_the_ratio_a_bound() -> None:
    plan = tiny_plan()
    dual = trained(plan, "gpjax", "dual", 10, 20)
    other = trained(plan, "gpjax", "whitened", None, None)
    assert texts(dual, other) == [
        ["tiny", "gpjax", "1.2", "15", "not reached", "> 7.50 (5.00–10.00)"],
    ]


def test_there_is_no_row_without_both_methods_or_if_the_dual_one_misses() -> None:
    plan = tiny_plan()
    dual = trained(plan, "svgpbench", "t-svgp", 10)
    assert not texts(dual)
    assert not texts(dual, trained(plan, "gpjax", "whitened", 10))
    missed = trained(plan, "svgpbench", "t-svgp", None)
    assert not texts(missed, trained(plan, "svgpbench", "q-svgp", 10))
