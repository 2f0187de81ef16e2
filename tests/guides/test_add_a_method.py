"""docs/add-a-method.md, followed: another package's method is listed, checked, counted, timed and run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from guide import Guide

from svgpbench.plugins import framework_missing
from svgpbench.results.records import read_record, record_files

needs_torch = pytest.mark.skipif(
    framework_missing("torch") is not None, reason="torch is not installed"
)


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide(tmp_path, "add-a-method.md")


@needs_torch
def test_the_experiment_of_the_page_runs_alike_on_its_backends(guide: Guide) -> None:
    ran = guide.run_each(*guide.commands)
    assert [done.returncode for done in ran] == [0, 0], [done.stderr for done in ran]
    assert "half steps" in ran[-1].stdout
    records = [read_record(path) for path in record_files(guide.folder / "runs")]
    assert all(record.config.method.options == {"damping": 0.5} for record in records)
    bounds = [record.metrics["elbo"] for record in records if record.config.split.fold == 0]
    assert len(bounds) == 2
    assert np.ptp(bounds) <= 1e-9 * abs(bounds[0])


def test_its_facts_and_refusals_are_listed(guide: Guide) -> None:
    rows = json.loads(guide.run("list", "methods", "--json").stdout)["methods"]
    (row,) = [row for row in rows if row["name"] == "prior-covariance"]
    assert (row["parameters a latent"], row["options"]) == ("M", {"damping": 1.0})
    assert "student-t" in row["refused"]["its Newton step needs a log-concave likelihood"]


def test_its_steps_are_counted_and_timed(guide: Guide) -> None:
    name = ("--method", "prior-covariance", "--method", "prior-covariance damped")
    sizes = ("--problem", "tiny", "--repeats", "1", "--threads", "1", "--max-other-cores", "99")
    counted, timed = guide.run_each(
        ["cost", "prior-covariance", "--M", "500", "--json"],
        ["speed", *name, *sizes, "--backend", "numpy", "--method", "t-svgp", "--json"],
    )
    assert counted.returncode == 0, counted.stderr
    assert timed.returncode == 0, timed.stderr
    cells = json.loads(timed.stdout)["cells"]
    assert len(cells) == 15  # three methods, five steps
    figures = {c["method"]: c["figure"] for c in cells if c["step"] == "e_step"}
    assert len(set(figures.values())) == 3  # it need not show those of another method
