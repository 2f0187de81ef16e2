"""docs/add-a-likelihood.md and add-a-kernel.md, followed: what another package adds takes part."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from broken_package import install_broken
from guide import Guide

from svgpbench.plugins import framework_missing
from svgpbench.runner.records import read_record, record_files

PAGES = ("add-a-likelihood.md", "add-a-kernel.md")
needs_torch = pytest.mark.skipif(framework_missing("torch") is not None, reason="needs torch")


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide(tmp_path, *PAGES)


@needs_torch
def test_the_experiment_of_the_page_runs_and_its_records_say_every_option(guide: Guide) -> None:
    for command in guide.commands:
        done = guide.run(*command)
        assert done.returncode == 0, done.stderr
    assert "airfoil" in done.stdout
    records = [read_record(path) for path in record_files(guide.folder / "runs")]
    assert {record.config.backend.name for record in records} == {"numpy", "torch"}
    for record in records:
        config = record.config
        assert config.kernel.options == {"alpha": 0.5}
        assert config.inducing.options == {"column": 2}
        assert config.likelihood.options == {"nodes": 20, "rate": 3.0}
    bounds = [record.metrics["elbo"] for record in records if record.config.split.fold == 0]
    assert np.ptp(bounds) <= 1e-9 * abs(bounds[0])


OTHER_CELLS = [
    ("rate = 3.0", "rate = 2.5"),
    ("alpha = 0.5", "alpha = 0.6"),
    ("= 2\n[tr", "= 1\n[tr"),
]
SAME_CELLS = [(", rate = 2.0", ""), ("alpha = 1.0\n", ""), ("column = 0\n", "")]


def test_an_option_makes_another_cell_and_one_spelled_at_its_default_does_not(guide: Guide) -> None:
    file = guide.folder / "rivers.toml"
    text = file.read_text("utf-8").replace('["numpy", "torch"]', '["numpy"]\nsplit.run_folds = [0]')
    at_default = text.replace("3.0", "2.0").replace("0.5", "1.0").replace("= 2\n[tr", "= 0\n[tr")

    def cells(content: str) -> int:
        file.write_text(content, "utf-8")
        done = guide.run("run", "rivers.toml", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["cells"] == 1
        return len(record_files(guide.folder / "runs"))

    assert cells(text) == 1
    for number, (old, new) in enumerate(OTHER_CELLS, 2):
        assert old in text
        assert cells(text.replace(old, new)) == number
    known = cells(at_default)
    assert known == len(OTHER_CELLS) + 2
    for old, new in SAME_CELLS:
        assert old in at_default
        assert cells(at_default.replace(old, new)) == known


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "rate = 3.0",
            "rat = 3.0",
            "'rat' in [[problems]] no. 1: likelihood; did you mean 'rate'?",
        ),
        (
            "rate = 3.0",
            'rate = "3"',
            "option 'rate' of likelihood 'logistic' must be a number, got '3'",
        ),
        (
            "rate = 3.0",
            "rate = -1",
            "option 'rate' of likelihood 'logistic' must be greater than 0",
        ),
        ("alpha = 0.5", "alhpa = 0.5", "unknown key 'alhpa' in [kernel]; did you mean 'alpha'?"),
        ("column = 2", "column = 2.5", "option 'column' of initialisation of inducing inputs"),
        ('"logistic"', '"logistics"', "unknown likelihood 'logistics'; did you mean 'logistic'?"),
        (
            "likelihood =",
            'kernel = { name = "se", alpha = 2.0 }\nlikelihood =',
            "unknown key 'alpha' in [[problems]] no. 1: kernel; known: ard, init,",
        ),
    ],
)
def test_an_option_that_does_not_fit_is_one_line(
    guide: Guide, old: str, new: str, words: str
) -> None:
    file = guide.folder / "rivers.toml"
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    refused = guide.run("run", "rivers.toml")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("error: rivers.toml: ")
    assert words in refused.stderr


def test_an_option_that_is_a_key_of_its_table_is_refused(guide: Guide) -> None:
    module = guide.folder / "rivers" / "kernel.py"
    module.write_text(module.read_text("utf-8").replace("alpha", "variance"), "utf-8")
    file = guide.folder / "rivers.toml"
    file.write_text(file.read_text("utf-8").replace("alpha", "variance"), "utf-8")
    refused = guide.run("run", "rivers.toml")
    assert refused.returncode == 2
    assert (
        "'rational-quadratic' has an option 'variance', which is a key of its table"
        in refused.stderr
    )


def test_they_are_listed(guide: Guide) -> None:
    for section, name, options in (
        ("likelihoods", "logistic", {"negative_beta", "nodes", "rate"}),
        ("kernels", "rational-quadratic", {"alpha"}),
        ("inducing", "along-column", {"column"}),
    ):
        rows = json.loads(guide.run("list", section, "--json").stdout)[section]
        assert {row["name"]: set(row["options"]) for row in rows}[name] == options


@needs_torch
def test_the_check_compares_backends_on_them_and_says_what_it_lacks(guide: Guide) -> None:
    install_broken(guide.folder)
    done = guide.run("check", "--backend", "torch", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for what in ("likelihood 'logistic'", "kernel 'rational-quadratic'"):
        (line,) = [note for note in report["notes"] if note.startswith(what)]
        assert "no dense column" in line
        mine = [row for row in report["matrix"] if what.split("'")[1] in row["case"].split(" | ")]
        assert {row["group"] for row in mine} == {"values", "gradients", "e_step"}
        assert {"t-svgp", "q-svgp", "t-vgp", "orth"} <= {row["case"].split()[0] for row in mine}
    left_out = [note for note in report["notes"] if note.startswith("left out: ")]
    assert [note.split()[2] for note in left_out] == ["method", "likelihood", "kernel", "backend"]
    assert any(row["group"] == "dense" for row in report["matrix"])
