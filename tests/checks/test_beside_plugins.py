"""A third party's likelihood and method take part in checks, can be checked alone, and disturb no test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from svgpbench.checks.cases import MatrixCase, cases

TESTS = Path(__file__).parents[1]

MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from svgpbench.likelihoods.poisson import Poisson
from svgpbench.methods.dual import DualSVGP

@dataclass(frozen=True)
class Visits(Poisson):
    name: ClassVar[str] = "visits"

@dataclass(frozen=True)
class Mine(DualSVGP):
    name: ClassVar[str] = "mine"
"""

POINTS = """[svgpbench.likelihoods]
visits = faraway_model:Visits

[svgpbench.methods]
mine = faraway_model:Mine
"""

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package that has a likelihood and a method, as pip would leave it."""
    info = tmp_path / "faraway_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faraway-model\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "faraway_model.py").write_text(MODULE)
    return tmp_path


def python(installed: Path, *arguments: str) -> Done:
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_tests_of_our_own_likelihoods_pass_beside_another_s(installed: Path) -> None:
    tests = [
        TESTS
        / "checks/test_check_run.py::test_full_matrix_has_every_pair_and_the_subset_visits_everything",
        TESTS
        / "likelihoods/test_likelihoods.py::test_every_likelihood_of_one_latent_is_tested_here",
    ]
    done = python(installed, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *map(str, tests))
    assert (done.returncode, done.stdout[:3]) == (0, ".. "), done.stdout + done.stderr


def test_a_likelihood_and_a_method_of_another_can_be_checked_alone(installed: Path) -> None:
    check = ("svgpbench.cli", "check", "--backend", "torch", "--json")
    done = python(installed, *check, "--likelihood", "visits", "--method", "mine")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {row["case"].split(" | ")[1] for row in report["matrix"]} == {"visits"}
    assert {row["case"].split()[0] for row in report["matrix"]} == {"mine"}
    assert (report["identities"], report["rounding"]) == ([], [])
    wrong = python(installed, *check, "--likelihood", "visit")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "unknown likelihood 'visit'; did you mean 'visits'?" in wrong.stderr
    refused = python(installed, *check, "--method", "gpr", "--likelihood", "visits")
    assert refused.returncode == 2
    assert "nothing to check: gpr cannot take visits" in refused.stderr


# as if both were this package's own: its likelihoods and methods take turns, another's never did
OF_THIS_PACKAGE = """
import json, sys
from svgpbench import plugins
plugins._is_ours = lambda point: True
from dataclasses import astuple
from svgpbench.checks.cases import cases
print(json.dumps([[astuple(case) for case in cases(full=full)] for full in (False, True)]))
"""


def test_a_likelihood_and_a_method_more_of_this_package_move_no_other_case(installed: Path) -> None:
    program = installed / "listing.py"
    program.write_text(OF_THIS_PACKAGE)
    done = python(installed, "listing")
    assert done.returncode == 0, done.stderr
    for full, listed in zip((False, True), json.loads(done.stdout), strict=True):
        more = [MatrixCase(*fields) for fields in listed]
        names = {case.name for case in more}
        assert len(names) == len(more)
        of_both = [c for c in more if c.likelihood == "visits" or c.method.split()[0] == "mine"]
        assert len(set(more) - set(cases(full=full)) - set(of_both)) == 0
        assert set(cases(full=full)) <= set(more)
        visited = {c.method.split()[0] for c in of_both if c.likelihood == "visits"}
        assert visited >= {"t-svgp", "q-svgp", "orth", "hybrid", "mine"}


def test_a_check_that_compares_nothing_says_so(installed: Path) -> None:
    only = ("--method", "mine", "--likelihood", "visits", "--backend", "numpy")
    for how in ((), ("--quick",)):
        done = python(installed, "svgpbench.cli", "check", *only, *how)
        assert done.returncode == 1, done.stderr
        assert "nothing was compared" in done.stdout and "within tolerance" not in done.stdout


def test_the_quick_check_takes_another_s_likelihood(installed: Path) -> None:
    check = ("svgpbench.cli", "check", "--quick", "--backend", "torch", "--json")
    every = json.loads(python(installed, *check).stdout)
    alone = json.loads(python(installed, *check, "--likelihood", "visits").stdout)
    assert every["ok"] and alone["ok"]
    # the methods that need Gaussian noise do not take counts
    assert every["methods"] > alone["methods"] >= 5
