"""Figures of synthetic records: their captions, files, styles, and the tables beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli
from command_table import ENTRIES
from own_experiment import write_own

from svgpbench.output.palette import METHOD_STYLES, OTHER_STYLES, line_styles


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
