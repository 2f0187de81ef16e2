"""The check as a user runs it, and what its report says of a red one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from glob import glob
from io import StringIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from svgpbench.backends import load_backend
from svgpbench.checks import rounding, run_checks, worker
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import (
    COMPOUND_KERNELS,
    VARIANTS,
    build_model,
    cases,
    chosen_cases,
    likelihoods_of,
    small_problem,
)
from svgpbench.checks.completeness import Skip, omissions
from svgpbench.checks.dense import kernel_matrix
from svgpbench.checks.evaluate import GROUPS, Arrays
from svgpbench.checks.identities import IDENTITIES, IdentityResult, identities
from svgpbench.checks.matrix import CONDITION, CONDITIONS, MatrixEntry, bound, difference
from svgpbench.checks.report import Report
from svgpbench.checks.rounding import growth
from svgpbench.checks.run import Share, plan
from svgpbench.checks.worker import ops_for
from svgpbench.config import BackendConfig
from svgpbench.errors import UserError
from svgpbench.kernels.kernels import kernels
from svgpbench.likelihoods import likelihoods
from svgpbench.methods import AnyMethod, build_method
from svgpbench.ops import Ops


def test_full_matrix_has_every_pair_and_the_subset_visits_everything() -> None:
    full, subset = (
        [c for c in cases(full=whole) if c.kernel not in COMPOUND_KERNELS]
        for whole in (True, False)
    )
    pairs = {(m, x) for m in VARIANTS for x in likelihoods_of(m)}
    for dtype in ("float64", "float32"):
        assert sorted((c.method, c.likelihood) for c in full if c.dtype == dtype) == sorted(pairs)
    assert {c.method for c in subset} == set(VARIANTS)
    assert {c.likelihood for c in subset} == set(likelihoods())
    assert {c.kernel for c in subset} == set(kernels())
    for chosen in (subset, full):
        compiled = {VARIANTS[c.method][0] for c in chosen if c.trajectories == "compiled"}
        assert compiled == {name for name, _ in VARIANTS.values()}
    assert {c.name for c in subset} <= {c.name for c in full}
    assert "none" not in {c.trajectories for c in full}


def test_a_variant_more_moves_no_other_case(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {full: set(cases(full=full)) for full in (True, False)}
    more: dict[str, Any] = {}
    for title, variant in VARIANTS.items():
        more[title] = variant
        if title == "decoupled adam subset":
            more["decoupled new"] = VARIANTS["decoupled adam"]
    monkeypatch.setattr("svgpbench.checks.cases.VARIANTS", more)
    for full, kept in before.items():
        assert {c for c in cases(full=full) if c.method != "decoupled new"} == kept


def test_every_named_pair_of_a_method_and_a_likelihood_is_checked() -> None:
    """The subset has each variant with one likelihood; what it lacks of the named comes from the whole."""
    methods, names = ("t-svgp", "q-svgp", "orth", "gpr"), ("gaussian", "poisson", "student-t")
    chosen = chosen_cases(full=False, methods=methods, likelihoods=names)
    assert {(VARIANTS[c.method][0], c.likelihood) for c in chosen} == {
        *((method, name) for method in methods[:3] for name in names),
        ("gpr", "gaussian"),
    }
    assert len(chosen) == len(set(chosen))
    assert {c.likelihood for c in chosen_cases(full=False, likelihoods=names)} == set(names)
    assert chosen_cases(full=False) == list(cases(full=False))
    with pytest.raises(UserError, match="nothing to check: gpr cannot take poisson"):
        chosen_cases(full=False, methods=["gpr"], likelihoods=["poisson"])


def test_a_likelihood_that_no_method_takes_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.checks.cases.cases", lambda full: iter(()))
    with pytest.raises(UserError, match="nothing to check: no method takes poisson"):
        chosen_cases(full=False, likelihoods=["poisson"])


def test_float32_bounds_rest_on_the_problem_s_condition() -> None:
    problem = small_problem()
    theta = problem.theta(build_model("gaussian", "se"))
    worst = max(np.linalg.cond(kernel_matrix(k, theta, problem.Z, problem.Z)) for k in kernels())
    assert CONDITION / 1.1 < worst <= CONDITION
    for name, stated in CONDITIONS["data"].items():
        found = np.linalg.cond(kernel_matrix(name, theta, problem.X, problem.X))
        assert stated / 1.1 < found <= stated
    assert bound("values", "float32") < 1e-4


def test_difference_is_relative_to_the_array_and_infinite_for_nan() -> None:
    assert difference([1.0, 1e6], [1.0, 1e6 + 1.0]) == pytest.approx(1e-6, rel=1e-5)
    assert difference([0.0], [0.0]) == 0.0
    assert difference([np.nan], [np.nan]) == np.inf
    assert difference([1.0], [[1.0]]) == np.inf


# `make check` runs them on every backend
@pytest.mark.parametrize("ops", ["numpy", "torch"], indirect=True)
def test_identities_hold(ops: Ops) -> None:
    few = ("bernoulli-logit", "softmax", "robust-max")
    found = list(identities(ops, tuple(likelihoods()) if ops.name == "numpy" else few))
    assert [i.name for i in found] == list(IDENTITIES)
    assert [i for i in found if not i.ok] == []


def test_a_step_of_another_size_does_not_reach_sgpr() -> None:
    ops = load_backend("numpy")
    b = Bench(ops, build_model("gaussian", "se"), build_method("t-svgp", {}), small_problem())
    best = float(b.bound(b.e_step(b.start, b.full, 1.0), b.full))
    assert float(b.bound(b.e_step(b.start, b.full, 0.9), b.full)) < best - 1e-3


def test_the_exact_diagonal_step_needs_projected_steps_that_stop_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check, tolerance = IDENTITIES["exact diagonal step is stationary"]
    exact, projected = (VARIANTS[f"diagonal-precision {v}"] for v in ("exact", "projected-b"))
    monkeypatch.setitem(VARIANTS, "diagonal-precision projected-b", exact)
    assert check(load_backend("numpy"), ()) == np.inf
    monkeypatch.setitem(VARIANTS, "diagonal-precision projected-b", projected)
    monkeypatch.setitem(VARIANTS, "diagonal-precision exact", projected)
    assert check(load_backend("numpy"), ()) > 1e5 * tolerance


def test_report_is_red_for_each_kind_of_failure() -> None:
    good = MatrixEntry(
        "m | l | k | float64", "values", 1e-15, "values/elbo", ("numpy", "jax"), 1e-10
    )
    bad = MatrixEntry("m | l | k | float64", "values", float("inf"), "values/mu", ("a", "b"), 1e-10)
    wrong = IdentityResult("steps agree", "a = b", "jax", 1.0, 1e-8)
    assert Report(["numpy"], False, [good], [], [], []).ok
    assert not Report(["numpy"], False, [bad], [], [], []).ok
    assert not Report(["numpy"], False, [good], [wrong], [], []).ok
    assert not Report(["numpy"], False, [good], [], [], ["jax: exit 1"]).ok
    nothing = Report(["numpy"], False, [], [], [], [])  # nothing measured proves nothing
    assert not nothing.ok
    assert [line.value for line in nothing.lines()] == ["nothing was compared"]
    text = json.dumps(Report(["numpy"], False, [bad], [wrong], [], []).to_json(), allow_nan=False)
    assert '"worst": null' in text


def test_rounding_goes_red_where_backends_part_sooner_than_one_from_itself() -> None:
    own = [[1.0 + 1e-15] * 20]
    assert all(r.ok for r in growth({"a": [1.0] * 20, "b": [1.0 + 2e-15] * 20}, own, "a"))
    assert not any(r.ok for r in growth({"a": [1.0] * 20, "b": [1.0 + 1e-9] * 20}, own, "a"))


def test_a_trajectory_that_ends_early_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = load_backend("numpy")
    failed = SimpleNamespace(run=lambda: SimpleNamespace(trace=[{"elbo": -3.0}, {"elbo": None}]))
    monkeypatch.setattr(rounding, "Trainer", lambda *_: failed)
    short = rounding.trajectory(ops)
    assert short[0] == -3.0 and np.all(np.isnan(short[1:]))
    whole = [-3.0] * rounding.ITERATIONS
    assert not any(r.ok for r in growth({"a": whole, "b": short}, [whole], "a"))


@pytest.mark.long  # `make check` runs the command on every backend
def test_command_exits_0_and_prints_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "svgpbench.cli", "check", "--backend", "torch", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    assert report["backends"] == ["numpy", "torch"]
    assert {row["group"] for row in report["matrix"]} >= {"values", "dense", "m_trajectory"}
    assert len(report["identities"]) == 2 * len(IDENTITIES)
    assert report["rounding"]


@pytest.mark.skipif(bool(glob("/dev/nvidia[0-9]*")), reason="has an accelerator")
def test_a_device_that_is_not_there_is_refused_before_anything_is_computed() -> None:
    with pytest.raises(UserError, match=r"^backend 'torch' has no device 'cuda' here; see `svgpb"):
        run_checks(["torch"], device="cuda")


def test_shares_of_backends_are_on_the_device_and_the_reference_is_not() -> None:
    chosen = list(cases(full=False))[:2]
    configs = [BackendConfig(name="numpy"), BackendConfig(name="torch")]
    shares = plan(configs, chosen, full=False, device="cuda")
    assert {share.device for share in shares} == {"cuda"}
    assert ops_for("numpy", "", "cuda", "float32").device == "cpu"


def test_identities_run_where_the_cases_are_and_apart_where_all_likelihoods_take_part() -> None:
    for full, wanted in (
        (False, [("float64", True, False), ("float32", False, True)]),
        (True, [("float64", False, False), ("", True, True), ("float32", False, False)]),
    ):
        both = list(cases(full=full))[:2]
        shares = plan([BackendConfig(name="jax")], both, full=full)
        of = [(*{fields["dtype"] for _, fields in share.cases}, "")[0] for share in shares]
        found = [(bool(share.identities), bool(share.replicas)) for share in shares]
        assert [(x, *y) for x, y in zip(of, found, strict=True)] == wanted


def test_the_reference_computes_a_case_once_for_both_dtypes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = []

    def counted(ops: Ops, *_: object) -> Arrays:
        computed.append(ops.dtype)
        return {"values/elbo": np.ones(1)}

    monkeypatch.setattr(worker, "evaluate", counted)
    single = [case for case in cases(full=False) if case.method == "gpr"]
    both = [(i, asdict(case)) for i, case in enumerate(single)]
    for backend, wanted in (("numpy", ["float64"]), ("torch", ["float64", "float32"])):
        computed.clear()
        out = worker.run_task(asdict(Share(backend, "", "cpu", both)))
        assert computed == wanted
        assert {"0|values/elbo", "1|values/elbo", "0|source", "1|source"} == set(out)


def test_unknown_backend_is_one_line() -> None:
    with pytest.raises(UserError, match="did you mean 'jax'"):
        run_checks(["jaxx"])


def test_what_a_backend_does_not_offer_is_a_word_in_the_matrix_and_one_line() -> None:
    entry = MatrixEntry(
        "m | l | k | float64", "values", 1e-15, "values/elbo", ("numpy", "x"), 1e-10
    )
    skips = [Skip("x", f"{m} | l | k | float32", g, "no float32") for m in "mn" for g in GROUPS]
    skips += [Skip("x", "m | l | k | float64", "gradients", "no autodiff")]
    skips += [Skip("x", f"identity {n}", "", "no autodiff") for n in ("a", "b c")]
    report = Report(["numpy", "x"], False, [entry], [], [], ["x: dead"] * 6, [], skips)
    assert not report.ok and replace(report, failures=[]).ok
    console = Console(width=100, file=StringIO())
    console.print(*report.tables())
    rows = [line.split() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert ["m", "1", "1e-15", "skip", "–", "–", "–", "–"] in rows
    assert ["n,", "float32", "1", *["skip"] * 5, "–"] in rows
    assert [line.value for line in report.lines()] == [
        "x skips 2 float32 cases: no float32",
        "x skips grads of 1 float64 cases, identities a, b c: no autodiff",
        "x: dead (6 times)",
    ]


def test_a_case_that_raises_is_named_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(ops: Ops, model: object, method: AnyMethod, *_: object) -> Arrays:
        if method.name == "gpr":
            raise ValueError("out of\npaper")
        return {f"{group}/elbo": np.ones(1) for group in GROUPS}

    monkeypatch.setattr(worker, "evaluate", computed)
    both = [case for case in cases(full=False) if case.name.startswith(("gpr", "sgpr |"))]
    both = [case for case in both if case.dtype == "float64"]
    numbered = [(i, asdict(case)) for i, case in enumerate(both)]
    out = worker.run_task(asdict(Share("numpy", "", "cpu", numbered)))
    said = list(omissions(BackendConfig(name="numpy"), both, out))
    assert said[0] == f"numpy: {both[0].name}: ValueError: out of"
    assert [line for line in said if "sgpr |" in line] == []


def test_a_trajectory_that_raises_is_named_and_what_was_computed_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(ops: Ops, replica: int) -> list[float]:
        if replica:
            raise ValueError("out of paper")
        return [1.0]

    monkeypatch.setattr(worker, "trajectory", failing)
    out = worker.run_task(asdict(Share("numpy", "", "cpu", replicas=[0, 1])))
    assert out["trajectory|0"] == [1.0]
    said = list(omissions(BackendConfig(name="numpy"), [], out))
    assert said[0] == "numpy: trajectory 0: ValueError: out of paper"
