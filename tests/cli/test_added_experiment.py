"""docs/add-an-experiment.md, followed step by step: own data, methods, figures, a table, a kind of figure."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from svgpbench.metrics import METRICS
from svgpbench.plugins import FIGURES, plugins

DOCUMENT = (Path(__file__).parents[2] / "docs" / "add-an-experiment.md").read_text("utf-8")
Command = Callable[..., subprocess.CompletedProcess[str]]


def block(name: str) -> str:
    """The text of a file as the document has it."""
    (text,) = re.findall(rf"```\w+\n# {re.escape(name)}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment, its data, and the records of `svgpbench run`."""
    folder = tmp_path_factory.mktemp("tides")
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.0, 1.0, 80)
    rows = [f"{a:.6f},{np.sin(6 * a) + 0.3 * e:.6f}" for a, e in zip(t, rng.normal(size=80))]  # noqa: B905
    (folder / "tides.csv").write_text("\n".join(["time,height", *rows]) + "\n")
    (folder / "tides.toml").write_text(block("tides.toml"), "utf-8")
    done = command_in(folder)("run", "tides.toml", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "6 cells: 6 ok" in done.stdout
    assert re.search(r"numpy: ok, ELBO -\d+.*, NLPD \d.*, RMSE \d", done.stderr)
    return folder


def command_in(folder: Path) -> Command:
    path = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "svgpbench.cli", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path, "COLUMNS": "160"},
        )

    return run


def test_the_table_is_printed_in_every_form(folder: Path) -> None:
    command = command_in(folder)
    printed = command("table", "tides.toml", "--table", "scores")
    assert printed.returncode == 0, printed.stderr
    (header,) = (line for line in printed.stdout.splitlines() if line.startswith("data set"))
    assert header.split() == ["data", "set", "method", "n", "NLPD", "CRPS", "coverage", "nMAE"]
    assert "coverage: share of test targets within the central 95 %" in printed.stdout
    content = json.loads(command("table", "tides.toml", "--json").stdout)
    assert list(content["metrics"]) == ["nlpd", "crps", "coverage", "nmae"]
    assert content["metrics"]["coverage"]["better"] == 0.95
    (small, large, _) = content["rows"]
    assert (small["method"], small["ok"]) == ("t-SVGP, M = 5", 2)
    assert large["crps_mean"] < small["crps_mean"]
    assert command("table", "tides.toml", "--csv").stdout.count("tides,regression") == 3
    others = command("table", "tides.toml", "--metric", "mae", "--metric", "rmse", "--markdown")
    assert "| n | MAE | RMSE |" in others.stdout


def test_the_figures_are_drawn_one_or_all(folder: Path) -> None:
    command = command_in(folder)
    one = command("plot", "tides.toml", "--figure", "size", "--out", "size.pdf")
    assert one.returncode == 0, one.stderr
    assert "against inducing.count" in one.stdout
    assert (folder / "size.pdf").stat().st_size > 5_000
    every = command("plot", "tides.toml")
    assert every.returncode == 0, every.stderr
    assert {path.name for path in folder.glob("*.png")} == {"tides-progress.png", "tides-size.png"}
    assert "against seconds of training" in every.stdout
    assert "processes that ran other cells too" in every.stdout
    refused = command("plot", "tides.toml", "--out", "both.png")
    assert refused.returncode == 2
    assert "choose one with --figure: progress, size" in refused.stderr


def test_a_kind_of_figure_of_another_package_is_drawn(folder: Path) -> None:
    (folder / "shades.py").write_text(block("shades.py"), "utf-8")
    info = folder / "shades-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shades\nVersion: 1.0\n")
    named = block("pyproject.toml").replace("project.entry-points.", "").replace('"', "")
    (info / "entry_points.txt").write_text(named)
    more = '[[figures]]\nname = "cells"\nkind = "shades"\ncolour = "#4477AA"\n'
    (folder / "more.toml").write_text(block("tides.toml") + more, "utf-8")
    command = command_in(folder)
    done = command("plot", "more.toml", "--figure", "cells", "--out", "cells.svg")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == "cells.svg\ntides: 6 cells. Drawn: numpy. " + done.stdout.partition("numpy. ")[2]
    )
    assert "#4477aa" in (folder / "cells.svg").read_text("utf-8")
    (folder / "more.toml").write_text(
        block("tides.toml") + more.replace("colour =", "color ="), "utf-8"
    )
    refused = command("plot", "more.toml", "--figure", "cells")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: tides: unknown key 'color' in [[figures]] no. 3; did you mean 'colour'?\n"
    )


def test_the_document_names_every_kind_and_every_metric() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE)) == {
        name for name, point in plugins(FIGURES).items() if point.value.startswith("svgpbench.")
    }
    declared = DOCUMENT.partition("Metrics are declared in")[2].partition("\n## ")[0]
    assert METRICS.keys() <= set(re.findall(r"`(\w+)`", declared))
