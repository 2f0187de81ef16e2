"""docs/add-a-method.md, add-a-likelihood.md and add-a-kernel.md, followed: what is added takes part."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from guide import Guide

from svgpbench.backends import framework_missing
from svgpbench.results.records import read_record, record_files

PAGES = ("add-a-likelihood.md", "add-a-kernel.md", "add-an-experiment.md")
FIGURE = '[[figures]]\nname = "cells"\nkind = "shades"\ncolour = "#4477AA"\n[[methods]]'
needs_torch = pytest.mark.skipif(
    framework_missing("torch") is not None, reason="torch is not installed"
)


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    """One package that has all of it: a likelihood, a kernel, an initialisation, a kind of figure."""
    return Guide(tmp_path, *PAGES)


@needs_torch
def test_the_experiment_of_the_page_runs_and_its_records_say_every_option(guide: Guide) -> None:
    guide.changed("rivers.toml", ("[[methods]]", FIGURE))
    plot = ("plot", "rivers.toml", "--figure", "cells", "--backend", "numpy", "--out", "cells.svg")
    *_, table, plotted = ran = guide.run_each(*guide.commands, plot)
    assert [done.returncode for done in ran] == [0, 0, 0], [done.stderr for done in ran]
    assert "airfoil" in table.stdout
    assert "#4477aa" in (guide.folder / "cells.svg").read_text("utf-8")
    records = [read_record(path) for path in record_files(guide.folder / "runs")]
    assert {record.config.backend.name for record in records} == {"numpy", "torch"}
    assert f"rivers: {len(records) // 2} cells. Drawn: numpy." in plotted.stdout
    for record in records:
        config = record.config
        assert config.kernel.options == {"alpha": 0.5}
        assert config.inducing.options == {"column": 2}
        assert config.likelihood.options == {"integrals": "adaptive", "nodes": 20, "rate": 3.0}
    bounds = [record.metrics["elbo"] for record in records if record.config.split.fold == 0]
    assert np.ptp(bounds) <= 1e-9 * abs(bounds[0])


OTHER_CELLS = [
    ("rate = 3.0", "rate = 2.5"),
    ("alpha = 0.5", "alpha = 0.6"),
    ("= 2\n[[p", "= 1\n[[p"),
]
SAME_CELLS = [(", rate = 2.0", ""), ("alpha = 1.0\n", ""), ("column = 0\n", "")]


def test_an_option_makes_another_cell_and_one_spelled_at_its_default_does_not(guide: Guide) -> None:
    one_cell = ('["numpy", "torch"]', '["numpy"]\nsplit.run_folds = [0]')
    at_default = (("3.0", "2.0"), ("0.5", "1.0"), ("= 2\n[[p", "= 0\n[[p"))
    guide.changed("rivers.toml", one_cell)
    guide.changed("rivers.toml", *at_default, to="default.toml")
    others = [
        guide.changed("rivers.toml", change, to=f"other{number}.toml")
        for number, change in enumerate(OTHER_CELLS)
    ]
    same = [
        guide.changed("default.toml", change, to=f"same{number}.toml")
        for number, change in enumerate(SAME_CELLS)
    ]

    def cells_after(*files: str) -> int:
        for done in guide.run_each(*(["run", file, "--json"] for file in files)):
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["cells"] == 1
        return len(record_files(guide.folder / "runs"))

    assert cells_after("rivers.toml", *others, "default.toml") == len(OTHER_CELLS) + 2
    assert cells_after(*same) == len(OTHER_CELLS) + 2


MISTAKES = [
    ("rate = 3.0", "rat = 3.0", "'rat' in [[problems]] no. 1: likelihood; did you mean 'rate'?"),
    ("rate = 3.0", 'rate = "3"', "option 'rate' of likelihood 'logistic' must be a number, got '3'"),
    ("rate = 3.0", "rate = -1", "option 'rate' of likelihood 'logistic' must be greater than 0"),
    ("alpha = 0.5", "alhpa = 0.5", "unknown key 'alhpa' in [kernel]; did you mean 'alpha'?"),
    ("column = 2", "column = 2.5", "option 'column' of initialisation of inducing inputs"),
    ('"logistic"', '"logistics"', "unknown likelihood 'logistics'; did you mean 'logistic'?"),
    ("likelihood =", 'kernel = { name = "se", alpha = 2.0 }\nlikelihood =',
     "unknown key 'alpha' in [[problems]] no. 1: kernel; known: ard, init,"),
]  # fmt: skip


def test_an_option_that_does_not_fit_is_one_line(guide: Guide) -> None:
    files = [
        guide.changed("rivers.toml", (old, new), to=f"mistake{number}.toml")
        for number, (old, new, _) in enumerate(MISTAKES)
    ]
    refusals = guide.run_each(*(["run", file] for file in files))
    for (*_, words), file, refused in zip(MISTAKES, files, refusals, strict=True):
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert refused.stderr.startswith(f"error: {file}: ")
        assert words in refused.stderr


def test_an_option_that_is_a_key_of_its_table_is_refused(guide: Guide) -> None:
    for file in ("rivers/kernel.py", "rivers.toml"):
        guide.changed(file, ("alpha", "variance"))
    refused = guide.run("run", "rivers.toml")
    assert refused.returncode == 2
    assert (
        "'rational-quadratic' has an option 'variance', which is a key of its table"
        in refused.stderr
    )


def test_they_are_listed(guide: Guide) -> None:
    listed = json.loads(guide.run("list", "--json").stdout)
    for section, name, options in (
        ("likelihoods", "logistic", {"integrals", "negative_beta", "nodes", "rate"}),
        ("kernels", "rational-quadratic", {"alpha"}),
        ("inducing", "along-column", {"column"}),
    ):
        assert {row["name"]: set(row["options"]) for row in listed[section]}[name] == options


@pytest.fixture
def method(tmp_path: Path) -> Guide:
    return Guide(tmp_path, "add-a-method.md")


@needs_torch
def test_the_experiment_of_the_page_runs_alike_on_its_backends(method: Guide) -> None:
    ran = method.run_each(*method.commands)
    assert [done.returncode for done in ran] == [0, 0], [done.stderr for done in ran]
    assert "half steps" in ran[-1].stdout
    records = [read_record(path) for path in record_files(method.folder / "runs")]
    assert all(record.config.method.options == {"damping": 0.5} for record in records)
    bounds = [record.metrics["elbo"] for record in records if record.config.split.fold == 0]
    assert len(bounds) == 2
    assert np.ptp(bounds) <= 1e-9 * abs(bounds[0])


def test_its_facts_and_refusals_are_listed(method: Guide) -> None:
    rows = json.loads(method.run("list", "methods", "--json").stdout)["methods"]
    (row,) = [row for row in rows if row["name"] == "prior-covariance"]
    assert (row["parameters a latent"], row["options"]) == ("M", {"damping": 1.0})
    assert "student-t" in row["refused"]["its Newton step needs a log-concave likelihood"]


def test_its_steps_are_counted_and_timed(method: Guide) -> None:
    name = ("--method", "prior-covariance", "--method", "prior-covariance damped")
    sizes = ("--problem", "tiny", "--repeats", "1", "--threads", "1", "--max-other-cores", "99")
    counted, timed = method.run_each(
        ["cost", "prior-covariance", "--M", "500", "--json"],
        ["speed", *name, *sizes, "--backend", "numpy", "--method", "t-svgp", "--json"],
    )
    assert counted.returncode == 0, counted.stderr
    assert timed.returncode == 0, timed.stderr
    cells = json.loads(timed.stdout)["cells"]
    assert len(cells) == 15  # three methods, five steps
    figures = {c["method"]: c["figure"] for c in cells if c["step"] == "e_step"}
    assert len(set(figures.values())) == 3  # it need not show those of another method
