"""Which artefacts and claims a name brings, and what a caption says of the size of a run."""

from __future__ import annotations

from typing import Any

import pytest
from hand_records import cell

from svgpbench.config import InducingConfig, MethodConfig, SplitConfig
from svgpbench.papers import load_paper, paper_folders
from svgpbench.papers.evidence.experiment import ExperimentEvidence
from svgpbench.papers.reductions import scope
from svgpbench.papers.schema import Artefact
from svgpbench.papers.selection import choose

OF_FIGURE_3 = [claim.id for claim in load_paper("adam2021").claims if "fig3" in claim.artefacts]


def names(*asked: str) -> dict[str, tuple[list[str], list[str]]]:
    """By paper: artefacts and claims."""
    return {
        one.paper.name: ([x.id for x in one.artefacts], [claim.id for claim in one.claims])
        for one in choose(asked)
    }


def test_without_a_name_it_is_every_paper_whole() -> None:
    found = names()
    assert list(found) == list(paper_folders())
    for name, (artefacts, claims) in found.items():
        paper = load_paper(name)
        assert artefacts == [artefact.id for artefact in paper.about.artefacts]
        assert claims == [claim.id for claim in paper.claims]


def test_an_artefact_brings_every_claim_that_needs_it() -> None:
    assert names("adam2021/fig3") == {"adam2021": (["fig3"], OF_FIGURE_3)}
    assert {"adam2021-15", "adam2021-16"} < set(OF_FIGURE_3)


def test_a_claim_brings_its_artefacts_and_no_other_claim() -> None:
    paper = load_paper("adam2021")
    (claim,) = (claim for claim in paper.claims if claim.id == "adam2021-15")
    (artefacts, claims) = names("adam2021-15")["adam2021"]
    assert set(artefacts) == set(claim.artefacts)
    assert claims == ["adam2021-15"]


def test_names_of_several_papers_come_in_the_papers_order() -> None:
    found = names("kobe2021", "adam2021-16", "adam2021/fig2")
    assert list(found) == ["adam2021", "kobe2021"]
    assert found["adam2021"][0][:2] == ["fig2", "fig3"]
    assert len(found["kobe2021"][1]) == len(load_paper("kobe2021").claims)


def artefact(**more: Any) -> Artefact:
    return Artefact(id="fig1", what="a figure", settings="few", **more)


OWN = ExperimentEvidence(kind="experiment", experiment="x", preset="paper")
WHOLE = [
    cell(method=method, fold=fold, seed=seed)
    for method in ("A", "B", "C")
    for fold in range(5)
    for seed in (0, 1)
]
FEWER = [one for one in WHOLE if one.split.fold < 2 and one.method.label != "C" and not one.seed]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (WHOLE, "preset small"),
        (FEWER, "preset small, smaller than preset paper: 2 of 5 splits, 1 of 2 starts, 2 of 3 methods"),
        (
            [one.model_copy(update={"inducing": InducingConfig(count=7)}) for one in WHOLE],
            "preset small, smaller than preset paper: inducing.count 7 where it is 50",
        ),
        (
            [one.model_copy(update={"split": SplitConfig(fold=0)}) for one in WHOLE],
            "preset small, smaller than preset paper: 1 of 5 splits",
        ),
        ([one.model_copy(update={"method": MethodConfig(name="t-svgp", label="A")}) for one in WHOLE],
         "preset small, smaller than preset paper: 1 of 3 methods"),
    ],
)  # fmt: skip
def test_the_caption_says_what_a_preset_has_less_of(cells: Any, says: str) -> None:
    assert scope(artefact(evidence=OWN), "small", cells, WHOLE) == says


def test_what_the_paper_had_more_of_and_what_cannot_be_had_are_said() -> None:
    missing = artefact(missing="KUKA: a stand-in", smaller="8 sets")
    assert scope(missing, "", WHOLE, WHOLE) == (
        "the experiment as declared; smaller than in the paper: 8 sets; KUKA: a stand-in"
    )


def test_a_caption_says_what_an_artefact_has_less_of() -> None:
    small = artefact(evidence=OWN, smaller="20 000 rows")
    says = "preset paper; smaller than in the paper: 20 000 rows"
    assert scope(small, "paper", WHOLE, WHOLE) == says
