"""A claim about time to a quality reads the runs of a plan of `svgpbench learn`."""

from __future__ import annotations

from pathlib import Path

import pytest

from svgpbench.benchmarks.records import append
from svgpbench.benchmarks.time_to_target.plan import Contestant, Run, read_learning_plan
from svgpbench.benchmarks.time_to_target.records import Evaluation, TrainingRecord
from svgpbench.environment import OURS
from svgpbench.papers import load_paper
from svgpbench.papers.evidence.training import load_curves
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged, judge

NAME = "adam2021-fig4"
PLAN = read_learning_plan(Path(NAME))
((PROBLEM, RACE),) = PLAN.problems.items()
(RATES,) = RACE.grid


def trained(
    results: Path,
    library: str,
    method: str,
    slower: float,
    *,
    seeds: tuple[int, ...] = PLAN.seeds,
    died: int | None = None,
) -> None:
    """Record a search and runs whose bound rises alike, `slower` times as slowly as one look a second."""
    mode = PLAN.backends[0] if library == OURS else ""
    looks = [(at * slower, at, -5e4 + 1e3 * at, 2.0 - 0.1 * at) for at in range(1, 11)]
    for search, seed in ((True, 0), *((False, seed) for seed in seeds)):
        seconds = RACE.search_s if search else RACE.seconds
        contestant = Contestant(library, method)
        run = Run(PLAN.digest(PROBLEM), PROBLEM, contestant, search, mode, RATES, seed, seconds)
        seen = tuple(Evaluation(*look[:3], None if search else look[3]) for look in looks)
        facts = {"mode": mode, "looks": seen, "versions": {library: "2.9.2"}}
        status = "error" if seed == died and not search else "ok"
        append(results / "learning", TrainingRecord(run=run, status=status, **facts))


def all_trained(results: Path, died: int | None = None) -> Path:
    """Record the runs of every method; GPflow's died with one seed, if any."""
    (results / "learning").mkdir()
    trained(results, OURS, "t-svgp", 1.0)
    trained(results, OURS, "q-svgp", 1.05)
    trained(results, "gpflow", "natgrad", 2.0, died=died)
    trained(results, "gpflow", "natgrad retraced", 3.0)
    return results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return all_trained(tmp_path)


def judged(results: Path) -> Judged:
    """Return the claim on seconds to a quality, judged by the runs of a folder."""
    paper = load_paper("adam2021")
    (found,) = judge(paper, [x for x in paper.claims if x.id == "adam2021-28"], results)
    return found


def test_a_frame_has_the_looks_of_training_and_none_of_a_search(results: Path) -> None:
    frame = load_curves(results, NAME).frame
    assert len(frame) == 4 * len(PLAN.seeds) * 10
    ours = frame[frame["method"] == "t-svgp"]
    assert ours.iloc[0][["seconds", "elbo", "nlpd", "n_bound"]].tolist() == [1.0, -49e3, 1.9, 6e4]
    assert set(frame["cell_id"]) == {"learning/svgpbench.jsonl", "learning/gpflow.jsonl"}
    about = "mnist-150-steps, 3 seeds, tensorflow beside gpflow 2.9.2"
    assert load_curves(results, NAME).condition == about


def test_a_claim_on_seconds_is_decided_by_the_runs_of_its_plan(results: Path) -> None:
    found = judged(results)
    # both core parts against GPflow hold, both against q-SVGP fail
    assert (found.grade, found.kind) == (Grade.mixed, "speed")
    assert found.finding.count("2.00") == 4 and found.finding.count("1.05") == 4
    assert "GPflow takes 3.0 and 3.0 times as many" in found.finding
    libraries = "--library svgpbench --library gpflow"
    said = f"svgpbench learn --plan {NAME} {libraries} --results {results}/learning"
    assert found.commands == (said,)


def test_a_run_that_died_has_no_quality_to_reach(tmp_path: Path) -> None:
    found = judged(all_trained(tmp_path, died=PLAN.seeds[1]))
    assert len(load_curves(tmp_path, NAME).frame) == (4 * len(PLAN.seeds) - 1) * 10
    notes = [effect.note for part in found.parts for effect in part.judgement.effects]
    assert f"{len(PLAN.seeds) - 1} seeds where {len(PLAN.seeds)} are needed" in notes


def test_without_runs_a_claim_says_how_to_make_them(tmp_path: Path) -> None:
    (tmp_path / "learning").mkdir()
    nothing = judged(tmp_path)
    assert nothing.grade == Grade.not_run
    assert nothing.finding == f"no runs of plan {NAME} in {tmp_path}/learning"
    trained(tmp_path, OURS, "t-svgp", 1.0)
    assert judged(tmp_path).finding == (
        f"no times of gpflow natgrad in the runs of {NAME}; no times of q-svgp in the runs of {NAME}"
    )
