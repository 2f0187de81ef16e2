"""A stranger's backend in float32 alone is checked beside the float64 reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed import HERE, Place, register

from svgpbench.checks import run, run_checks
from svgpbench.checks.evaluate import Arrays
from svgpbench.checks.identities import IDENTITIES
from svgpbench.checks.matrix import bound
from svgpbench.checks.run import Share
from svgpbench.experiments.rounding_model import REPLICAS


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, HERE / "single")


def test_its_float32_cases_are_compared_and_the_rest_is_skipped_by_name(place: Place) -> None:
    report: Any = place.json("check", "--backend", "single")
    assert report["ok"] is True and report["failures"] == []
    compared = [row for row in report["matrix"] if row["pair"] == ["numpy", "single"]]
    assert {row["case"].rpartition(" ")[2] for row in compared} == {"float32"}
    assert {row["group"] for row in compared} >= {"values", "gradients", "m_trajectory"}
    assert all(row["tolerance"] >= bound(row["group"], "float32") for row in compared)
    assert all(row["worst"] > 1e-9 for row in compared if row["group"] == "values")
    assert {skip["why"] for skip in report["skipped"]} == {"it offers float32 alone"}
    skipped = {skip["what"] for skip in report["skipped"]}
    assert {f"identity {n}" for n in IDENTITIES} | {"trajectory 0"} <= skipped


def test_the_kit_asks_in_float32_what_float32_can_answer(place: Place) -> None:
    kit = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "--pyargs", "svgpbench.checks")
    for options in (
        ("--backend", "single", "-k", "ill_conditioned or cholesky or asarray"),
        ("--likelihood", "poisson", "--backend", "single"),
    ):
        done = place.python(*kit, *options)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "backend 'single' offers no float64" in done.stdout and "1 passed" in done.stdout


def test_a_last_backend_in_float32_leaves_the_replicas_to_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(HERE / "single", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(HERE / "single")

    def computed(share: Share, *_: object) -> Arrays:
        if share.backend == "single":
            return {f"trajectory|{i}|skipped": np.array("no float64") for i in share.replicas}
        gap = 1e-9 if share.backend == "torch" else 0.0
        return {f"trajectory|{i}": np.full(20, 1.0 + gap + 1e-15 * i) for i in share.replicas}

    monkeypatch.setattr(run, "run_share", computed)
    rounding = run_checks(["torch", "single"]).rounding
    assert rounding and not any(row.ok for row in rounding)
    assert all(row.perturbed == pytest.approx(REPLICAS * 1e-15, rel=0.1) for row in rounding)
