"""The files of svgp-reference, the programs behind their numbers, and the tests that libraries run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import answers_table
import check_numpy
import jsonschema
import make_mpmath
import numpy as np
import pytest
from add_checks import DIGESTS, digest
from check_numpy import NumpySVGP, Terms

import svgp_reference
from svgp_reference.adapter import (
    Adapter,
    AdapterError,
    load_adapter,
    load_known_failures,
)
from svgp_reference.comparison import Results, failure, relative_difference
from svgp_reference.problem import FOLDER

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "reference"
NAMES = svgp_reference.names()


def file_of(name: str) -> dict[str, Any]:
    file: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return file


# --- files ----------------------------------------------------------------------------------------


def test_a_name_keeps_its_numbers() -> None:
    """Every file has a line in `digests.txt`, and every line a file. Add lines; never change one."""
    lines = DIGESTS.read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(f"{digest(name)}  {name}" for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_files_conform_to_the_schema(name: str) -> None:
    schema = json.loads((REFERENCE / "svgp_reference" / "schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(file_of(name))] == []
    wrong = file_of(name)
    wrong["answers"]["bound"]["digits"] = "nan"
    assert not validator.is_valid(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_digits_match(name: str) -> None:
    p, file = svgp_reference.load(name), file_of(name)
    (M, D), b, t = p.Z.shape, len(p.batch), len(p.X_test)
    assert file["info"]["name"] == name
    assert 3 <= M <= 8 and 10 <= p.n <= 30 and D <= 3
    assert p.X.shape == (p.n, D) and p.y.shape == (p.n,)
    assert p.X_test.shape == (t, D) and p.y_test.shape == (t,)
    assert len(p.lengthscales) in (1, D) and p.batch.max() < p.n
    assert np.all(np.triu(p.q_factor, 1) == 0) and np.all(np.diag(p.q_factor) > 0)
    shapes = {
        "expected_log_likelihood": (b,),
        **{f"predict_{part}": (t,) for part in ("mean", "variance", "log_density")},
        "gradient_lengthscales": p.lengthscales.shape,
        "gradient_Z": (M, D),
        "gradient_q_mean": (M,),
        "gradient_q_factor": (M, M),
        "steps": (50,),
    }
    assert {k: x.shape for k, x in p.answers.items()} == {k: shapes.get(k, ()) for k in p.answers}
    learned = {f"gradient_{k}" for k in p.likelihood_parameters if k != "degrees_of_freedom"}
    noises = {"gradient_noise_variance", "gradient_scale"}
    assert learned == noises & set(p.answers)
    assert ("optimum" in p.answers) == (p.likelihood == "gaussian")
    for answer, values in p.answers.items():
        rounded = np.asarray(p.digits[answer], dtype=np.str_).astype(np.float64)
        assert relative_difference(rounded, values) < 1e-16, answer
    for tolerance in p.info["tolerance"].values():
        assert tolerance is None or set(tolerance) == set(p.answers)


def test_every_hard_case_is_hard() -> None:
    hard = {name: svgp_reference.load(name) for name in NAMES}
    assert hard["gaussian-minibatch"].scale == 4.0
    assert hard["gaussian-constant-mean"].mean_constant == 1.75
    assert hard["gaussian-variance-1e4"].variance == 1e4
    Z = hard["gaussian-near-duplicate-inducing"].Z[:, 0]
    assert np.min(np.diff(np.sort(Z))) == pytest.approx(1e-6)
    assert hard["student-t-outliers"].info["smallest_beta"] < -0.1
    assert set(hard["bernoulli-one-class"].y) == {1.0}
    assert len(hard["poisson-batch-of-one"].batch) == 1
    assert hard["gaussian-condition-1e10"].info["condition_number"] > 1e10


def test_arrays_cannot_be_changed() -> None:
    problem = svgp_reference.load("gaussian-se-whitened")
    with pytest.raises(ValueError, match="read-only"):
        problem.q_mean += 1.0


def test_an_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'gaussian-se-whitened'"):
        svgp_reference.load("gaussian-se-whitend")


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_second_program_agrees(name: str) -> None:
    """Values agree to 1e-10 and gradients to 1e-9, or to the larger tolerance that the file states."""
    p = svgp_reference.load(name)
    found = check_numpy.differences(p, nodes=int(p.info["gauss_hermite_nodes"]) or 20)
    assert found is not None
    assert set(found) == set(p.answers)
    apart = {k: x for k, x in found.items() if x > 0.1 * (p.tolerance(k) or 0.0)}
    assert apart == {}
    if p.info["condition_number"] < 1e4:
        assert max(found.values()) < 1e-11


@pytest.mark.parametrize("name", NAMES)
def test_float32_meets_its_tolerances(name: str) -> None:
    p = svgp_reference.load(name)
    assert (p.tolerance("bound", "float32") is None) == (p.info["condition_number"] > 2**23)
    if p.tolerance("bound", "float32") is None:
        return
    found = check_numpy.differences(p, np.float32)
    assert found is not None
    assert {k: x for k, x in found.items() if x > (p.tolerance(k, "float32") or 0.0)} == {}


def test_the_first_program_still_finds_its_digits() -> None:
    """Its bound, KL and optimum of one file; `make_mpmath.py --check` computes all of them again."""
    file = file_of("gaussian-minibatch")
    setting = make_mpmath.Setting(file["problem"])
    mu, v, divergence = setting.moments(setting.parameters)
    V = sum(row.value for row in setting.expectations(mu, v))
    found = {
        "bound": setting.scale * V - divergence,
        "kl": divergence,
        "optimum": setting.optimum(),
    }
    for answer, value in found.items():
        assert make_mpmath.printed(value) == file["answers"][answer]["digits"]


@pytest.mark.parametrize("name", NAMES)
def test_svgpbench_agrees(name: str) -> None:
    results = Results(load_adapter(HERE / "adapters" / "svgpbench_adapter.py"))
    assert failing(results, [name]) == set()


PAGE = (REFERENCE.parent / "docs" / "check-your-library.md").read_text(encoding="utf-8")


def test_the_adapter_of_the_page_agrees(tmp_path: Path) -> None:
    path = tmp_path / "adapter.py"
    path.write_text(PAGE.split("```python\n")[1].split("```")[0], encoding="utf-8")
    results, compared = Results(load_adapter(path)), 0
    for name in ("gaussian-se-whitened", "gaussian-minibatch", "gaussian-constant-mean"):
        p = svgp_reference.load(name)
        for answer in (
            "bound",
            "kl",
            "expected_log_likelihood",
            "predict_mean",
            "predict_variance",
        ):
            assert relative_difference(results.result(p, answer), p.answers[answer]) < 1e-10
            compared += 1
    assert compared == 15
    with pytest.raises(NotImplementedError, match="only Gaussian noise"):
        results.result(svgp_reference.load("student-t"), "bound")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_every_problem(name: str) -> None:
    assert f"| `{name}` | {svgp_reference.load(name).info['purpose']} |" in PAGE


# --- planted faults -------------------------------------------------------------------------------


def failing(results: Results, names: list[str]) -> set[str]:
    """Return the tests that fail for an adapter that has every result."""
    found = set()
    for name in names:
        problem = svgp_reference.load(name)
        for answer in problem.answers:
            got, tolerance = results.result(problem, answer), problem.tolerance(answer)
            assert tolerance is not None
            if failure(problem, answer, got, "float64", tolerance):
                found.add(f"{name}.{answer}")
    return found


def numpy_adapter(**replaced: Callable[..., Any]) -> Adapter:
    functions: dict[str, Callable[..., Any]] = {
        "build": NumpySVGP,
        "bound": NumpySVGP.bound,
        "predict": NumpySVGP.predict,
        "step": NumpySVGP.step,
        "gradient": NumpySVGP.gradient,
    }
    return Adapter(functions | replaced)


def bound_with_scaled_kl(model: NumpySVGP) -> dict[str, Any]:
    parts = model.bound()
    return parts | {"bound": parts["bound"] - (model.scale - 1) * parts["kl"]}


def bound_without_scale(model: NumpySVGP) -> float:
    parts = model.bound()
    return float(parts["expected_log_likelihood"].sum() - parts["kl"])


def with_parts(bound: Callable[[NumpySVGP], float]) -> Callable[[NumpySVGP], dict[str, Any]]:
    return lambda model: model.bound() | {"bound": bound(model)}


def step_without_scale(model: NumpySVGP, gamma: float) -> None:
    scale, model.scale = model.scale, np.float64(1.0)
    model.step(gamma)
    model.scale = scale


def step_that_clips_beta(model: NumpySVGP, gamma: float) -> None:
    terms = model.terms

    def clipped(mu: Any, v: Any) -> Terms:
        at = terms(mu, v)
        return at._replace(beta=np.maximum(at.beta, 0.0))

    model.terms = clipped  # type: ignore[method-assign]
    model.step(gamma)
    model.terms = terms  # type: ignore[method-assign]


def gradient_with_wrong_sign(model: NumpySVGP) -> dict[str, Any]:
    gradient = model.gradient()
    return gradient | {"lengthscales": -gradient["lengthscales"]}


def prediction_without_mean(model: NumpySVGP, X: Any) -> dict[str, Any]:
    predicted = model.predict(X)
    return predicted | {"mean": predicted["mean"] - model.constant}


MINIBATCHES = ("gaussian-minibatch", "poisson-batch-of-one")
TRIED = [*MINIBATCHES, "gaussian-se-unwhitened", "gaussian-constant-mean", "student-t-outliers"]
BY_BOUND = {f"{name}.{answer}" for name in MINIBATCHES for answer in ("bound", "steps")} | {
    "gaussian-minibatch.optimum"
}
BY_STEP = BY_BOUND - {f"{name}.bound" for name in MINIBATCHES}


@pytest.mark.parametrize(
    ("replaced", "expected"),
    [
        ({}, set()),
        ({"bound": bound_with_scaled_kl}, BY_BOUND),
        ({"bound": with_parts(bound_without_scale)}, BY_BOUND),
        ({"step": step_without_scale}, BY_STEP),
        ({"step": step_that_clips_beta}, {"student-t-outliers.steps"}),
        ({"gradient": gradient_with_wrong_sign}, {f"{x}.gradient_lengthscales" for x in TRIED}),
        ({"predict": prediction_without_mean}, {"gaussian-constant-mean.predict_mean"}),
    ],
    ids=["none", "scaled-kl", "no-scale", "step-no-scale", "clipped", "sign", "no-mean"],
)
def test_a_planted_fault_fails_its_tests_and_no_others(
    replaced: dict[str, Callable[..., Any]], expected: set[str]
) -> None:
    assert failing(Results(numpy_adapter(**replaced)), TRIED) == expected


# --- messages and files of the user ---------------------------------------------------------------


def test_a_failure_says_what_where_and_how_far() -> None:
    p = svgp_reference.load("gaussian-minibatch")
    right = p.answers["gradient_q_mean"]
    wrong = np.where(np.arange(len(right)) == 2, 0.5, right)
    message = failure(p, "gradient_q_mean", wrong, "float64", 1e-9)
    assert message.startswith(
        "gaussian-minibatch.gradient_q_mean: at [2], where the difference is largest, expected "
        f"{float(right[2])!r}, got 0.5. The relative difference "
    )
    assert "is above the tolerance 1e-09 for float64. About the problem: A minibatch" in message
    assert failure(p, "gradient_q_mean", right, "float64", 1e-9) == ""
    assert "got nan. The relative difference inf" in failure(p, "bound", np.nan, "float64", 1e-9)
    assert "shape (1,), expected ()" in failure(p, "bound", [1.0], "float64", 1e-9)


def test_what_an_adapter_lacks_is_not_implemented() -> None:
    p = svgp_reference.load("gaussian-minibatch")
    results = Results(Adapter({"build": NumpySVGP, "bound": lambda model: model.bound()["bound"]}))
    assert relative_difference(results.result(p, "bound"), p.answers["bound"]) < 1e-12
    for answer, reason in (
        ("kl", "bound of the adapter returns no 'kl'"),
        ("gradient_Z", "the adapter has no function 'gradient'"),
        ("steps", "the adapter has no function 'step'"),
    ):
        with pytest.raises(NotImplementedError, match=reason):
            results.result(p, answer)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("bound = 1", "'bound' must be a function"),
        ("def bound(model): pass", "no function 'build'"),
        ("import no_such_library", "No module named 'no_such_library'"),
        ("raise SystemExit(3)", "the file cannot be loaded. SystemExit: 3"),
        (
            "precision = 'half'\ndef build(problem): pass",
            "precision must be 'float64' or 'float32'",
        ),
    ],
)
def test_a_bad_adapter_is_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "adapter.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(AdapterError, match=message) as error:
        load_adapter(path)
    assert "\n" not in str(error.value)


def test_an_adapter_may_define_a_dataclass(tmp_path: Path) -> None:
    path = tmp_path / "adapter.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n\n"
        "@dataclass\nclass Model:\n    problem: object\n\n"
        "def build(problem): return Model(problem)",
        encoding="utf-8",
    )
    problem = svgp_reference.load("student-t")
    assert load_adapter(path).build(problem).problem is problem


def test_known_failures_name_tests_and_reasons(tmp_path: Path) -> None:
    path, tests = tmp_path / "known.txt", ["a.bound", "a.kl"]
    path.write_text("# a comment\n\na.bound  # https://example.org/1\na.kl\n", encoding="utf-8")
    reasons = {"a.bound": "https://example.org/1", "a.kl": f"listed in {path}"}
    assert load_known_failures(path, tests) == reasons
    path.write_text("a.*  # all\na.kl  # its own\n", encoding="utf-8")
    assert load_known_failures(path, tests) == {"a.bound": "all", "a.kl": "its own"}
    for text, message in (
        ("a.b*\n*.bound", r"line 2: '\*.bound' is listed twice"),
        ("*.bond", r"line 1: no test '\*.bond'"),
        ("a.bond", "line 1: no test 'a.bond'; did you mean 'a.bound'"),
        ("a.kl\na.kl", "line 2: 'a.kl' is listed twice"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(AdapterError, match=message):
            load_known_failures(path, tests)
    path.write_bytes(b"a.kl  # \xe9")
    with pytest.raises(AdapterError, match="it is not UTF-8 text"):
        load_known_failures(path, tests)
    with pytest.raises(AdapterError, match="no such file"):
        load_known_failures(tmp_path / "other.txt", tests)


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of the package from a folder of its own, as a library does."""
    arguments = ("--rootdir", str(folder), *arguments)
    code = (
        f"import sys; sys.path[:0] = [{str(REFERENCE)!r}, {str(HERE)!r}]; import pytest; "
        f"sys.exit(pytest.main({['-p', 'svgp_reference.plugin', '-p', 'no:cacheprovider', *arguments]!r}))"
    )
    alone = os.environ | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"
    }  # other plugins take seconds to load
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=alone, cwd=folder
    )


