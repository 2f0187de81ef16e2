"""Figures of synthetic records, and the limits that keep a diverging curve from flattening others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Cli
from command_table import ENTRIES
from own_experiment import write_own
from synthetic_records import one_adam_fold_fails, quick_cells, synthetic_record

from svgpbench.output.curves import Curve, curves, leaves, limits
from svgpbench.output.palette import METHOD_STYLES, OTHER_STYLES, line_styles
from svgpbench.results.frames import trace_frame


def curve(method: str, *values: float) -> Curve:
    mean = np.asarray(values)
    return Curve(method, np.arange(1.0, 1 + len(mean)), mean, np.zeros_like(mean), 2, None)


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_figure_is_drawn_with_a_caption_that_owns_up(
    cli: Cli, tmp_path: Path, quick_results: Path, suffix: str
) -> None:
    name = f"figure.{suffix}"
    outcome = cli("plot", "adam2021-fig3", "--results", quick_results, "--out", name)
    assert outcome.code == 0
    caption = " ".join(outcome.out.split())
    assert (tmp_path / name).stat().st_size > 10_000
    assert "Drawn: jax. torch, tensorflow: the final ELBO" in caption
    assert "2e-13 relative at most" in caption
    assert "(sonar, q-SVGP Adam: 1 not_pd)" in caption


def test_the_same_records_give_the_same_file(cli: Cli, tmp_path: Path, quick_results: Path) -> None:
    for name in ("a.svg", "b.svg"):
        cli("plot", "adam2021-fig3", "--results", quick_results, "--out", name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_diverging_curve_leaves_the_limits_to_the_others() -> None:
    good, alike, bad = curve("a", -5, -2, -1), curve("b", -6, -3, -1), curve("c", -9, -1e6, -400)
    low, high = limits([good, alike, bad], better="higher")
    assert -12 < low < -5
    assert -1 < high < 1
    assert leaves(good, low, high) is None
    assert leaves(bad, low, high) == -1e6


def test_limits_hold_every_curve_that_is_near() -> None:
    lines = [curve("a", 1.0, 0.5), curve("b", 1.2, 0.6), curve("c", 1.3, 0.8)]
    low, high = limits(lines, better="lower")
    assert all(leaves(line, low, high) is None for line in lines)


def test_a_curve_ends_where_its_first_fold_failed() -> None:
    cells = [
        cell for cell in quick_cells() if (cell.data.name, cell.backend.name) == ("sonar", "jax")
    ]
    traces = trace_frame([synthetic_record(c, fails=one_adam_fold_fails(c)) for c in cells])
    found = {line.method: line for line in curves(traces, "elbo")}
    assert (found["t-SVGP"].broke_at, len(found["t-SVGP"].mean)) == (None, 20)
    assert (found["q-SVGP Adam"].broke_at, len(found["q-SVGP Adam"].mean)) == (8, 7)


def test_a_method_looks_the_same_whatever_stands_beside_it() -> None:
    assert (
        line_styles(["theirs", "t-SVGP"])["t-SVGP"]
        == line_styles(["t-SVGP"])["t-SVGP"]
        == METHOD_STYLES["t-SVGP"]
    )
    assert line_styles(["theirs"])["theirs"] == OTHER_STYLES[0]


def test_sixteen_methods_of_one_s_own_are_told_apart_and_from_those_that_are_known() -> None:
    own = [f"theirs {place}" for place in range(16)]
    assert len({*line_styles(own).values(), *METHOD_STYLES.values()}) == 16 + len(
        {*METHOD_STYLES.values()}
    )


def test_every_declared_table_is_printed(cli: Cli, tmp_path: Path) -> None:
    path = write_own(tmp_path)
    path.write_text(path.read_text() + ENTRIES)
    assert cli("run", "mine.toml").code == 0
    short, long = cli("table", "mine.toml").out.split("mine, regression")[1:]
    assert ("RMSE" in short, "RMSE" in long) == (False, True)
    alone = cli("table", "mine.toml", "--table", "short").out
    assert ("NLPD" in alone, "ELBO " in alone) == (True, False)
