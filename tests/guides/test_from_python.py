"""docs/from-python.md and docs/first-fit.ipynb, followed: every line of their code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbclient import NotebookClient

from svgpbench.backends import framework_missing

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "from-python.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
MINE = """
name = "mine"
backends = ["numpy"]
training = { em_iterations = 2, m_steps = 1 }

[inducing]
count = 5

[[problems]]
data = [{ name = "mine", path = "my.csv", target = "height", task = "regression" }]
likelihood = { name = "gaussian" }

[[methods]]
name = "t-svgp"
"""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a reader of the page has: a table, a file of their own, and an experiment on it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["left", "right"])
    y = pd.Series(np.sin(X["left"]) + 0.1 * rng.normal(size=60), name="height")
    X.assign(height=y).to_csv(tmp_path / "my.csv", index=False)
    (tmp_path / "my.toml").write_text(MINE)
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    labels = np.where(y > 0.0, "high", "low")
    return {"X": X, "y": y, "X_new": X, "y_new": y, "labels": labels}


def test_a_fit_and_what_it_leaves(names: dict[str, Any]) -> None:
    exec(BLOCKS[0], names)  # noqa: S102 - the page's own code
    assert {"nlpd", "crps", "coverage"} <= names["posterior"].score(names["X"], names["y"]).keys()
    assert names["posterior"].facts.ended == "settled"
    assert Path("height.npz").is_file()


@pytest.mark.skipif(framework_missing("torch") is not None, reason="torch is not installed")
def test_tables_of_an_experiment_file_as_arguments(names: dict[str, Any]) -> None:
    exec(BLOCKS[0].splitlines()[0], names)  # noqa: S102
    exec(f"found = {BLOCKS[1]}", names)  # noqa: S102
    assert names["found"].facts.class_labels == ("high", "low")
    assert list(names["found"].trace["iteration"]) == [1, *range(10, 101, 10)]


def test_estimators_and_numbers_of_inducing_points(names: dict[str, Any]) -> None:
    exec(BLOCKS[0], names)  # noqa: S102
    exec(BLOCKS[2], names)  # noqa: S102
    assert names["mean"].shape == names["std"].shape == (60,)
    table = BLOCKS[3].replace("compare_inducing_counts(X", "table = compare_inducing_counts(X")
    exec(table, names)  # noqa: S102
    assert names["table"]["inducing"].tolist() == [10, 20, 40]


def test_a_graph_predicts_the_same(names: dict[str, Any]) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    exec(BLOCKS[0], names)  # noqa: S102
    (block,) = (block for block in BLOCKS if "to_onnx" in block)
    exec(block, names)  # noqa: S102
    predicted = names["posterior"].predict(names["X_new"])
    np.testing.assert_allclose(names["mean"], predicted["mean"], atol=1e-8)
    np.testing.assert_allclose(names["variance"], predicted["variance"], atol=1e-8)


def test_records_frames_and_claims(names: dict[str, Any]) -> None:
    code = BLOCKS[-1].replace('backends=["jax"]', 'backends=["numpy"]')
    lines, asked = code.rsplit("check([", maxsplit=1)  # minutes: `svgpbench check` has its tests
    assert asked.startswith('"torch"])')
    exec(lines, names)  # noqa: S102
    assert [record.status for record in names["records"]] == ["ok"] * 5
    final = names["finals"](names["records"])
    assert len(names["traces"](names["records"])) == 2 * len(final) == 10
    assert names["table"]("my.toml")["method"].tolist() == ["t-svgp"]
    graded = names["claims"]("adam2021-01", results="results")
    assert graded["grade"].tolist() == ["holds, corrected"]


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """The plain text of every result."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data["text/plain"] for output in outputs if "data" in output]


@pytest.mark.long
def test_every_cell_runs_and_the_committed_outputs_are_its(tmp_path: Path) -> None:
    notebook = nbformat.read(DOCS / "first-fit.ipynb", as_version=4)
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
