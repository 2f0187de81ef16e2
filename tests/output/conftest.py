"""Figures as matplotlib has them, in place of their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hand_records import collected
from matplotlib.figure import Figure

from svgpbench.output.figure import draw_figure
from svgpbench.output.figure_and_table_types import FigureKind
from svgpbench.results.records import Record


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Figure, str]]:
    """The figure that `draw_figure` would have saved, and its caption."""
    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: saved.append(figure))

    def call(kind: FigureKind, *records: Record) -> tuple[Figure, str]:
        caption = draw_figure(collected(*records), tmp_path / "figure.png", kind)
        return saved[-1], caption

    return call
