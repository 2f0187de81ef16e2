"""The figure of times against M shows medians and quartiles of the rounds, a line each for who was timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from committed_records import RESULTS
from matplotlib.figure import Figure

from svgpbench.papers import load_paper, times_figure
from svgpbench.papers.evidence.base import TimesFrame
from svgpbench.papers.evidence.timing import TimingEvidence
from svgpbench.papers.reproduction import write_recorded
from svgpbench.papers.times_figure import draw_times, styles_of

TIMING = TimingEvidence(
    kind="timing",
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


def timed() -> TimesFrame:
    rows = [
        (problem, method, turn, one, TIMING.record)
        for (problem, method), seconds in SECONDS.items()
        for turn, one in enumerate(seconds)
    ]
    columns = ["problem", "method", "round", "seconds", "cell_id"]
    frame = pd.DataFrame(rows, columns=columns)
    problems = pd.Categorical(frame["problem"], TIMING.problems)
    return TimesFrame(frame.assign(problem=problems), about="two threads")


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


def test_a_report_has_times_as_a_table_and_several_problems_as_a_figure(tmp_path: Path) -> None:
    paper = load_paper("adam2021")
    one, five = (
        write_recorded(paper, paper.artefact(name), RESULTS, tmp_path)
        for name in ("fig4-steps", "fig5")
    )
    assert [path.name for path in one.files] == ["times.md", "times.tex", "times.csv"]
    assert [path.name for path in five.files[:3]] == ["times.png", "times.pdf", "times.txt"]
    assert all(path.is_file() for path in (*one.files, *five.files))
    assert one.description == "times of speed/adam2021-fig5.json"
    assert five.figures[0].caption.startswith("adam2021, fig5: median and quartiles over ")
    (table,) = one.tables
    assert table.notes[0].startswith("Times: softmax10-M100, e_step + m_step, 2 threads")
    assert not one.notes and not one.command and not one.incomplete


def test_without_a_record_nothing_is_written_and_its_command_is_given(tmp_path: Path) -> None:
    paper = load_paper("adam2021")
    report = write_recorded(paper, paper.artefact("fig5"), tmp_path, tmp_path)
    assert report.notes == (f"no record speed/adam2021-fig5.json in {tmp_path}",)
    assert report.command.startswith("svgpbench speed --peers --problem softmax10-M")
    assert not report.files and not report.incomplete
    assert not list(tmp_path.iterdir())


def test_a_damaged_record_is_a_note_and_leaves_the_report_incomplete(tmp_path: Path) -> None:
    paper = load_paper("adam2021")
    (tmp_path / "speed").mkdir()
    (tmp_path / "speed" / "adam2021-fig5.json").write_text("{}")
    report = write_recorded(paper, paper.artefact("fig5"), tmp_path, tmp_path / "out")
    assert report.incomplete
    assert "is no record of" in report.notes[0]