ADAPTER = """
from check_numpy import NumpySVGP as build

library = "doubled 1.0"

def bound(model):
    parts = model.bound()
    return {"bound": 2 * parts["bound"], "kl": parts["kl"]}
"""


def test_the_command_of_a_library(tmp_path: Path) -> None:
    """A wrong bound fails, a known failure does not, one that passes does, and the rest is skipped."""
    adapter, known = tmp_path / "adapter.py", tmp_path / "known.txt"
    adapter.write_text(ADAPTER, encoding="utf-8")
    known.write_text(
        "gaussian-minibatch.bound  # doubled\ngaussian-matern52.kl\n", encoding="utf-8"
    )
    options = ["--adapter", str(adapter), "--known-failures", str(known), "-k", "gaussian-m"]
    options += ["--report", "report.json"]
    ran = run_pytest(tmp_path, "-q", "--pyargs", "svgp_reference", *options)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "gaussian-matern52.bound: expected" in ran.stdout
    assert "gaussian-matern52.kl agrees now: take it off the list" in ran.stdout
    counted = "2 of 45 answers agree, 3 do not, 1 are known failures, 39 were skipped"
    assert counted in ran.stdout
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["library"], report["precision"]) == ("doubled 1.0", "float64")
    answers = report["answers"]
    assert len(answers) == 45
    doubled = {"outcome": "known failure", "difference": 1.0, "reason": "doubled"}
    assert answers["gaussian-minibatch.bound"] == doubled
    right = answers["gaussian-minibatch.kl"]
    assert right["outcome"] == "agrees" and right["difference"] < 1e-10
    wrong = answers["gaussian-matern52.bound"]
    assert (wrong["outcome"], wrong["difference"]) == ("differs", 1.0)
    assert wrong["reason"].startswith("gaussian-matern52.bound: expected")
    absent = answers["gaussian-minibatch.steps"]
    reason = "the adapter has no function 'step'"
    assert absent == {"outcome": "skipped", "difference": None, "reason": reason}


