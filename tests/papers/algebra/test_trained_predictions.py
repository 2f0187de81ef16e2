"""kobe2021's Figure 4.8 at the θ where the runs of its Figure 4.7 end, beside the records of those runs."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from committed_records import committed

from svgpbench_papers.kobe2021.algebra import predictions

ROOT = Path(__file__).parents[3]


def test_the_copied_hyperparameters_are_those_of_the_records() -> None:
    runs = pd.read_csv(predictions.TRAINED)
    assert runs.groupby("method").size().to_dict() == {"NGD": 10, "Adam": 10, "O(M)": 10}
    found = runs.set_index(["method", "split_seed", "seed"])
    seen = 0
    for record in committed("kobe2021-fig4.7"):
        c = record.config
        key = (c.method.title, c.split.seed, c.seed)
        if c.backend.name == "jax" and c.kernel.init == "mean-gaps" and key in found.index:
            last = [record.trace[x][-1] for x in ("variance", "lengthscale_mean", "elbo")]
            np.testing.assert_allclose(found.loc[key][["variance", "lengthscale", "elbo"]], last)
            seen += 1
    assert seen == 30


def test_the_script_writes_the_committed_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "trained.csv"
    monkeypatch.setattr(predictions, "TRAINED", copy)
    committed_text = (ROOT / "harness/svgpbench_papers/kobe2021/trained.csv").read_text()
    runpy.run_path(str(ROOT / "docs" / "_build" / "listings.py"))["write_trained"]()
    assert copy.read_text() == committed_text


def test_the_median_run_has_the_lower_middle_bound_of_the_first_split() -> None:
    runs = pd.read_csv(predictions.TRAINED)
    bounds = sorted(runs[(runs["method"] == "O(M)") & (runs["split_seed"] == 0)]["elbo"])
    assert predictions.median_run("O(M)")["elbo"] == bounds[2]


@pytest.mark.parametrize(("method", "apart"), [("NGD", 1e-6), ("Adam", 0.1)])
def test_the_best_q_has_the_bound_of_the_run(method: str, apart: float) -> None:
    """A wrong split, start, jitter or unit would be off by nats; Adam's q is not quite at rest."""
    bound = predictions.at_the_end(method)[2]
    assert 0.0 <= bound - predictions.median_run(method)["elbo"] + 1e-7 < apart


def test_om_has_a_higher_bound_than_its_projected_step_and_a_mean_that_is_little_rougher() -> None:
    full, diagonal = (predictions.at_the_end(name) for name in ("NGD", "O(M)"))
    assert diagonal[2] > predictions.median_run("O(M)")["elbo"] + 10.0
    roughness = [float(np.mean(np.diff(mean, 2) ** 2)) for mean, *_ in (full, diagonal)]
    assert 1.0 < roughness[1] / roughness[0] < 1.1


def test_the_figure_has_a_panel_a_method() -> None:
    frame = predictions.after_training()
    assert list(frame["panel"].unique()) == ["GP sample, NGD", "GP sample, Adam", "GP sample, O(M)"]
    assert set(frame["curve"]) == {"after training", "after training, band"}
