"""The figure of times against M shows medians and quartiles of the rounds, a line each for who was timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from svgpbench.errors import UserError
from svgpbench.papers import load_paper, times_figure
from svgpbench.papers.evidence.timings import TimingEvidence
from svgpbench.papers.reproduction import write_times
from svgpbench.papers.schema import Timing
from svgpbench.papers.times_figure import draw_times, styles_of

TIMING = Timing(
    record="speed/mine.json",
    problems=("softmax10-M25", "softmax10-M500"),
    steps=("e_step", "m_step"),
)
SECONDS = {
    ("softmax10-M25", "jax t-svgp"): (0.001, 0.002, 0.003, 0.004, 0.009),
    ("softmax10-M500", "jax t-svgp"): (0.1, 0.2, 0.3),
    ("softmax10-M25", "gpflow natgrad"): (0.005,),
    ("softmax10-M500", "gpflow natgrad"): (0.5, 0.7),
}


def timed() -> TimingEvidence:
    rows = [
        (problem, method, turn, one, TIMING.record)
        for (problem, method), seconds in SECONDS.items()
        for turn, one in enumerate(seconds)
    ]
    columns = ["problem", "method", "round", "seconds", "cell_id"]
    frame = pd.DataFrame(rows, columns=columns)
    problems = pd.Categorical(frame["problem"], TIMING.problems)
    return TimingEvidence(frame.assign(problem=problems), about="two threads")


def test_a_line_each_with_medians_and_quartiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    real = times_figure.save

    def kept(figure: Figure, paths: tuple[Path, ...], caption: str) -> None:
        figures.append(figure)
        real(figure, paths, caption)

    monkeypatch.setattr(times_figure, "save", kept)
    caption = draw_times(timed(), TIMING, tmp_path / "times.png")
    assert (tmp_path / "times.png").stat().st_size > 1000
    assert caption == (
        "median and quartiles over 1–5 rounds of the milliseconds of e_step + m_step against M: two threads."
    )
    (panel,) = figures[0].axes
    ours, theirs = panel.containers
    line, _, (bars,) = ours
    assert list(line.get_xdata()) == [25, 500]
    assert list(line.get_ydata()) == pytest.approx([3.0, 200.0])
    ends = [sorted(segment[:, 1]) for segment in bars.get_segments()]
    assert np.array(ends) == pytest.approx(np.array([[2.0, 4.0], [150.0, 250.0]]))
    assert list(theirs[0].get_ydata()) == pytest.approx([5.0, 600.0])
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")


def test_backends_differ_in_colour_and_methods_in_dashes() -> None:
    styles = styles_of(["jax t-svgp", "jax q-svgp", "torch t-svgp", "gpflow natgrad"])
    colours, dashes = zip(*styles.values(), strict=True)
    assert colours[0] == colours[1]
    assert len(set(colours)) == 3
    assert dashes[0] == dashes[2]
    assert len(set(dashes)) == 3


def test_without_a_record_and_for_one_problem_nothing_is_drawn(tmp_path: Path) -> None:
    paper = load_paper("adam2021")
    assert write_times(paper, paper.artefact("fig4-steps"), tmp_path, tmp_path).files == ()
    with pytest.raises(UserError, match=r"^no record speed/adam2021-fig5\.json in "):
        write_times(paper, paper.artefact("fig5"), tmp_path, tmp_path)
    assert not list(tmp_path.iterdir())