def test_the_page_has_the_tables_of_the_reports() -> None:
    reports = answers_table.read_reports()
    tests = {f"{name}.{answer}" for name in NAMES for answer in svgp_reference.load(name).answers}
    assert reports
    assert all(set(report["answers"]) == tests for report in reports)
    assert answers_table.TABLES.search(PAGE)[0] == answers_table.tables(reports)  # type: ignore[index]


def test_tables_count_what_agrees_and_group_the_rest_by_reason() -> None:
    def entry(outcome: str, difference: float | None, reason: str = "") -> dict[str, Any]:
        return {"outcome": outcome, "difference": difference, "reason": reason}

    answers = {
        "a.bound": entry("agrees", 2e-12),
        "a.kl": entry("agrees", 3e-15),
        "b.bound": entry("known failure", 2e-3, "20 nodes"),
        "b.kl": entry("known failure", 4e-8, "20 nodes"),
        "b.steps": entry("known failure", None, "NaN"),
    }
    report = {"library": "L 1", "date": "2026-01-02", "answers": answers}
    assert answers_table.tables([report]).splitlines() == [
        "| problem | L 1 (2026-01-02) |",
        "| --- | --- |",
        "| `a` | 2, 2e-12 |",
        "| `b` | – |",
        "| **all** | 2 agree, 3 known failures |",
        "",
        "| library | answers | difference | why |",
        "| --- | --- | --- | --- |",
        "| L 1 | `b.bound`, `b.kl` | 4e-08 to 2e-03 | 20 nodes |",
        "| L 1 | `b.steps` | none | NaN |",
    ]


