"""What the pages add, all of it installed beside one broken package, in one `svgpbench check`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from guide import Guide, install_broken

from svgpbench.backends import framework_missing

pytestmark = pytest.mark.skipif(
    framework_missing("torch") is not None, reason="torch is not installed"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("added")
    Guide(folder, "add-a-method.md")
    Guide(folder, "add-a-likelihood.md", "add-a-kernel.md", "add-an-experiment.md")
    install_broken(folder)
    done = Guide(folder, "add-a-backend.md").run("check", "--backend", "steady", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_backend_is_held_to_the_reference(report: dict[str, Any]) -> None:
    assert report["backends"] == ["numpy", "steady"]
    assert {tuple(row["pair"]) for row in report["matrix"]} >= {("numpy", "steady")}


def test_a_method_has_its_variants_and_no_dense_column(report: dict[str, Any]) -> None:
    mine = [row for row in report["matrix"] if row["case"].startswith("prior-covariance")]
    assert {row["case"].split(" | ")[0] for row in mine} == {
        "prior-covariance",
        "prior-covariance damped",
    }
    assert {"values", "e_trajectory", "m_trajectory"} <= {row["group"] for row in mine}
    assert "dense" not in {row["group"] for row in mine}
    assert [note for note in report["notes"] if note.startswith("method 'prior-covariance' has no")]


@pytest.mark.parametrize("what", ["likelihood 'logistic'", "kernel 'rational-quadratic'"])
def test_a_likelihood_and_a_kernel_are_compared_with_every_method(
    report: dict[str, Any], what: str
) -> None:
    (line,) = [note for note in report["notes"] if note.startswith(what)]
    assert "no dense column" in line
    mine = [row for row in report["matrix"] if what.split("'")[1] in row["case"].split(" | ")]
    assert {row["group"] for row in mine} == {"values", "gradients", "e_step"}
    assert {"t-svgp", "q-svgp", "t-vgp", "orth"} <= {row["case"].split()[0] for row in mine}


def test_what_is_broken_is_left_out_with_a_line_each(report: dict[str, Any]) -> None:
    left_out = [note for note in report["notes"] if note.startswith("left out: ")]
    assert [note.split()[2] for note in left_out] == ["method", "likelihood", "kernel", "backend"]
    assert any(row["group"] == "dense" for row in report["matrix"])
