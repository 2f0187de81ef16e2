"""A plugin that raises when it is imported is one line, and takes nothing of the others down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken_package import install_broken
from guide import Guide

from svgpbench.checks.cases import cases

LINE = "'shaky' of package shaky 0.3 cannot be loaded: RuntimeError: needs libshaky 7"


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    install_broken(tmp_path)
    return Guide(tmp_path, "add-a-likelihood.md", "add-a-kernel.md")


def test_it_is_listed_with_the_package_and_the_reason_beside_all_others(guide: Guide) -> None:
    done, of_methods = guide.run_each(["list", "--json"], ["list", "methods"])
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    for section, other in (
        ("methods", "t-svgp"),
        ("likelihoods", "logistic"),
        ("kernels", "matern52"),
        ("inducing", "k-means"),
        ("backends", "numpy"),
        ("datasets", "airfoil"),
    ):
        rows = {row["name"]: row for row in listed[section]}
        assert LINE in rows["shaky"]["about"], section
        assert other in rows
    assert " ".join(of_methods.stdout.split()).count(LINE) == 1


def test_the_doctor_names_it_and_finds_nothing_wrong_with_the_rest(guide: Guide) -> None:
    done = guide.run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = [one for one in json.loads(done.stdout) if one["what"] == "shaky"]
    assert {one["state"] for one in found} == {"missing"}
    assert all(LINE in one["found"] for one in found)
    assert {one["found"].partition(" 'shaky'")[0] for one in found} >= {"method", "backend"}


def test_others_run_beside_it(guide: Guide) -> None:
    done = guide.run("run", "rivers.toml", "--backend", "numpy")
    assert done.returncode == 0, done.stderr


ASKED_FOR = {
    "method": ('name = "t-svgp"', 'name = "shaky"'),
    "kernel": ('name = "rational-quadratic"\nalpha = 0.5', 'name = "shaky"'),
    "initialisation": ('init = "along-column"\ncolumn = 2', 'init = "shaky"'),
    "likelihood": ('{ name = "logistic", rate = 3.0 }', '{ name = "shaky", rate = 3.0 }'),
    "backend": ('["numpy", "torch"]', '["shaky"]'),
}


def test_asked_for_by_name_it_is_one_line(guide: Guide) -> None:
    files = [
        guide.changed("rivers.toml", change, to=f"{kind}.toml")
        for kind, change in ASKED_FOR.items()
    ]
    for file, refused in zip(
        files, guide.run_each(*(["run", file] for file in files)), strict=True
    ):
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert refused.stderr.startswith(f"error: {file}: ")
        assert LINE in refused.stderr


def test_so_it_is_on_the_command_line(guide: Guide) -> None:
    commands = (("check", "--backend"), ("speed", "--method"), ("cost",))
    for refused in guide.run_each(*([*command, "shaky"] for command in commands)):
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert LINE in refused.stderr


def test_a_name_of_ours_stays_ours_and_its_turn_stays_the_same(guide: Guide) -> None:
    (guide.folder / "shaky.py").write_text(
        "from svgpbench.methods.dual import DualSVGP\n"
        "class methods(DualSVGP):\n    name = 'a-first'\n"
    )
    points = "[svgpbench.methods]\na-first = shaky:methods\nq-svgp = shaky:methods\n"
    (guide.folder / "shaky-0.3.dist-info" / "entry_points.txt").write_text(points)
    program = "from svgpbench.checks.cases import cases; print(*cases(full=False), sep='\\n')"
    ours = [str(case) for case in cases(full=False)]
    found = guide.run(program=program).stdout.splitlines()
    usual, compounds = ours[:-3], ours[-3:]  # sums and products of kernels come last
    assert (found[: len(usual)], found[-3:]) == (usual, compounds)
