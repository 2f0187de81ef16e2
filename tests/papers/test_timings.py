"""A claim about speed reads the rounds of a record: which, added how, and what where there are none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.errors import UserError
from svgpbench.papers import load_paper
from svgpbench.papers.evidence.timing import TimingEvidence, load_timing
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import judge
from svgpbench.papers.predicates.times import Gain, Ratio

TIMING = TimingEvidence(
    kind="timing",
    record="speed/fig4.json",
    problems=("softmax10-M100",),
    steps=("e_step", "m_step"),
)
PAPER = load_paper("adam2021")
ANY = PAPER.about.artefacts[0]
E_STEP, M_STEP = (0.010, 0.011, 0.012, 0.013, 0.014), (0.020, 0.021, 0.022, 0.023, 0.024)


def cell(
    source: str,
    step: str,
    seconds: Sequence[float],
    *disturbed: int,
    problem: str = TIMING.problems[0],
) -> TimedCell:
    peer = source == "gpflow"
    rounds: list[Round] = [
        Round.measured((0.1 * s, s, 9.0), 0.0, turn not in disturbed)
        for turn, s in enumerate(seconds)
    ]
    method = "natgrad" if peer else "t-svgp"
    return TimedCell(problem, step, source, method, "q", peer, figure=-1.0, rounds=list(rounds))


def recorded(results: Path, *cells: TimedCell, peers: Sequence[str] = ("gpflow",)) -> Path:
    settings = {"peers": list(peers), "threads": 2, "max_other_cores": 0.1}
    environment = {"gpflow": {"versions": {"gpflow": "2.11.2", "numpy": "1.26"}}}
    path = results / TIMING.record
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(SpeedReport(list(cells), settings, environment).to_json()))
    return path


def both(
    source: str, times: float = 1.0, *disturbed: int, problem: str = TIMING.problems[0]
) -> list[TimedCell]:
    return [
        cell(source, "e_step", [times * s for s in E_STEP], *disturbed, problem=problem),
        cell(source, "m_step", [times * s for s in M_STEP], problem=problem),
    ]


def test_the_medians_of_a_round_are_added_over_the_steps(tmp_path: Path) -> None:
    recorded(tmp_path, *both("jax"), *both("gpflow", 5.0, 1), cell("torch", "e_step", E_STEP))
    found = load_timing(tmp_path, TIMING)
    ours = found.frame[found.frame["method"] == "jax t-svgp"]
    assert ours["seconds"].tolist() == pytest.approx([0.030, 0.032, 0.034, 0.036, 0.038])
    theirs = found.frame[found.frame["method"] == "gpflow natgrad"]
    assert theirs["round"].tolist() == [0, 2, 3, 4]  # the second was disturbed
    assert set(found.frame["method"]) == {"jax t-svgp", "gpflow natgrad"}  # torch has one step
    assert set(found.frame["cell_id"]) == {"speed/fig4.json"}
    about = "softmax10-M100, e_step + m_step, 2 threads, beside gpflow 2.11.2"
    assert (found.condition, found.why_not) == (about, "")


def test_a_condition_names_no_peers_where_none_ran(tmp_path: Path) -> None:
    recorded(tmp_path, *both("jax"), peers=())
    assert load_timing(tmp_path, TIMING).condition == "softmax10-M100, e_step + m_step, 2 threads"


def test_without_a_record_or_its_times_it_is_said_why(tmp_path: Path) -> None:
    assert load_timing(tmp_path, TIMING).why_not == f"no record speed/fig4.json in {tmp_path}"
    recorded(tmp_path, cell("jax", "e_step", E_STEP))
    why = "speed/fig4.json has no times of softmax10-M100 e_step + m_step"
    assert load_timing(tmp_path, TIMING).why_not == why
    assert TIMING.command(PAPER, ANY, tmp_path).endswith(
        f"--step m_step --out {tmp_path}/speed/fig4.json"
    )


@pytest.mark.parametrize("text", ["{}", "no JSON", "[]"])
def test_a_file_that_is_no_record_is_one_line(tmp_path: Path, text: str) -> None:
    recorded(tmp_path).write_text(text)
    with pytest.raises(UserError, match=r"fig4\.json: is no record of `svgpbench speed --out`$"):
        load_timing(tmp_path, TIMING)


def test_a_method_without_times_leaves_a_ratio_undecided(tmp_path: Path) -> None:
    recorded(tmp_path, *both("jax"))
    part = Ratio(
        says="5 times",
        artefact="fig4",
        predicate="ratio",
        methods=("jax t-svgp", "gpflow natgrad"),
        at_least=4.0,
    )
    found = part.judge(load_timing(tmp_path, TIMING).frame)
    assert found.grade == Grade.open
    assert found.effects[0].note == "no times of gpflow natgrad"


SIZES = tuple(f"softmax10-M{size}" for size in (25, 50, 100, 250, 500))
BY_M = TIMING.model_copy(update={"problems": SIZES})


def test_a_method_that_lacks_one_of_several_problems_lacks_it_in_the_frame(tmp_path: Path) -> None:
    cells = [*both("gpflow", 5.0, problem=SIZES[0]), *both("torch", problem=SIZES[1])]
    recorded(tmp_path, *cells, *both("jax", problem=SIZES[0]))
    two = BY_M.model_copy(update={"problems": SIZES[:2]})
    part = Gain(
        says="more",
        artefact="fig5",
        predicate="gain",
        methods=("jax t-svgp", "gpflow natgrad"),
        than=SIZES[1],
    )
    (effect,) = part.judge(load_timing(tmp_path, two).rows_of(part.compared)).effects
    assert effect.note == "softmax10-M50: no times of jax t-svgp, gpflow natgrad"
    why = "speed/fig4.json has no times of softmax10-M100 e_step + m_step"
    assert load_timing(tmp_path, BY_M).why_not == why
    assert "--problem softmax10-M25 --problem softmax10-M50 --step" in two.command(
        PAPER, ANY, tmp_path
    )


def test_a_claim_about_speed_is_decided_by_its_record(tmp_path: Path) -> None:
    paper = PAPER
    timed = {x.id for x in paper.about.artefacts if isinstance(x.evidence, TimingEvidence)}
    of_speed = [x for x in paper.claims if any(part.artefact in timed for part in x.core)]
    for claim in of_speed:
        (lacks,) = judge(paper, [claim], tmp_path / "elsewhere")
        assert lacks.grade == Grade.not_run
        assert lacks.finding.startswith("no record speed/")
        assert lacks.kind == "speed"
        assert lacks.commands[0].startswith("svgpbench speed ")
    assert of_speed


def test_the_command_of_a_record_times_all_that_artefacts_read_in_it(tmp_path: Path) -> None:
    timing = PAPER.artefact("fig4-steps").evidence
    assert isinstance(timing, TimingEvidence) and timing.problems == ("softmax10-M100",)
    said = timing.command(PAPER, ANY, tmp_path)
    for size in (25, 50, 100, 250, 500):
        assert said.count(f"--problem softmax10-M{size} ") == 1


def test_an_artefact_may_name_the_methods_that_are_timed(tmp_path: Path) -> None:
    of_two = TIMING.model_copy(update={"methods": ("orth adam", "q-svgp adam")})
    said = of_two.command(PAPER, ANY, tmp_path)
    assert "--backend jax --method 'orth adam' --method 'q-svgp adam' --problem" in said
    assert "--peers" not in said and "--method" not in TIMING.command(PAPER, ANY, tmp_path)