def test_wrong_options_have_status_4(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--pyargs", "svgp_reference", "--adapter", "absent.py")
    assert ran.returncode == 4
    assert "ERROR: --adapter absent.py: no such file" in ran.stderr
    (tmp_path / "adapter.py").write_text(ADAPTER, encoding="utf-8")
    for report, why in (("absent/report.json", "no folder absent"), (".", "it is a folder")):
        options = ("--adapter", "adapter.py", "--report", report)
        ran = run_pytest(tmp_path, "--pyargs", "svgp_reference", *options)
        assert ran.returncode == 4
        assert f"ERROR: --report {report}: {why}" in ran.stderr


def test_a_file_with_a_like_name_is_another_test(tmp_path: Path) -> None:
    (tmp_path / "test_svgp_reference.py").write_text("def test(): ...", encoding="utf-8")
    ran = run_pytest(tmp_path, "test_svgp_reference.py", "-k", "svgp_reference")
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stderr
    for named in (
        str(REFERENCE / "svgp_reference" / "test_library.py"),
        "svgp_reference.test_library",
    ):
        ran = run_pytest(tmp_path, "--pyargs", named)
        assert (ran.returncode, "no adapter: run" in ran.stderr) == (4, True), ran.stderr


def test_without_an_adapter_one_line_says_what_to_do(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--pyargs", "svgp_reference")
    assert ran.returncode == 4
    assert "no adapter: run `pytest --pyargs svgp_reference --adapter FILE`" in ran.stderr


def test_an_error_of_an_adapter_has_one_traceback(tmp_path: Path) -> None:
    """The others say where it came first; a known failure may be an error, too."""
    adapter, known = tmp_path / "adapter.py", tmp_path / "known.txt"
    adapter.write_text(
        "def build(problem):\n    raise RuntimeError('no model')\ndef bound(model): ...\n",
        encoding="utf-8",
    )
    known.write_text("gaussian-matern52.*  # crashes\n", encoding="utf-8")
    options = ["--adapter", "adapter.py", "--known-failures", "known.txt", "-k", "gaussian-m"]
    # -rN: pytest's own summary repeats whole messages where it finds CI or a wide terminal.
    ran = run_pytest(tmp_path, "--pyargs", "svgp_reference", "-rN", *options)
    assert ran.returncode == 1
    assert ran.stdout.count("raise RuntimeError") == 1
    assert ran.stdout.count("RuntimeError as in gaussian-matern32-ard.bound: no model") == 5
    assert "0 of 45 answers agree, 6 do not, 3 are known failures, 36 were skipped" in ran.stdout


UNREADABLE = """
class Tensor:
    shape = ()

    def __array__(self, *arguments, **options):
        raise RuntimeError("it requires grad")

def build(problem): ...

def bound(model):
    return {"bound": Tensor(), "kl": "a", "expected_log_likelihood": [[1.0], [2.0, 3.0]]}
"""


def test_what_is_no_array_of_numbers_is_an_error_of_the_adapter(tmp_path: Path) -> None:
    """A known failure may be one, and it has one traceback."""
    (tmp_path / "adapter.py").write_text(UNREADABLE, encoding="utf-8")
    known = "".join(f"*-matern52.{name}\n" for name in ("bound", "kl", "expected_log_likelihood"))
    (tmp_path / "known.txt").write_text(known, encoding="utf-8")
    options = ["--adapter", "adapter.py", "--known-failures", "known.txt", "-rN"]
    ran = run_pytest(tmp_path, "--pyargs", "svgp_reference", *options, "-k", "gaussian-m")
    assert ran.stdout.count("RuntimeError: it requires grad") == 1
    assert ran.stdout.count("RuntimeError as in gaussian-matern32-ard.bound: it requires grad") == 1
    assert "0 of 45 answers agree, 6 do not, 3 are known failures, 36 were skipped" in ran.stdout


@pytest.mark.parametrize("program", ["make_mpmath", "check_numpy"])
def test_the_programs_share_nothing(program: str) -> None:
    text = (HERE / f"{program}.py").read_text(encoding="utf-8")
    imports = "\n".join(line for line in text.splitlines() if line.startswith(("import", "from")))
    assert "svgpbench" not in imports
    other = {"make_mpmath": ("numpy", "svgp_reference"), "check_numpy": ("mpmath", "make_mpmath")}
    assert not any(word in imports for word in other[program])
