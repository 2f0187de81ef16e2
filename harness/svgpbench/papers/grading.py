"""Grade claims from records, with the steadiness of each grade or the reason why it has not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from svgpbench.errors import refuse_unknown
from svgpbench.json_values import json_value
from svgpbench.papers import Artefact, Claim, Paper
from svgpbench.papers.evidence.base import EvidenceFrame, PartOfPaper
from svgpbench.papers.evidence.computed import Computation, compute
from svgpbench.papers.findings import fill, with_explanation
from svgpbench.papers.grades import Fidelity, Grade, Judgement, combined
from svgpbench.papers.predicates.all_predicates import AnyPredicate
from svgpbench.papers.predicates.computations import ComputedPart
from svgpbench.papers.predicates.predicate import AtTheEnd
from svgpbench.stats.effects import Effect, with_interval
from svgpbench.stats.rules import LASTING, MOMENT_SEPARATOR, VARIANTS, WatchedRules

Role: TypeAlias = Literal["core", "erratum", "condition"]
Kind: TypeAlias = Literal[PartOfPaper, "ours"]


@dataclass(frozen=True)
class Part:
    """A part of a claim with its grade."""

    says: str
    role: Role
    judgement: Judgement
    why_not: str = ""  # if it has not run
    records: tuple[str, ...] = ()  # ids of the cells it uses
    variant_grades: Mapping[str, Grade] | None = None  # by variant of the rules
    stand_ins: tuple[str, ...] = ()  # labels of the methods that stand for printed rows
    shows: str = ""  # the smallest effect that its runs could show, beside the printed one

    @property
    def title(self) -> str:
        """Text of the part, with the stand-ins in brackets."""
        return f"{self.says} ({', '.join(self.stand_ins)})" if self.stand_ins else self.says

    @property
    def grade(self) -> Grade:
        """Grade of its judgement."""
        return self.judgement.grade


@dataclass(frozen=True)
class Judged:
    """A claim with its grade, finding and evidence."""

    claim: Claim
    grade: Grade
    kind: Kind
    finding: str  # the numbers that decide, or why it was not run
    condition: str  # data sets, splits, starts and backend of its evidence
    parts: tuple[Part, ...]
    steadiness: Mapping[str, Grade]  # grade under each variant of the rules
    commands: tuple[str, ...]

    @property
    def fidelity(self) -> Fidelity:
        """Fidelity to the paper of what its core parts rest on, as the claim states it."""
        return self.claim.fidelity

    @property
    def lasts(self) -> str:
        """`yes` if the grade would last for as many steps again, or the other grade; empty if neither.

        Only grades of experiments can change with the number of steps.
        """
        if self.kind not in ("experiments", "ours") or LASTING not in self.steadiness:
            return ""
        grade = self.steadiness[LASTING]
        return "yes" if grade == self.grade else str(grade)

    def parts_of_role(self, role: Role) -> list[Part]:
        """Return the parts with a role."""
        return [part for part in self.parts if part.role == role]

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of all cells that its parts use."""
        return tuple(dict.fromkeys(cell for part in self.parts for cell in part.records))

    @property
    def under_other_rules(self) -> dict[str, Grade]:
        """Grades under the variants of the rules but the one that tells whether the grade lasts."""
        return {name: grade for name, grade in self.steadiness.items() if name != LASTING}

    @property
    def turns(self) -> dict[str, Grade]:
        """Grades under the variants of the rules that change the grade."""
        return {
            name: grade for name, grade in self.under_other_rules.items() if grade != self.grade
        }

    @property
    def steady(self) -> str:
        """Text `steady`, or the other grades and their variants; empty if not run or not testable."""
        if self.grade in (Grade.not_run, Grade.not_testable):
            return ""
        groups: dict[Grade, list[str]] = {}
        for name, grade in self.turns.items():
            groups.setdefault(grade, []).append(name)
        listed = "; ".join(f"{grade}: {', '.join(names)}" for grade, names in groups.items())
        return listed or "steady"

    @property
    def effect(self) -> str:
        """Effects of the core parts as text for a table cell: one with its interval, else counts."""
        return effect_of(part.judgement for part in self.parts_of_role("core"))

    @property
    def only_effect(self) -> Effect | None:
        """Effect of the core parts if there is exactly one, else None."""
        core = self.parts_of_role("core")
        effects = [effect for part in core for effect in part.judgement.effects]
        return effects[0] if len(effects) == 1 else None

    def to_json(self) -> dict[str, Any]:
        """Return the whole entry as JSON values."""
        return {
            **self.claim.model_dump(mode="json", exclude={"parts", "finding"}),
            "grade": self.grade,
            "part_of_the_paper": self.kind,
            "finding": self.finding,
            "condition": self.condition,
            "steadiness": dict(self.steadiness),
            "lasts": self.lasts,
            "commands": list(self.commands),
            "parts": [
                {
                    "says": part.title,
                    "role": part.role,
                    "grade": part.grade,
                    "note": part.judgement.note,
                    "why_not_run": part.why_not,
                    "shows": part.shows,
                    "effects": json_value(part.judgement.effects),
                    "ranks": part.judgement.ranks and part.judgement.ranks.to_json(),
                }
                for part in self.parts
            ],
            "records": list(self.records),
        }


