"""Select papers, artefacts and claims by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from svgpbench.errors import unknown
from svgpbench.papers import Artefact, Claim, Paper, load_paper, paper_folders


@dataclass(frozen=True)
class PaperSelection:
    """Selected artefacts of a paper, and the claims that need them."""

    paper: Paper
    artefacts: tuple[Artefact, ...]
    claims: tuple[Claim, ...]


def choose(names: Sequence[str]) -> list[PaperSelection]:
    """Select papers (`adam2021`), artefacts (`adam2021/fig3`) and claims (`adam2021-16`) by name.

    Without names all papers are selected. A claim adds its artefacts, and an artefact the claims that need
    it. Raises `UserError` with the nearest name if a name is unknown.
    """
    papers = [load_paper(name) for name in paper_folders()]
    all_names = {paper.name for paper in papers}
    all_names |= {f"{paper.name}/{x.id}" for paper in papers for x in paper.about.artefacts}
    all_names |= {claim.id for paper in papers for claim in paper.claims}
    for name in names:
        if name not in all_names:
            raise unknown("paper, artefact or claim", name, all_names)
    selections = []
    for paper in papers:
        of_paper = names or [paper.name]
        ids = {
            artefact.id
            for artefact in paper.about.artefacts
            if paper.name in of_paper or f"{paper.name}/{artefact.id}" in of_paper
        }
        claims = [x for x in paper.claims if x.id in of_paper or ids.intersection(x.artefacts)]
        ids |= {name for claim in claims if claim.id in of_paper for name in claim.artefacts}
        artefacts = [artefact for artefact in paper.about.artefacts if artefact.id in ids]
        if artefacts:
            selections.append(PaperSelection(paper, tuple(artefacts), tuple(claims)))
    return selections


def all_of(paper: Paper) -> PaperSelection:
    """Select all artefacts and claims of a paper."""
    return PaperSelection(paper, paper.about.artefacts, paper.claims)
