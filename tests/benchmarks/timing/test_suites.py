"""What asv and pytest-benchmark run over, what is not timed, and that neither hides why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from svgpbench.benchmarks.asv_suite import equivalence, prepared
from svgpbench.benchmarks.asv_suite.axes import VARIABLE, axes, full
from svgpbench.benchmarks.asv_suite.equivalence import TOLERANCES, reference, why_not_timed
from svgpbench.benchmarks.timing.cases import USUAL_STEPS, timed_method
from svgpbench.benchmarks.timing.floor import work_of
from svgpbench.benchmarks.timing.memory import step_memory
from svgpbench.benchmarks.timing.problems import SHAPES, make_problem
from svgpbench.benchmarks.timing.rates import Rates
from svgpbench.errors import UserError
from svgpbench.plugins import BACKENDS, frameworks, load

SUITE = Path(equivalence.__file__).parent


def test_modes_are_those_that_backends_offer() -> None:
    offered = {"numpy"} | set(frameworks())
    for name in frameworks():
        offered |= {f"{name}:{mode}" for mode in load(BACKENDS, name).capabilities.modes[1:]}
    assert set(full()["backend"]) == offered


def test_every_method_of_the_full_axis_can_be_built_and_every_problem_exists() -> None:
    for title in full()["method"]:
        timed_method(title).build()
    assert set(full()["problem"]) <= set(SHAPES)
    assert set(full()["step"]) == set(USUAL_STEPS)


def test_axes_are_small_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert axes()["backend"] == list(frameworks())
    monkeypatch.setenv(VARIABLE, "backend = torch, torch:compile; method=t-svgp tied; problem=tiny")
    asked = axes()
    assert (asked["backend"], asked["method"]) == (["torch", "torch:compile"], ["t-svgp tied"])
    assert (asked["problem"], asked["dtype"]) == (["tiny"], ["float64"])
    monkeypatch.setenv(VARIABLE, "full")
    assert axes() == {name: list(values) for name, values in full().items()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("backends=torch", "unknown axis of SVGPBENCH_AXES 'backends'; did you mean 'backend'"),
        ("method=tsvgp", "unknown method of SVGPBENCH_AXES 'tsvgp'; did you mean 't-svgp'"),
        ("everything", "'everything' is not AXIS=VALUE,VALUE"),
    ],
)
def test_an_axis_that_there_is_not_is_one_line(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UserError, match=said):
        axes()


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_a_figure_that_is_not_numpys_is_not_timed_and_says_both(dtype: str) -> None:
    expected, tolerance = -123.0, TOLERANCES[dtype]
    assert why_not_timed(expected * (1 + 0.9 * tolerance), expected, dtype) == ""
    for figure in (expected * (1 + 1.1 * tolerance), -expected, float("nan")):
        assert "NumPy's -123, " in why_not_timed(figure, expected, dtype)


def test_numpys_figure_is_the_same_from_another_process_which_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    found = equivalence.reference_elsewhere("tiny", "t-svgp", "em_step")
    assert found == pytest.approx(reference("tiny", "t-svgp", "em_step"), rel=1e-12)
    monkeypatch.setattr(subprocess, "run", None)
    assert equivalence.reference_elsewhere("tiny", "t-svgp", "em_step") == found


def suite(program: str, folder: Path, **variables: str) -> str:
    """What a program prints that has the suite as asv has it: a package of its own, in a new process."""
    paths = [str(SUITE.parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_framework_is_imported_before_setup(tmp_path: Path) -> None:
    program = "import sys, asv_suite.steps, asv_suite.tracks; print(*sys.modules)"
    imported = set(suite(program, tmp_path, SVGPBENCH_AXES="full").split())
    assert "asv_suite.tracks" in imported
    assert not imported & {framework.module for framework in frameworks().values()}


WHY = """
from asv_suite import prepared
if not {equal}:
    prepared.reference_elsewhere = lambda *_: 1.0
try:
    print(prepared.first_call("e_step", {backend!r}, {method!r}, {problem!r}, {dtype!r}, {device!r})[0] > 0)
except NotImplementedError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("backend", "method", "problem", "dtype", "device", "equal", "said"),
    [
        ("numpy", "t-svgp", "tiny", "float64", "cpu", True, "True"),
        ("numpy", "t-svgp", "tiny", "float64", "cpu", False, "not equivalent: figure -"),
        ("numpy", "t-svgp", "tiny", "float32", "cpu", True, "backend 'numpy' offers no dtype"),
        ("numpy", "gpr", "tiny-bern", "float64", "cpu", True, "speed method 'gpr' cannot take"),
        ("torch", "t-svgp", "tiny", "float64", "cuda", True, "backend 'torch' has no device"),
    ],
)
def test_a_case_that_cannot_be_timed_is_skipped_with_the_reason(
    tmp_path: Path,
    backend: str,
    method: str,
    problem: str,
    dtype: str,
    device: str,
    equal: bool,
    said: str,
) -> None:
    program = WHY.format(**{k: v for k, v in locals().items() if k not in ("said", "tmp_path")})
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    assert suite(program, tmp_path, **hidden).startswith(said)


def test_the_floor_of_a_float32_step_moves_bytes_of_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound_by_memory = Rates(1e18, 1e18, 1e18, 1.0, 1.0)
    monkeypatch.setattr(prepared, "first_call", lambda *_: (0.0, SimpleNamespace(ops=0, call=0)))
    monkeypatch.setattr(prepared, "measure_ops", lambda *_: bound_by_memory)
    monkeypatch.setattr(prepared, "measure_blas", lambda *_: bound_by_memory)
    monkeypatch.setattr(prepared.timed_calls, "warm_up", lambda call: 1.0)
    case = ("e_step", "torch", "t-svgp", "tiny")
    floors = [1.0 / prepared.floor_ratio(*case, dtype, "cpu") for dtype in ("float64", "float32")]
    assert floors[0] == work_of(make_problem("tiny"), "t-svgp", "e_step").least_bytes
    # row numbers stay of 8 bytes
    assert floors[1] == pytest.approx((floors[0] + 8 * SHAPES["tiny"].b) / 2)


def test_memory_beyond_import_grows_with_the_problem() -> None:
    tiny, larger = (step_memory("numpy", "t-svgp", name, "e_step") for name in ("tiny", "reg-M500"))
    assert tiny.imported == pytest.approx(larger.imported, rel=0.1)
    blocks = 8 * 500 * (2 * 500 + 2 * 1024)  # K(Z, Z), its factor, K(Z, X), W
    assert tiny.growth < tiny.imported / 2  # the import is no part of it
    assert larger.growth - tiny.growth > blocks
    assert larger.growth < 40 * blocks


def test_a_reference_of_other_code_is_computed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("tiny", "t-svgp", "e_step")
    found = equivalence.reference_elsewhere(*asked)
    (cache,) = tmp_path.iterdir()
    cache.write_text("1.0")
    assert equivalence.reference_elsewhere(*asked) == 1.0
    monkeypatch.setattr(equivalence, "code_digest", lambda method: "another")
    assert equivalence.reference_elsewhere(*asked) == found != 1.0
