"""A figure's caption counts what was drawn and owns up to what was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_records import cell, collected, record

from svgpbench.config import SplitConfig
from svgpbench.errors import UserError
from svgpbench.output.figure import draw_figure
from svgpbench.results.records import Record

TRACE = {"iteration": [1, 2], "elbo": [-2.0, -1.0], "nlpd": [2.0, 1.0]}


def traced(elbo: float = -1.0, **of: Any) -> Record:
    return record(cell(iterations=2, **of), elbo, trace=TRACE)


def failed(status: str, trace: dict[str, Any] | None = None, **of: Any) -> Record:
    return record(cell(iterations=2, **of), status=status, trace=trace)


def caption(folder: Path, *records: Record, **more: Any) -> str:
    return draw_figure(collected(*records, **more), folder / "figure.svg")


def test_cells_are_counted_whether_folds_seeds_or_splits_tell_them_apart(tmp_path: Path) -> None:
    folds = [traced(fold=fold) for fold in range(3)]
    assert "mean over 3 cells" in caption(tmp_path, *folds)
    both = [traced(fold=fold, seed=seed) for fold in range(3) for seed in range(2)]
    assert "mean over 6 cells" in caption(tmp_path, *both)
    splits = [traced(split=SplitConfig(kind="random", seed=seed)) for seed in range(4)]
    assert "mean over 4 cells" in caption(tmp_path, *splits)


def test_rows_of_several_counts_are_told_from_least_to_most(tmp_path: Path) -> None:
    records = [traced(fold=fold) for fold in range(3)]
    records += [traced(fold=fold, method="B") for fold in range(5)]
    records += [traced(fold=fold, data="boston") for fold in range(4)]
    assert "mean over 3–5 cells" in caption(tmp_path, *records)


def test_replicas_and_other_backends_are_not_counted_and_failed_cells_are(tmp_path: Path) -> None:
    records = [traced(), traced(fold=1), failed("not_pd", fold=2)]
    records += [traced(perturbation=1e-15), failed("oom", fold=1, perturbation=1e-15)]
    records += [traced(backend="torch", fold=fold) for fold in range(2)]
    text = caption(tmp_path, *records)
    assert "mean over 3 cells" in text
    assert "Drawn: jax." in text
    assert "where a cell failed (airfoil, A: 1 not_pd)." in text


def test_failures_are_counted_by_row_and_status(tmp_path: Path) -> None:
    records = [traced(), traced(method="B")]
    records += [failed("not_pd", fold=fold) for fold in (1, 2)]
    records += [failed("diverged", TRACE, fold=3), failed("oom", method="B", fold=1)]
    text = caption(tmp_path, *records)
    assert "(airfoil, A: 2 not_pd; airfoil, A: 1 diverged; airfoil, B: 1 oom)" in text
    assert "A cross" not in caption(tmp_path, traced(), traced(fold=1))


def test_other_backends_are_told_with_their_largest_difference(tmp_path: Path) -> None:
    records = [traced(-100.0), traced(-97.0, backend="torch"), traced(-98.0, backend="numpy")]
    text = caption(tmp_path, *records)
    assert "torch, numpy: the final ELBO of the same cell differs by 3e-02 relative" in text
    assert "differs" not in caption(tmp_path, records[0], traced(-97.0, fold=1))


def test_notes_of_the_records_come_last(tmp_path: Path) -> None:
    text = caption(tmp_path, traced(), notes=["2 of 9 cells have not run"])
    assert text.endswith("Note: 2 of 9 cells have not run.")
    svg = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "Note: 2 of 9 cells have not run." in svg  # it travels in the file


def test_records_without_a_trace_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no record of by-hand on jax has a trace"):
        caption(tmp_path, failed("oom"))
