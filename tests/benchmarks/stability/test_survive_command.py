"""`svgpbench survive` on a tiny plan: who lives, who dies of what, what is recorded, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from committed_records import RESULTS
from surviving import Survive

from svgpbench.benchmarks.problem_plan import ProblemPlan
from svgpbench.benchmarks.records import Status
from svgpbench.benchmarks.stability import run
from svgpbench.benchmarks.stability.libraries import LIBRARIES, Library
from svgpbench.benchmarks.stability.plan import (
    StabilityCell,
    StabilityPlan,
    cells_of,
    read_stability_plan,
    towards_the_largest_rate,
)
from svgpbench.benchmarks.stability.records import StabilityRecord, read_stability
from svgpbench.benchmarks.stability.walk import walk
from svgpbench.benchmarks.timing.peers import peer_python

OURS = ("--library", "svgpbench")


def test_a_cell_lives_and_one_at_a_rate_of_ten_dies_at_once(survive: Survive) -> None:
    picture = survive.results.with_name("map.png")
    code, out, err = survive(*OURS, "--problem", "tiny", "--figure", str(picture))
    assert code == 0, err
    ends = {(line["method"], line["rate"]): line for line in survive.lines()}
    for method in ("t-svgp", "q-svgp"):
        lived, died = ends[method, 0.1], ends[method, 10.0]
        assert (lived["status"], lived["step"]) == ("ok", 20)
        bounds = lived["bounds"]
        assert len(bounds) == 1 + 20 / 5 and bounds[-1] > bounds[0]
        assert died["status"] == "not_pd" and died["step"] in (2, 3)
    # one trajectory in two parameterizations, as the bounds on the way say
    both = [ends[m, 0.1]["bounds"] for m in ("t-svgp", "q-svgp")]
    assert both[0] == pytest.approx(both[1], rel=1e-10)
    assert f"{ends['t-svgp', 10.0]['step']}: not PD" in out
    assert picture.stat().st_size > 1000


def test_a_run_goes_on_where_it_was_and_reads_its_records_alone(
    survive: Survive, monkeypatch: pytest.MonkeyPatch
) -> None:
    survive(*OURS, "--problem", "steady")
    kept = survive.lines()
    path = survive.results / "svgpbench.jsonl"
    lost = path.read_text().splitlines(keepends=True)
    stopped = (
        json.dumps(kept[0] | {"status": "timeout", "seconds": 1.0}) + "\n"
    )  # by a shorter limit
    # killed in the middle of its last line
    path.write_text(stopped + "".join(lost[1:-1]) + lost[-1][:40])
    again: list[StabilityCell] = []
    real = run.run_cell

    def seen(plan: StabilityPlan, cell: StabilityCell, *rest: object) -> StabilityRecord:
        again.append(cell)
        return real(plan, cell, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "run_cell", seen)
    code, out, _ = survive(*OURS, "--problem", "steady")
    assert (code, len(again)) == (0, 2)
    for cell, line in zip(again, (kept[0], kept[-1]), strict=True):
        assert cell.key().items() <= line.items()
    assert len(read_stability(survive.results)) == len(kept)
    assert survive(*OURS, "--problem", "steady", "--from-records")[1] == out
    assert len(again) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("noise_variance = 0.1", "noise_variance = 5.0"),
        ("batch_size = 16", "batch_size = 17"),
        ("check_every = 5", "check_every = 4"),
        ('backend = "numpy"', 'backend = "torch"'),
        ("rate = [10.0]", "inducing = [9]"),
    ],
)
def test_another_plan_has_other_cells(survive: Survive, old: str, new: str) -> None:
    def cells() -> set[StabilityCell]:
        return set(
            cells_of(read_stability_plan(survive.plan), {"svgpbench": ("t-svgp",)}, ["steady"])
        )

    before = cells()
    survive.plan.write_text(survive.plan.read_text().replace(old, new))
    assert not before & cells()


def test_a_key_that_plans_get_later_leaves_the_digests_of_records() -> None:
    class LaterProblem(ProblemPlan):
        later: bool = False

    plan = read_stability_plan()
    problem = LaterProblem(**dict(plan.problems["naval"]))
    other = plan.model_copy(update={"problems": {"naval": problem}})
    assert other.digest("naval", "gpflow") == plan.digest("naval", "gpflow")


def test_problems_of_the_shipped_plan_have_the_cells_of_its_records(survive: Survive) -> None:
    recorded = read_stability(RESULTS / "survival")
    plan = read_stability_plan()
    methods = {name: tuple(library.methods) for name, library in LIBRARIES.items()}
    assert set(cells_of(plan, methods, ["naval"])) <= recorded.keys()
    other = plan.model_copy(update={"backend": "jax"})
    assert not set(cells_of(other, {"svgpbench": ("t-svgp",)}, ["naval"])) & recorded.keys()
    # a peer runs on no backend of ours
    assert set(cells_of(other, {"gpflow": ("natgrad",)}, ["naval"])) <= recorded.keys()


def test_the_largest_rate_that_lives_is_walked_with_every_seed(
    survive: Survive, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = LIBRARIES["svgpbench"]._replace(methods={"t-svgp": "t-SVGP"})
    monkeypatch.setitem(LIBRARIES, "svgpbench", one)
    survive.plan.write_text(f"more_seeds = [3]\n{survive.plan.read_text()}")
    assert survive(*OURS, "--problem", "steady")[0] == 0
    first, _, other = survive.lines()
    assert [(line["rate"], line["seed"]) for line in survive.lines()] == [
        (0.1, 0), (10.0, 0), (0.1, 3),
    ]  # fmt: skip
    assert other["status"] == "ok" and other["bounds"] != first["bounds"]  # of other minibatches
    survive(*OURS, "--problem", "steady")
    assert len(survive.lines()) == 3


SEEDED = StabilityPlan.model_validate(
    {
        "centre": {"rate": 0.1, "dtype": "float64", "jitter": 1e-6, "inducing": 7},
        "cuts": {"rate": (1.0, 0.01)},
        "more_seeds": (1,),
        "problems": {"p": {"data": {"name": "airfoil"}, "likelihood": {}, "batch_size": 16}},
    }
)


@pytest.mark.parametrize(
    ("ends", "then"),
    [
        ({}, (1.0, 0)),
        ({(1.0, 0): True}, (1.0, 1)),
        ({(1.0, 0): True, (1.0, 1): True}, None),
        ({(1.0, 0): False}, (0.1, 0)),
        ({(1.0, 0): True, (1.0, 1): False, (0.1, 0): True}, (0.1, 1)),
        ({(1.0, 0): False, (0.1, 1): False, (0.01, 0): True, (0.01, 1): True}, None),
        ({(1.0, 0): False, (0.1, 0): False, (0.01, 0): False}, None),
    ],
)
def test_seeds_go_down_from_the_largest_rate(
    ends: dict[tuple[float, int], bool], then: tuple[float, int] | None
) -> None:
    def cell(rate: float, seed: int) -> StabilityCell:
        point = SEEDED.centre.model_copy(update={"rate": rate})
        return SEEDED.cell("p", "svgpbench", "t-svgp", point, seed)

    lived = {cell(*at): end for at, end in ends.items()}
    found = towards_the_largest_rate(SEEDED, ("p", "svgpbench", "t-svgp"), lived)
    assert found == (cell(*then) if then else None)


SCRIPT = """
import os, signal, time

