"""`check --quick`: real backends agree, and a backend that differs or fails is named."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svgpbench.checks import quick, quick_check, worker
from svgpbench.checks.cases import cases
from svgpbench.checks.evaluate import Arrays
from svgpbench.checks.quick import GROUPS
from svgpbench.checks.run import Share
from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError


def test_torch_takes_numpy_s_steps_and_numpy_those_of_dense_algebra() -> None:
    report = quick_check(["torch"])
    assert report.ok
    numpy, torch = report.backends
    assert set(numpy.worst) == {"dense"}
    assert set(torch.worst) == set(GROUPS) - {"dense"}
    assert max(*numpy.worst.values(), *torch.worst.values()) <= 1e-10
    assert report.methods >= 10
    assert numpy.seconds > 0 < torch.seconds


@pytest.fixture
def two_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick checks of two methods."""
    few = [case for case in cases(full=False) if case.method in ("gpr", "t-svgp tied-projected")]
    monkeypatch.setattr(quick, "chosen_cases", lambda **_: few)


def computed(share: Share) -> Arrays:
    """Return NumPy's arrays in place of those of another backend."""
    return worker.run_task(asdict(share) | {"backend": "numpy", "mode": ""})


@pytest.mark.parametrize("name", ["values/elbo", "gradients/kernel", "e_step/"])
def test_a_backend_with_another_number_is_named_with_the_array(
    name: str, two_methods: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(share: Share, _: Path) -> Arrays:
        arrays = computed(share)
        if share.backend == "torch":
            key = next(k for k in arrays if k.partition("|")[2].startswith(name))
            arrays[key] = arrays[key] * (1 + 1e-8)
        return arrays

    monkeypatch.setattr(quick, "run_share", wrong)
    report = quick_check(["torch"])
    assert not report.ok
    assert not report.backends[0].out_of_tolerance
    (line,) = report.backends[1].out_of_tolerance
    assert name in line
    assert [str(each.value) for each in report.lines()] == [f"torch: {line}"]


def test_a_process_that_fails_is_a_failure_of_its_backend(
    two_methods: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(share: Share, _: Path) -> Arrays:
        if share.backend == "torch":
            raise RuntimeError("exit -9: no output")
        return computed(share)

    monkeypatch.setattr(quick, "run_share", dying)
    report: Any = quick_check(["torch"]).to_json()
    assert not report["ok"]
    assert report["agreement"][1]["out_of_tolerance"] == ["exit -9: no output"]
    assert json.dumps(report, allow_nan=False)


@pytest.mark.parametrize("dies", [True, False])
def test_what_the_reference_cannot_compute_is_its_own_failure(
    dies: bool, two_methods: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole process of NumPy died, or one of its two cases raised."""

    def failing(share: Share, _: Path) -> Arrays:
        arrays = computed(share)
        if share.backend == "torch":
            return arrays
        if dies:
            raise RuntimeError("exit -9: no output")
        return {"0|failed": np.array("no VJP")} | {k: x for k, x in arrays.items() if k[0] == "1"}

    monkeypatch.setattr(quick, "run_share", failing)
    report = quick_check(["torch"])
    assert not report.ok
    assert [x.name for x in report.backends if x.out_of_tolerance] == ["numpy"]
    assert bool(report.backends[1].worst) is not dies


def test_quick_and_full_exclude_each_other_and_an_unknown_backend_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(["check", "--quick", "--full"]) == 2
    assert "--quick and --full exclude each other" in capsys.readouterr().err
    with pytest.raises(UserError, match="did you mean 'jax'"):
        quick_check(["jaxx"])
