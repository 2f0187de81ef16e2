"""docs/add-an-experiment.md, followed step by step: own data, methods, figures, a table, a kind of figure."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from guide import DOCS, Guide

from svgpbench.metrics import METRICS
from svgpbench.plugins import FIGURES, load, plugins

PAGE = "add-an-experiment.md"


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Guide:
    """The experiment, its data, and the records of `svgpbench run`."""
    guide = Guide(tmp_path_factory.mktemp("tides"), PAGE)
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.0, 1.0, 80)
    rows = [f"{a:.6f},{np.sin(6 * a) + 0.3 * e:.6f}" for a, e in zip(t, rng.normal(size=80))]  # noqa: B905
    (guide.folder / "tides.csv").write_text("\n".join(["time,height", *rows]) + "\n")
    done = guide.run("run", "tides.toml", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "6 cells: 6 ok" in done.stdout
    assert re.search(r"numpy: ok, ELBO -\d+.*, NLPD \d.*, RMSE \d", done.stderr)
    return guide


def test_the_table_is_printed_in_every_form(guide: Guide) -> None:
    others = ("--metric", "mae", "--metric", "rmse", "--markdown")
    printed, as_json, as_csv, as_markdown = guide.run_each(
        ["table", "tides.toml", "--table", "scores"],
        *(["table", "tides.toml", *more] for more in (["--json"], ["--csv"], others)),
    )
    assert printed.returncode == 0, printed.stderr
    (header,) = (line for line in printed.stdout.splitlines() if line.startswith("data set"))
    assert header.split() == ["data", "set", "method", "n", "NLPD", "CRPS", "coverage", "nMAE"]
    assert "coverage: share of test targets within the central 95 %" in printed.stdout
    content = json.loads(as_json.stdout)
    assert list(content["metrics"]) == ["nlpd", "crps", "coverage", "nmae"]
    assert content["metrics"]["coverage"]["better"] == 0.95
    (small, large, _) = content["rows"]
    assert (small["method"], small["ok"]) == ("t-SVGP, M = 5", 2)
    assert large["crps_mean"] < small["crps_mean"]
    assert as_csv.stdout.count("tides,regression") == 3
    assert "| n | MAE | RMSE |" in as_markdown.stdout


def test_the_figures_are_drawn_one_or_all(guide: Guide) -> None:
    one, every, refused = guide.run_each(
        ["plot", "tides.toml", "--figure", "size", "--out", "size.pdf"],
        ["plot", "tides.toml"],
        ["plot", "tides.toml", "--out", "both.png"],
    )
    assert one.returncode == 0, one.stderr
    assert "against inducing.count" in one.stdout
    assert (guide.folder / "size.pdf").stat().st_size > 5_000
    assert every.returncode == 0, every.stderr
    drawn = {path.name for path in guide.folder.glob("*.png")}
    assert drawn == {"tides-progress.png", "tides-size.png"}
    captions = " ".join(every.stdout.split())
    assert "against seconds of training" in captions
    assert "processes that ran other cells too" in captions
    assert refused.returncode == 2
    assert "choose one with --figure: progress, size" in refused.stderr


def test_a_kind_of_figure_of_another_package_is_drawn(guide: Guide) -> None:
    shades = '  { name = "cells", kind = "shades", colour = "#4477AA" },\n]\ntables'
    guide.changed("tides.toml", ("]\ntables", shades), to="more.toml")
    guide.changed("more.toml", ("colour =", "color ="), to="mistake.toml")
    done, refused = guide.run_each(
        ["plot", "more.toml", "--figure", "cells", "--out", "cells.svg"],
        ["plot", "mistake.toml", "--figure", "cells"],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cells.svg\ntides: 6 cells. Drawn: numpy. ")
    assert "#4477aa" in (guide.folder / "cells.svg").read_text("utf-8")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: tides: unknown key 'color' in [[figures]] no. 3; did you mean 'colour'?\n"
    )


def test_the_document_names_every_kind_and_every_metric() -> None:
    page = (DOCS / PAGE).read_text("utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)) == {
        name
        for name, point in plugins(FIGURES).items()
        if point.value.startswith("svgpbench.") and load(FIGURES, name).draws == "records"
    }
    declared = page.partition("Metrics are declared in")[2].partition("\n## ")[0]
    assert METRICS.keys() <= set(re.findall(r"`(\w+)`", declared))