def effect_of(judgements: Iterable[Judgement]) -> str:
    """Return the effects of judgements as short text.

    It is a single effect with its interval, or several intervals without outcomes, or counts of outcomes.
    """
    effects = [effect for judgement in judgements for effect in judgement.effects]
    if len(effects) == 1:
        return with_interval(effects[0]) or effects[0].outcome
    counts = Counter(effect.outcome for effect in effects if effect.outcome)
    if not counts and effects and all(effect.low is not None for effect in effects):
        return "; ".join(map(with_interval, effects))
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


Compute: TypeAlias = Callable[[str, str], Computation | None]
"""Function from the names of a paper and a claim to the claim's computation, or None."""


def judge(
    paper: Paper, claims: Iterable[Claim], results: Path, compute: Compute = compute
) -> list[Judged]:
    """Grade some claims of a paper from the records in a folder, which may be empty."""
    claims = list(claims)
    # several claims rest on one artefact: its records are read once
    needed = sorted({part.artefact for claim in claims for part in claim.parts})
    evidence = {
        artefact.id: artefact.recorded.load(paper, artefact, results)
        for artefact in map(paper.artefact, needed)
        if artefact.recorded
    }
    judged = []
    for claim in claims:
        computation = compute(paper.name, claim.id) if is_computed(paper, claim) else None
        judged.append(_judged(paper, claim, computation, evidence, results))
    return judged


def is_computed(paper: Paper, claim: Claim) -> bool:
    """Return True if a part of the claim uses a computed artefact."""
    return any(paper.artefact(part.artefact).computed for part in claim.parts)


def _judged(
    paper: Paper,
    claim: Claim,
    computation: Computation | None,
    evidence: dict[str, EvidenceFrame],
    results: Path,
) -> Judged:
    parts = tuple(
        _judged_part(part, paper.artefact(part.artefact), computation, evidence)
        for part in claim.parts
    )
    steadiness: dict[str, Grade] = {}
    grade = Grade.not_testable
    if not claim.untestable:
        grade = _combined([part.grade for part in parts if part.role == "core"], parts)
    if grade not in (Grade.not_run, Grade.not_testable):
        # of core parts alone: conditions never vote, under no variant either
        core = [part.variant_grades for part in parts if part.variant_grades]
        steadiness = {name: _combined([x[name] for x in core], parts) for name in VARIANTS}
    deciding = [paper.artefact(name).evidence for name in claim.deciding]
    of_paper = {evidence.part_of_paper for evidence in deciding if evidence}
    of_records = [evidence[part.artefact] for part in claim.parts if part.artefact in evidence]
    conditions = [
        source.condition
        for source in (computation, *of_records)
        if source is not None and not (isinstance(source, EvidenceFrame) and source.why_not)
    ]
    commands = [
        artefact.recorded.command(paper, artefact, results)
        for artefact in map(paper.artefact, claim.artefacts)
        if artefact.recorded
    ]
    # by what decides: a claim with one timed artefact cannot be re-derived from traces alone
    kind: Kind = "experiments"
    if claim.ours:
        kind = "ours"
    elif of_paper == {"theory"} and all(deciding):
        kind = "theory"
    elif "speed" in of_paper:
        kind = "speed"
    return Judged(
        claim,
        grade,
        kind,
        _finding(paper, claim, grade, parts),
        "; ".join(dict.fromkeys(conditions)),
        parts,
        steadiness,
        tuple(commands),
    )


