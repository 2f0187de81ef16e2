"""A claim about rates reads the walks of a survival map: which of them, and what where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from svgpbench.benchmarks.records import Status, append
from svgpbench.benchmarks.stability.plan import read_stability_plan
from svgpbench.benchmarks.stability.records import StabilityRecord
from svgpbench.papers import load_paper
from svgpbench.papers.evidence.stability import load_stability
from svgpbench.papers.grading import judge
from svgpbench.papers.predicates.rates import Stands

PLAN = read_stability_plan()


def walk(
    folder: Path,
    status: Status,
    rate: float,
    *,
    method: str = "t-svgp",
    seed: int = 0,
    **changes: Any,
) -> None:
    library = "gpflow" if method == "natgrad" else "svgpbench"
    others = {name: changes.pop(name) for name in ("steps", "plan") if name in changes}
    point = PLAN.centre.model_copy(update={"rate": rate, **changes})
    append(
        folder,
        StabilityRecord(
            run=PLAN.cell("naval", library, method, point, seed)._replace(**others),
            status=status,
            step=PLAN.steps,
        ),
    )


def test_walks_are_those_at_the_centre_along_its_rates(tmp_path: Path) -> None:
    folder = tmp_path / "survival"
    walk(folder, "ok", 0.1)
    walk(folder, "not_pd", 0.3, seed=2)
    walk(folder, "ok", 1.0, method="natgrad")
    walk(folder, "timeout", 1.0)  # says nothing of the method
    walk(folder, "crashed", 0.03)
    for other in (
        {"dtype": "float32"},
        {"jitter": 0.0},
        {"inducing": 20},
        {"steps": 7},
        {"plan": "a"},
    ):
        walk(folder, "not_pd", 0.1, **other)
    frame = load_stability(tmp_path, "survival").frame
    rows = frame[["method", "rate", "seed", "lived"]].itertuples(index=False)
    assert {tuple(row) for row in rows} == {
        ("t-SVGP", 0.1, 0, True),
        ("t-SVGP", 0.3, 2, False),
        ("GPflow", 1.0, 0, True),
    }
    assert set(frame["cell_id"]) == {"survival/svgpbench.jsonl", "survival/gpflow.jsonl"}
    assert load_stability(tmp_path, "survival").condition == "3 runs of 1000 steps, 1 problem"


def test_a_claim_on_rates_is_decided_by_walks_and_says_how_they_are_made(tmp_path: Path) -> None:
    paper = load_paper("adam2021")
    (claim,) = [claim for claim in paper.claims if claim.id == "adam2021-27"]
    folder = tmp_path / "survival"
    for seed in range(3):
        walk(folder, "ok", 1.0, seed=seed)
    walk(folder, "not_pd", 1.0, method="natgrad", seed=1)
    (found,) = judge(paper, [claim], tmp_path)
    gpflow = [
        part.grade
        for stated, part in zip(claim.parts, found.parts, strict=True)
        if isinstance(stated, Stands) and "GPflow" in stated.methods
    ]
    assert gpflow == ["holds"]
    assert found.commands[0] == f"svgpbench survive --results {folder}"
    (nothing,) = judge(paper, [claim], tmp_path / "elsewhere")
    assert f"no runs in {tmp_path}/elsewhere/survival" in {
        part.why_not.partition(";")[0] for part in nothing.parts
    }
