"""The second program is one of its own, and the runs reach what they are meant to reach."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from both_sides import compare, package_run, program_of, program_run
from cases import CASES
from test_online_runs import CASES as ONLINE_CASES
from test_online_runs import program_of as online_points
from test_online_runs import program_run as online_run

from svgpbench.backends import load_backend

HERE = Path(__file__).parent
FILES = [*sorted((HERE / "program").glob("*.py")), HERE / "problems.py", HERE / "cases.py"]
OUTSIDE = {"__future__", "autograd", "collections", "copy", "dataclasses", "math", "numpy", "scipy"}
OWN = {"program", "problems", "typing"}


def imported(path: Path) -> set[str]:
    """The first words of what a file imports, by statement or by call."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: a relative import"
            found.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval"):
            found.add(node.id)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_second_program_imports_nothing_of_the_package(path: Path) -> None:
    assert imported(path) <= OUTSIDE | OWN


def last(name: str) -> dict[str, float]:
    return program_of(name)[-1].numbers


@pytest.mark.parametrize("name", ["student-t, damped", "student-t, damped, q-svgp"])
def test_damped_runs_halve_rates(name: str) -> None:
    numbers = last(name)
    assert numbers["halvings"] > 0
    assert numbers["negative_beta"] > 0


def test_clipped_run_meets_negative_beta() -> None:
    assert last("student-t, clipped")["negative_beta"] > 0


@pytest.mark.parametrize(
    ("name", "gamma0"),
    [
        ("iVSGPR, the best of three rates", 0.2),
        ("the last of three rates", 0.3),
        ("a rate that is the best in the trial only", 0.9),
        ("SVDGP, the best of two rates", 0.05),
    ],
)
def test_trials_choose_another_rate_than_the_first(name: str, gamma0: float) -> None:
    assert ONLINE_CASES[name].online["rates"][0] != gamma0  # type: ignore[index]
    assert online_points(name)[-1].numbers["gamma0"] == gamma0


def test_bases_grow_to_limits_that_are_no_multiples_of_the_increment() -> None:
    points = online_points("SVDGP")
    assert [p.numbers["inducing"] for p in points] == [3, 5, 5, 5, 5]
    assert [p.numbers["gamma"] for p in points] == [3, 6, 9, 11, 11]


@pytest.mark.parametrize("key", ["elbo", "nlpd", "noise_variance"])
def test_a_trace_moved_by_a_millionth_is_red(key: str) -> None:
    case = CASES["t-svgp untied by l-bfgs"]
    points = program_run(case).run()
    points[-1].numbers[key] *= 1.0 + 1e-6
    with pytest.raises(AssertionError, match=key):
        compare(package_run(load_backend("numpy"), case), points)


@pytest.mark.parametrize("key", ["Z", "lengthscales"])
def test_theta_moved_by_a_millionth_is_red(key: str) -> None:
    case = CASES["t-svgp untied by l-bfgs"]
    points = program_run(case).run()
    points[-1].theta[key] = points[-1].theta[key] * np.float64(1.0 + 1e-6)
    with pytest.raises(AssertionError, match=key):
        compare(package_run(load_backend("numpy"), case), points)


def test_a_rate_that_wins_its_trial_may_lose_the_run() -> None:
    name = "a rate that is the best in the trial only"
    case = ONLINE_CASES[name]
    loser = dataclasses.replace(case, online={"rates": (0.2,)})
    ends = [online_points(name)[-1], online_run(loser).points[-1]]
    assert ends[0].numbers["elbo"] < ends[1].numbers["elbo"]


def test_a_batch_of_repeated_inputs_adds_none_where_too_few_are_new() -> None:
    sizes = [p.numbers["inducing"] for p in online_points("repeated inputs")]
    assert sizes == [5, 10, 10, 13, 13]


def test_a_climb_that_stops_early_does_so_between_two_points() -> None:
    _, second, *rest = (float(p.theta["noise_variance"]) for p in program_of("an early stop"))
    assert len(rest) == 3
    assert len(set(rest)) == 1
    assert abs(second / rest[0] - 1.0) > 10 * CASES["an early stop"].tolerance