def _combined(grades: Iterable[Grade], parts: tuple[Part, ...]) -> Grade:
    """Combine grades of core parts; `holds` becomes `holds, corrected` if an erratum part holds."""
    grade = combined(grades)
    erratum_holds = any(part.grade == Grade.holds for part in parts if part.role == "erratum")
    return Grade.corrected if grade == Grade.holds and erratum_holds else grade


def _finding(paper: Paper, claim: Claim, grade: Grade, parts: tuple[Part, ...]) -> str:
    """Fill the claim's template, or return why it has not run."""
    if grade == Grade.not_run:
        reasons = [part.why_not for part in parts if part.why_not and part.role == "core"]
        if reasons:
            return "; ".join(dict.fromkeys(reasons))
        missing = [
            artefact.id
            for artefact in map(paper.artefact, claim.artefacts)
            if artefact.evidence is None
        ]
        return f"no experiment: {', '.join(missing)}" if missing else "no predicate in code"
    stated_parts = list(zip(claim.parts, parts, strict=True))
    by_key = {stated.key: part.judgement for stated, part in stated_parts if stated.key}
    filled = fill(claim.finding, by_key)
    if grade == Grade.not_testable:
        return f"{filled} Not testable here: {claim.untestable}."
    core = [(stated.says, part.judgement) for stated, part in stated_parts if stated.core]
    corrected = [f"The correction: {claim.correction}."] if grade == Grade.corrected else []
    return " ".join([with_explanation(filled, grade, core), *corrected])


def _judged_part(
    part: AnyPredicate,
    artefact: Artefact,
    computation: Computation | None,
    evidence: dict[str, EvidenceFrame],
) -> Part:
    role: Role = "core" if part.core else "erratum" if part.erratum else "condition"

    def not_run(why: str) -> Part:
        return Part(part.says, role, Judgement(Grade.not_run, ()), why)

    if artefact.computed:
        if computation is None:
            return not_run("nothing computes it")
        frame = computation.rows_of(part.checks if isinstance(part, ComputedPart) else ())
        _check_columns(part, frame)
        judgement, variants = judge_part(part, frame)
        return Part(part.says, role, judgement, variant_grades=_grades(variants))
    if part.artefact not in evidence:
        return not_run(f"no experiment: {part.artefact}")
    available = evidence[part.artefact]
    if why := available.why_not_compared(part.compared):
        return not_run(why)
    frame = available.rows_of(part.compared)
    _check_columns(part, frame)
    judgement, variants = judge_part(part, frame)
    lasting = variants[LASTING].effects if variants else ()
    shows = part.shown_by(judgement.effects, lasting) if isinstance(part, AtTheEnd) else ""
    stand_ins: tuple[str, ...] = ()
    if "label" in frame:  # step times have none
        # at other moments of training a method is named `label @ iteration`, which is no stand-in
        is_stand_in = frame["method"].str.partition(MOMENT_SEPARATOR)[0] != frame["label"]
        stand_ins = tuple(frame.loc[is_stand_in, "label"].unique())
    records = tuple(frame["cell_id"].unique())
    return Part(part.says, role, judgement, "", records, _grades(variants), stand_ins, shows)


def _check_columns(part: AnyPredicate, frame: pd.DataFrame) -> None:
    """Raise `UserError` if the frame lacks a column that the part names."""
    refuse_unknown(f"column of {part.artefact} in {part.says!r}", part.columns, frame.columns)


def _grades(variants: Mapping[str, Judgement]) -> dict[str, Grade] | None:
    return {name: judgement.grade for name, judgement in variants.items()} or None


def judge_part(part: AnyPredicate, frame: pd.DataFrame) -> tuple[Judgement, dict[str, Judgement]]:
    """Return the judgement of a part and, for a core part, that under each variant of the rules.

    A variant that differs only in settings that the part does not read has the same one.
    """
    rules = WatchedRules()
    judgement = part.judge(frame, rules)
    if not part.core:
        return judgement, {}
    return judgement, {
        name: part.judge(frame, variant) if rules.differ_in_what_was_read(variant) else judgement
        for name, variant in VARIANTS.items()
    }
