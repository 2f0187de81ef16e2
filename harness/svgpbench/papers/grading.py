"""Grade claims from records, with the steadiness of each grade or the reason why it has not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from svgpbench.json_values import json_value
from svgpbench.papers import Artefact, Claim, Paper
from svgpbench.papers.evidence import curves, stability, timings
from svgpbench.papers.evidence.records import Computation, Evidence, command, compute, gather
from svgpbench.papers.findings import fill, with_divide
from svgpbench.papers.grades import Fidelity, Grade, Judgement, combined
from svgpbench.papers.predicates.all_predicates import AnyPredicate
from svgpbench.papers.predicates.computations import Computed
from svgpbench.stats.effects import Effect, with_interval
from svgpbench.stats.rules import AT, VARIANTS, WatchedRules

Role: TypeAlias = Literal["core", "erratum", "condition"]
Kind: TypeAlias = Literal["theory", "experiments", "speed"]


@dataclass(frozen=True)
class Part:
    """A part of a claim with its grade."""

    says: str
    role: Role
    judgement: Judgement
    why_not: str = ""  # if it has not run
    records: tuple[str, ...] = ()  # ids of the cells it uses
    under: Mapping[str, Grade] | None = None  # grade under each variant of the rules
    stand_ins: tuple[str, ...] = ()  # labels of the methods that stand for printed rows

    @property
    def title(self) -> str:
        """What it says, and the stand-ins in brackets."""
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
    fidelity: Fidelity
    kind: Kind
    finding: str  # the numbers that decide, or why it was not run
    condition: str  # data sets, splits, starts and backend of its evidence
    parts: tuple[Part, ...]
    steadiness: Mapping[str, Grade]  # grade under each variant of the rules
    commands: tuple[str, ...]

    def of(self, role: Role) -> list[Part]:
        """Return the parts with a role."""
        return [part for part in self.parts if part.role == role]

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of all cells that its parts use."""
        return tuple(dict.fromkeys(cell for part in self.parts for cell in part.records))

    @property
    def turns(self) -> dict[str, Grade]:
        """Grades under the variants of the rules that change the grade."""
        return {name: grade for name, grade in self.steadiness.items() if grade != self.grade}

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
        return effect_of(part.judgement for part in self.of("core"))

    @property
    def only_effect(self) -> Effect | None:
        """Effect of the core parts if there is exactly one, else None."""
        effects = [effect for part in self.of("core") for effect in part.judgement.effects]
        return effects[0] if len(effects) == 1 else None

    def to_json(self) -> dict[str, Any]:
        """Return the whole entry as JSON values."""
        return {
            **self.claim.model_dump(mode="json", exclude={"parts", "finding"}),
            "grade": self.grade,
            "fidelity": self.fidelity,
            "part_of_the_paper": self.kind,
            "finding": self.finding,
            "condition": self.condition,
            "steadiness": dict(self.steadiness),
            "commands": list(self.commands),
            "parts": [
                {
                    "says": part.title,
                    "role": part.role,
                    "grade": part.grade,
                    "note": part.judgement.note,
                    "why_not_run": part.why_not,
                    "effects": [json_value(vars(effect)) for effect in part.judgement.effects],
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
    effects = [effect for one in judgements for effect in one.effects]
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
    needed = {part.artefact for claim in claims for part in claim.parts}
    evidence = {
        name: found
        for name in sorted(needed)
        if (found := evidence_of(paper, paper.artefact(name), results)) is not None
    }
    return [
        _judged(
            paper,
            claim,
            compute(paper.name, claim.id) if is_computed(paper, claim) else None,
            evidence,
            results,
        )
        for claim in claims
    ]


def evidence_of(paper: Paper, artefact: Artefact, results: Path) -> Evidence | None:
    """Return an artefact's records of any kind; None if it declares none."""
    if artefact.id in paper.experiments:
        return gather(results, artefact, paper.experiments[artefact.id])
    if artefact.timing:
        return timings.load_timing(results, artefact.timing)
    if artefact.learning:
        return curves.load_curves(results, artefact.learning)
    return stability.load_stability(results, artefact.walks) if artefact.walks else None


def _command(paper: Paper, artefact: Artefact, results: Path) -> str:
    """Return the command that makes an artefact's records; empty if it declares none."""
    if artefact.id in paper.experiments:
        return command(paper.name, artefact, paper.experiments[artefact.id], results)
    if artefact.timing:
        return timings.command(paper, artefact.timing, results)
    if artefact.learning:
        return curves.command(artefact.learning, results)
    return stability.command(artefact.walks, results) if artefact.walks else ""


def is_computed(paper: Paper, claim: Claim) -> bool:
    """Return True if a part of the claim uses a computed artefact."""
    return any(paper.artefact(part.artefact).computed for part in claim.parts)


def _judged(
    paper: Paper,
    claim: Claim,
    computation: Computation | None,
    evidence: dict[str, Evidence],
    results: Path,
) -> Judged:
    parts = tuple(
        _computed(part, computation)
        if paper.artefact(part.artefact).computed
        else _part(part, paper.artefact(part.artefact), evidence)
        for part in claim.parts
    )
    grade = _grade(claim, parts)
    of_records = [evidence[part.artefact] for part in claim.parts if part.artefact in evidence]
    condition = "; ".join(
        dict.fromkeys(
            one.condition
            for one in (computation, *of_records)
            if one is not None and not (isinstance(one, Evidence) and one.why_not)
        )
    )
    commands = tuple(
        line for name in claim.artefacts if (line := _command(paper, paper.artefact(name), results))
    )
    return Judged(
        claim,
        grade,
        _fidelity(paper, claim),
        _kind(paper, claim),
        _finding(paper, claim, grade, parts),
        condition,
        parts,
        {} if grade == Grade.not_run or claim.untestable else _steadiness(parts),
        commands,
    )


def _grade(claim: Claim, parts: tuple[Part, ...]) -> Grade:
    """Grade a claim by its core parts; `holds` becomes `holds, corrected` if an erratum part holds."""
    if claim.untestable:
        return Grade.not_testable
    grade = combined(part.grade for part in parts if part.role == "core")
    errs = any(part.grade == Grade.holds for part in parts if part.role == "erratum")
    return Grade.corrected if grade == Grade.holds and errs else grade


def _steadiness(parts: tuple[Part, ...]) -> dict[str, Grade]:
    """Return the grade of a claim under each variant of the rules."""
    errs = any(part.grade == Grade.holds for part in parts if part.role == "erratum")
    found = {}
    for name in VARIANTS:
        grade = combined(part.under[name] for part in parts if part.under)
        found[name] = Grade.corrected if grade == Grade.holds and errs else grade
    return found


def _finding(paper: Paper, claim: Claim, grade: Grade, parts: tuple[Part, ...]) -> str:
    """Fill the claim's template, or return why it has not run."""
    if grade == Grade.not_run:
        return _why_not_run(paper, claim, parts)
    by_key = {
        stated.key: part.judgement
        for stated, part in zip(claim.parts, parts, strict=True)
        if stated.key
    }
    filled = fill(claim.finding, by_key)
    if grade == Grade.not_testable:
        return f"{filled} Not testable here: {claim.untestable}."
    core = [
        (stated.says, part.judgement)
        for stated, part in zip(claim.parts, parts, strict=True)
        if stated.core
    ]
    corrected = [f"The correction: {claim.correction}."] if grade == Grade.corrected else []
    return " ".join([with_divide(filled, grade, core), *corrected])


def _fidelity(paper: Paper, claim: Claim) -> Fidelity:
    """Return the fidelity of the core artefact furthest from the paper; without a core, of all artefacts."""
    deciding = [part.artefact for part in claim.core] or list(claim.artefacts)
    fidelities = [paper.artefact(name).fidelity for name in deciding]
    return max(fidelities, key=lambda fidelity: fidelity.distance)


def _kind(paper: Paper, claim: Claim) -> Kind:
    """Classify a claim by its core artefacts: computed, timed or other; without a core, by all of them."""
    deciding = [part.artefact for part in claim.core] or list(claim.artefacts)
    artefacts = [paper.artefact(name) for name in deciding]
    if all(artefact.computed for artefact in artefacts):
        return "theory"
    timed = any(artefact.timing or artefact.learning for artefact in artefacts)
    return "speed" if timed else "experiments"


def _role(part: AnyPredicate) -> Role:
    return "core" if part.core else "erratum" if part.erratum else "condition"


def _computed(part: AnyPredicate, computation: Computation | None) -> Part:
    if computation is None:
        return Part(part.says, _role(part), Judgement(Grade.not_run, ()), "nothing computes it")
    checks = part.checks if isinstance(part, Computed) else ()
    frame = computation.of(checks)
    judgement, under = judge_part(part, frame)
    return Part(part.says, _role(part), judgement, under=under)


def _part(part: AnyPredicate, artefact: Artefact, evidence: dict[str, Evidence]) -> Part:
    not_run = Judgement(Grade.not_run, ())
    if part.artefact not in evidence:
        return Part(part.says, _role(part), not_run, f"no experiment: {part.artefact}")
    found = evidence[part.artefact]
    if found.why_not:
        return Part(part.says, _role(part), not_run, found.why_not)
    if artefact.timing or artefact.learning:
        timed = set(found.frame["method"])
        if without := [name for name in part.compared if name not in timed]:
            where = (
                artefact.timing.record if artefact.timing else f"the runs of {artefact.learning}"
            )
            why = f"no times of {', '.join(without)} in {where}"
            return Part(part.says, _role(part), not_run, why)
    frame = found.of(part.compared)
    records = tuple(frame["cell_id"].unique())
    judgement, under = judge_part(part, frame)
    return Part(
        part.says,
        _role(part),
        judgement,
        records=records,
        under=under,
        stand_ins=_stand_ins(frame),
    )


def judge_part(
    part: AnyPredicate, frame: pd.DataFrame
) -> tuple[Judgement, dict[str, Grade] | None]:
    """Return the judgement of a part and, for a core part, its grade under each variant of the rules.

    A variant that differs only in settings that the part does not read has the same grade.
    """
    rules = WatchedRules()
    judgement = part.judge(frame, rules)
    if not part.core:
        return judgement, None
    return judgement, {
        name: part.judge(frame, variant).grade
        if rules.differ_in_what_was_read(variant)
        else judgement.grade
        for name, variant in VARIANTS.items()
    }


def _stand_ins(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the labels of the methods that stand for printed rows."""
    if "label" not in frame:  # such as step times
        return ()
    is_stand_in = frame["method"].str.partition(AT)[0] != frame["label"]
    return tuple(frame.loc[is_stand_in, "label"].unique())


def _why_not_run(paper: Paper, claim: Claim, parts: tuple[Part, ...]) -> str:
    """Return the reasons of the core parts; else the artefacts without an experiment; else a default text."""
    why = [part.why_not for part in parts if part.why_not and part.role == "core"]
    if why:
        return "; ".join(dict.fromkeys(why))
    artefacts = [paper.artefact(name) for name in claim.artefacts]
    known = {
        a.id for a in artefacts if a.computed or a.timing or a.walks or a.learning
    } | paper.experiments.keys()
    without = [artefact.id for artefact in artefacts if artefact.id not in known]
    return f"no experiment: {', '.join(without)}" if without else "no predicate in code"