VERSIONS = ()


def start(threads):
    pass


def natural_gradient_run(problem, request):
    """
SCRIPTS: dict[Status, str] = {
    "crashed": SCRIPT + "os.kill(os.getpid(), signal.SIGKILL)",
    "timeout": SCRIPT + "time.sleep(60)",
    "error": SCRIPT + "raise ImportError('no such')",
}


@pytest.mark.parametrize("status", SCRIPTS)
def test_a_walk_that_says_nothing_of_its_gradient_is_recorded_all_the_same(
    survive: Survive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[status])
    monkeypatch.setitem(LIBRARIES, "svgpbench", Library(script, {"t-svgp": "t-SVGP"}))
    # a process that starts slowly has time to end by itself
    limit = "3" if status == "timeout" else "60"
    code, out, err = survive(*OURS, "--problem", "tiny", "--timeout", limit)
    assert code == 1
    assert [line["status"] for line in survive.lines()] == [status] * 2
    text = {"crashed": "killed", "timeout": "time-out", "error": "error"}[status]
    assert f"0: {text}" in out
    messages = {"crashed": "SIGKILL", "timeout": "within 3 s", "error": "ImportError: no such"}
    message = messages[status]
    assert message in survive.lines()[0]["message"]
    assert err.count(f"no verdict, step 0: {text}") == 2
    shorter = [record.stopped_short(4.0) for record in read_stability(survive.results).values()]
    assert shorter == [status == "timeout"] * 2


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"lived": 20}, "ok"),
        ({"died": 0, "of": "start"}, "not_pd"),
        ({"died": 3, "of": "q"}, "not_pd"),
        ({"died": 3, "of": "q", "smallest_variance": 0.1}, "not_pd"),
        ({"died": 3, "of": "q", "smallest_variance": -1e-9}, "negative_variance"),
        ({"died": 5, "of": "bound", "smallest_variance": float("nan")}, "nan"),
        ({"died": 5, "of": "bound", "smallest_variance": -1e-9}, "negative_variance"),
        ({"died": 5, "of": "diverged"}, "diverged"),
        ({"died": 4, "of": "error", "message": "NotPSDError: Matrix not"}, "not_pd"),
        ({"died": 4, "of": "error", "message": "E: value has NaN or Inf"}, "not_pd"),
        ({"died": 4, "of": "error", "message": "ValueError: shapes"}, "error"),
    ],
)
def test_what_a_walk_died_of(answer: dict[str, Any], status: str) -> None:
    assert run.cause(answer)[0] == status


class Doomed:
    """A walker whose q, or whose bound, is lost at step 7; a variance was negative before."""

    def __init__(self, loses: str) -> None:
        self.loses, self.q = loses, 0.0

    def step(self, k: int) -> None:
        if k == 6 and self.loses == "a step":
            raise ValueError(
                "Graph execution error:\n\n  File x\nthe root is negative\n [[{{node}}]]"
            )
        self.q = float("nan") if k == 6 and self.loses == "q" else self.q + 1.0

    def bound(self) -> float:
        lost = {"the bound": float("nan"), "sense": -1e6, "ground": -11.0}
        return lost[self.loses] if self.q >= 7.0 and self.loses in lost else self.q - 10.0

    def state(self) -> Any:
        return [np.array(self.q)]

    def restore(self, state: Any) -> None:
        self.q = float(state[0])

    def variances(self, k: int) -> Any:
        return np.array([1.0, -0.5 * (self.q == 6.0 and k == 6)])


@pytest.mark.parametrize(
    ("loses", "how"),
    [
        ("nothing", {"lived": 10}),
        ("q", {"died": 7, "of": "q", "smallest_variance": -0.5}),
        ("the bound", {"died": 7, "of": "bound", "smallest_variance": -0.5}),
        ("sense", {"died": 7, "of": "diverged"}),
        ("ground", {"died": 10, "of": "diverged"}),
        (
            "a step",
            {
                "died": 7,
                "of": "error",
                "message": "ValueError: the root is negative",
                "smallest_variance": -0.5,
            },
        ),
    ],
)
def test_a_walk_ends_where_q_does(loses: str, how: dict[str, Any]) -> None:
    said: list[dict[str, Any]] = []
    end = walk(Doomed(loses), 10, 7, said.append)
    bounds = end.pop("bounds")
    assert end == how and bounds[0] == -10.0
    assert said[:1] == ([{"step": 7}] if loses in ("nothing", "ground") else [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--library", "gpfow"), "unknown library 'gpfow'; did you mean 'gpflow'?"),
        (("--problem", "tidy"), "unknown problem of the plan 'tidy'"),
        (("--python", "gpfow=x"), "unknown library 'gpfow'"),
        (("--python", "gpflow"), "write LIBRARY=PATH"),
        ((*OURS, "--python", "svgpbench=/no/python"), "svgpbench runs in its own Python"),
        (("--library", "gpflow", "--python", "gpflow=/no/python"), "no such program"),
        (("--figure", "map.txt"), "name a file ending in .png"),
        (("--from-records",), "no record of these cells"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    survive: Survive, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = survive(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ard = false", 'name = "se", ard = false', "every library has matern52 with one"),
        ("ard = false", "ard = true", "set kernel.ard = false"),
        ('"gaussian", noise_variance = 0.1', '"student-t"', "none of gpflow, gpjax has the likel"),
    ],
)
def test_a_model_that_a_library_does_not_build_is_refused(
    survive: Survive, old: str, new: str, said: str
) -> None:
    """GPflow's script would take any other likelihood for a Bernoulli one."""
    survive.plan.write_text(survive.plan.read_text().replace(old, new))
    peers = ("--library", "gpflow", "--library", "gpjax", "--from-records")
    code, out, err = survive(*(peers if "student-t" in new else OURS), "--problem", "steady")
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = [", "plan"),
        ("[centre]\nrates = 1", "unknown key 'rates' in centre; did you mean 'rate'?"),
        ("", "missing key 'centre'"),
        ("step = 3", "unknown key 'step'; did you mean 'steps'?"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(survive: Survive, text: str, said: str) -> None:
    survive.plan.write_text(text)
    code, _, err = survive()
    assert (code, err.count("\n")) == (2, 1) and said in err


def test_the_shipped_plan_has_at_most_two_hundred_cells_and_no_library_in_vain() -> None:
    plan = read_stability_plan()
    methods = {name: tuple(library.methods) for name, library in LIBRARIES.items()}
    cells = list(cells_of(plan, methods, list(plan.problems)))
    assert len(set(cells)) == len(cells) <= 200
    assert {cell.point for cell in cells[: len(cells) // len(plan.points)]} == {plan.centre}
    for library in LIBRARIES.values():
        assert library.script.is_file()


# GPyTorch and GPJax add the jitter to the variance of every datum too; at a rate of 10 GPJax's whitened
# step backs off to 0.3, and GPyTorch's triangular one stays in the cone by construction
@pytest.mark.parametrize(
    ("name", "apart", "live"),
    [("gpflow", 1e-8, set()), ("gpytorch", 1e-4, {"tril-ngd"}), ("gpjax", 1e-4, {"whitened"})],
)
def test_a_peer_walks_as_we_do(survive: Survive, name: str, apart: float, live: set[str]) -> None:
    if peer_python(name) is None:
        pytest.skip(f"no environment of peer {name!r}: make peers makes it")
    survive("--library", "svgpbench", "--library", name, "--problem", "steady")
    ours, theirs = survive.lines(), survive.lines(name)
    assert theirs[0]["status"] == "ok"
    assert theirs[0]["bounds"] == pytest.approx(ours[0]["bounds"], rel=apart)
    at_ten = {line["method"]: line["status"] for line in theirs if line["rate"] == 10.0}
    assert {method for method, end in at_ten.items() if end == "ok"} == live
    assert {at_ten[m] for m in at_ten.keys() - live} <= {"not_pd", "diverged"}
