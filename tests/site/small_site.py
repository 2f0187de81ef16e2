"""A part of the committed records, the site that is made of it, and a planted claim of each grade."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from committed_records import RESULTS, worked

from svgpbench.experiments import Selection, load_experiment, resolve
from svgpbench.experiments.cell import identify
from svgpbench.papers import Paper, load_paper
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import Judged, Part, judge
from svgpbench.results.store import records_of
from svgpbench.site.building import Built, build_site
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.rules import VARIANTS

KEPT = ("adam2021-rates.parquet", "speed/adam2021-fig4.json", "speed/adam2021-fig5.json")
OTHERS = ("survival",)
ARTEFACTS = ("fig3", "fig3-ten-folds", "fig4", "fig5")
RESPONSE = "We ran this with another learning rate."
PLANTED = '<script>document.title = "planted"</script></script>'


class Made:
    """The site's folder and what it is of."""

    def __init__(self, folder: Path, results: Path) -> None:
        self.folder, self.results = folder, results
        self.judged = judged(results)
        self.built: Built = build_site(self.judged, results, folder)

    @property
    def pages(self) -> list[Path]:
        return sorted(self.folder.rglob("*.html"))


def part_of_results(folder: Path) -> Path:
    """An experiment as it is kept, and of Figure 3 one start a fold on one backend as working records."""
    for name in KEPT:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(RESULTS / name, folder / name)
    for name in OTHERS:
        shutil.copytree(RESULTS / name, folder / name)
    declared = load_experiment("adam2021-fig3")
    cells = resolve(declared, "paper", Selection(backends=["jax"]))
    return worked(folder, records_of(RESULTS, [identify(cell) for cell in cells]).records)


def judged(results: Path) -> list[tuple[Paper, Judged]]:
    """Claims of adam2021 on some of its artefacts; one of them says what would be a script, if it could."""
    whole = load_paper("adam2021")
    artefacts = tuple(
        one.model_copy(update={"smaller": "two folds"} if one.id == "fig3" else {})
        for one in whole.about.artefacts
        if one.id in ARTEFACTS
    )
    claims = [one for one in whole.claims if set(one.artefacts) <= set(ARTEFACTS)]
    texts = ("title", "claim", "finding")
    claims[0] = claims[0].model_copy(update=dict.fromkeys(texts, f"said {PLANTED}"))
    about = whole.about.model_copy(update={"artefacts": artefacts})
    experiments = {k: one for k, one in whole.experiments.items() if k in ARTEFACTS}
    paper = replace(whole, about=about, claims=tuple(claims), experiments=experiments)
    found = judge(paper, claims, results)
    return [(paper, one) for one in (*found, *planted(found[0]))]


def planted(like: Judged) -> list[Judged]:
    """A claim of each grade, with a core, an erratum, a condition and, of the first, a response.

    The last is a finding of ours.
    """
    effects = (Effect("boston", Outcome.better, 1.5, 1.25, 1.75, "on this split", True),)
    parts = (
        Part(
            "the core test", "core", Judgement(Grade.holds, effects), shows="smallest effect: 1 %"
        ),
        Part("the print errs here", "erratum", Judgement(Grade.holds, effects)),
        Part("at another rate", "condition", Judgement(Grade.fails, effects)),
    )
    found = [
        replace(
            like,
            claim=like.claim.model_copy(
                update={
                    "id": f"adam2021-{90 + place}",
                    "title": f"a claim: {grade}",
                    "claim": f"This claim is {grade}",
                    "correction": "n/b is missing",
                    "response": RESPONSE if place == 0 else "",
                }
            ),
            grade=grade,
            kind=("theory", "experiments", "speed")[place % 3],
            finding=f"It was found to be {grade}, by 1.5 nats.",
            parts=parts,
            steadiness={**dict.fromkeys(VARIANTS, grade), "threshold doubled": Grade.open},
        )
        for place, grade in enumerate(Grade)
    ]
    ours = like.claim.model_copy(update={"id": "adam2021-99", "title": "ours", "ours": True})
    return [*found, replace(found[0], claim=ours, kind="ours")]
