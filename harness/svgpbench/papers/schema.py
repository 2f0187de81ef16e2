"""Schemas of `paper.toml` and `claims.toml`; an unknown key is an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from svgpbench.config import Strict, Text
from svgpbench.papers.evidence.base import RecordedEvidence
from svgpbench.papers.evidence.computed import ComputedEvidence
from svgpbench.papers.evidence.experiment import ExperimentEvidence
from svgpbench.papers.evidence.stability import StabilityEvidence
from svgpbench.papers.evidence.timing import TimingEvidence
from svgpbench.papers.evidence.training import TrainingEvidence
from svgpbench.papers.findings import placeholders
from svgpbench.papers.grades import Fidelity
from svgpbench.papers.predicates.all_predicates import AnyPredicate


class Erratum(Strict):
    """An error of the paper: its place, and the correct statement."""

    where: Text
    says: Text


class Deviation(Strict):
    """A difference of our runs from the print, with its reason."""

    what: Text
    why: Text


AnyEvidence = Annotated[
    ExperimentEvidence | TimingEvidence | TrainingEvidence | StabilityEvidence | ComputedEvidence,
    Field(discriminator="kind"),
]


class Artefact(Strict):
    """A figure or table of the paper, or a check of our own, and the evidence that it rests on."""

    id: Text
    what: Text
    settings: Text
    evidence: AnyEvidence | None = None
    printed: Text | None = None  # a CSV in the paper's folder
    missing: str = ""  # unavailable data, and the data used instead
    smaller: str = ""  # sizes below the printed ones at its preset

    @property
    def experiment(self) -> ExperimentEvidence | None:
        """Its evidence if it is an experiment's."""
        return self.evidence if isinstance(self.evidence, ExperimentEvidence) else None

    @property
    def recorded(self) -> RecordedEvidence | None:
        """Its evidence if records have it."""
        return self.evidence if isinstance(self.evidence, RecordedEvidence) else None

    @property
    def computed(self) -> ComputedEvidence | None:
        """Its evidence if it is computed at each look."""
        return self.evidence if isinstance(self.evidence, ComputedEvidence) else None

    @property
    def description(self) -> str:
        """Description of its evidence, or that nothing makes it."""
        if self.evidence:
            return self.evidence.description
        return "; ".join(filter(None, ["no experiment makes it", self.missing]))

    @model_validator(mode="after")
    def _figures_are_unique(self) -> Artefact:
        if self.computed:
            _refuse_twice("figure", [figure.name for figure in self.computed.figures], "name")
        return self


class PaperFile(Strict):
    """Content of `paper.toml`: summary, errata, deviations of our runs, and artefacts."""

    title: Text
    authors: Annotated[tuple[Text, ...], Field(min_length=1)]
    year: PositiveInt
    venue: Text
    url: Annotated[str, Field(pattern="^https://")] | None = None  # where it can be read
    says: Text
    not_printed: tuple[Text, ...] = ()
    errata: tuple[Erratum, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    artefacts: Annotated[tuple[Artefact, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _artefacts_are_unique(self) -> PaperFile:
        _refuse_twice("artefact", [artefact.id for artefact in self.artefacts])
        return self


class Claim(Strict):
    """One claim of a paper, in our words, with the parts that test it."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+-\d\d$")]
    title: Annotated[str, Field(min_length=1, max_length=65)]  # short enough for a table row
    where: Text  # place in the paper
    kind: Literal["exact", "count", "compare", "number", "picture"]
    fidelity: Fidelity  # of what its core parts rest on
    ours: bool = False  # a finding of this project, not a claim of the paper
    claim: Text
    run: str = ""
    predicate: Text  # in words
    depends_on: Text
    finding: Text  # a template, see `papers.findings`
    correction: str = ""  # of the printed error that an erratum part shows
    untestable: str = ""  # unavailable data or size
    response: str = ""  # the authors' reply
    artefacts: Annotated[tuple[Text, ...], Field(min_length=1)]
    parts: tuple[AnyPredicate, ...] = ()

    @property
    def core(self) -> tuple[AnyPredicate, ...]:
        """Parts that decide its grade."""
        return tuple(part for part in self.parts if part.core)

    @property
    def deciding(self) -> tuple[str, ...]:
        """Ids of the artefacts of its core parts; all its artefacts if no part is core."""
        return tuple(dict.fromkeys(part.artefact for part in self.core)) or self.artefacts

    @model_validator(mode="after")
    def _has_a_core(self) -> Claim:
        if self.untestable and self.core:
            raise ValueError("it is untestable and has a core part; leave one out")
        if self.parts and not (self.untestable or self.core):
            raise ValueError("no part of it is core; set core = true in the one that tests it")
        if bool(self.correction) != any(part.erratum for part in self.parts):
            raise ValueError(
                "a correction needs a part with erratum = true, and such a part needs it"
            )
        keys = [part.key for part in self.parts if part.key]
        _refuse_twice("part", keys, "key")
        for key, _ in placeholders(self.finding):
            if key not in keys:
                raise ValueError(
                    f"its finding names {key!r}, which is the key of none of its parts"
                )
        return self


class ClaimsFile(Strict):
    """Every claim of a paper."""

    claims: tuple[Claim, ...]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> ClaimsFile:
        _refuse_twice("claim", [claim.id for claim in self.claims])
        return self


def _refuse_twice(what: str, names: Iterable[str], key: str = "id") -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{what} {name!r} is there {times} times; change the {key}")
