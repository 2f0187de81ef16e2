"""docs/first-fit.ipynb, executed: it ends, and prints what the committed outputs show."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "first-fit.ipynb"


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """The plain text of every result."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data["text/plain"] for output in outputs if "data" in output]


@pytest.mark.long
def test_every_cell_runs_and_the_committed_outputs_are_its(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    shown = texts(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    printed = texts(notebook)
    assert len(printed) == len(shown) == 11
    posterior = "<Posterior sgpr, gaussian, matern52, n=331, D=10, M=30, ELBO "
    for text in (shown, printed):
        assert text[1].startswith(posterior)
    ours, theirs = (
        float(text[1].removeprefix(posterior).split(">")[0].split(",")[0])
        for text in (printed, shown)
    )
    assert ours == pytest.approx(theirs, rel=5e-4)  # L-BFGS stops elsewhere with another NumPy
    images = [o.data for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
    assert sum("image/png" in data for data in images) == 2
