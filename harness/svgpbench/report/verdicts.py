"""Claims to verdicts: what the records say of each, or why they say nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from svgpbench.cells.outcome import finite
from svgpbench.papers import Artefact, Claim, Paper
from svgpbench.papers.of_computations import Computed
from svgpbench.papers.predicates import AnyPredicate
from svgpbench.papers.schema import AT
from svgpbench.papers.verdict import Effect, Finding, Verdict, combined, on_stand_in
from svgpbench.report import timings, walks
from svgpbench.report.evidence import Computation, Evidence, command, compute, gather


@dataclass(frozen=True)
class Part:
    """A part of a claim, judged."""

    says: str
    finding: Finding
    why_not: str = ""  # where it has not run
    records: tuple[str, ...] = ()  # ids of the cells that it rests on


@dataclass(frozen=True)
class Judged:
    """A claim with what came of it."""

    claim: Claim
    verdict: Verdict
    condition: str  # what it was decided on, or why it was not run
    parts: tuple[Part, ...]
    commands: tuple[str, ...]

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of all cells that it rests on."""
        return tuple(dict.fromkeys(cell for part in self.parts for cell in part.records))

    @property
    def effect(self) -> str:
        """The figures in a cell of a table: one with its interval, else how often what came out."""
        return effect_of(part.finding for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """The whole entry."""
        return {
            **self.claim.model_dump(mode="json", exclude={"parts"}),
            "verdict": self.verdict,
            "condition": self.condition,
            "commands": list(self.commands),
            "parts": [
                {
                    "says": part.says,
                    "verdict": part.finding.verdict,
                    "why_not_run": part.why_not,
                    "effects": [finite(vars(effect)) for effect in part.finding.effects],
                    "ranks": part.finding.ranks and part.finding.ranks.to_json(),
                }
                for part in self.parts
            ],
            "records": list(self.records),
        }


def effect_of(findings: Iterable[Finding]) -> str:
    """The figures of findings in a few words."""
    effects = [effect for finding in findings for effect in finding.effects]
    if len(effects) == 1:
        return with_interval(effects[0]) or effects[0].outcome
    counts = Counter(effect.outcome for effect in effects if effect.outcome)
    if not counts and all(effect.low is not None for effect in effects):
        return "; ".join(map(with_interval, effects))
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def with_interval(effect: Effect) -> str:
    """A number and its interval, as many digits as tell them apart."""
    if effect.value is None:
        return ""
    if effect.low is None or effect.high is None:
        return f"{effect.value:+.3g}"
    return f"{effect.value:+.3g} [{effect.low:+.3g}, {effect.high:+.3g}]"


Compute: TypeAlias = Callable[[str, str], Computation | None]
"""From a paper and a claim to what is computed for it."""


def judge(
    paper: Paper, claims: Iterable[Claim], results: Path, compute: Compute = compute
) -> list[Judged]:
    """What the records in a folder say of some claims of a paper; a folder without any is no mistake."""
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
    """The records that an artefact has, of whatever kind; None where it has none to read."""
    if artefact.id in paper.experiments:
        return gather(results, artefact, paper.experiments[artefact.id])
    if artefact.timing:
        return timings.timed(results, artefact.timing)
    return walks.walked(results, artefact.walks) if artefact.walks else None


def _command(paper: Paper, artefact: Artefact, results: Path) -> str:
    """What makes an artefact's records; empty where nothing does."""
    if artefact.id in paper.experiments:
        return command(paper.name, artefact, paper.experiments[artefact.id], results)
    if artefact.timing:
        return timings.command(artefact.timing, results)
    return walks.command(artefact.walks, results) if artefact.walks else ""


def is_computed(paper: Paper, claim: Claim) -> bool:
    """Whether a part of the claim rests on what is computed."""
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
        else _part(part, evidence)
        for part in claim.parts
    )
    verdict = combined(part.finding.verdict for part in parts)
    if claim.scale == "missing":
        verdict = on_stand_in(verdict)
    commands = tuple(
        line for name in claim.artefacts if (line := _command(paper, paper.artefact(name), results))
    )
    if verdict == Verdict.not_run:
        condition = _why_not_run(paper, claim, parts)
    else:
        of_records = [evidence[part.artefact] for part in claim.parts if part.artefact in evidence]
        condition = "; ".join(
            dict.fromkeys(x.condition for x in (computation, *of_records) if x is not None)
        )
        if claim.scale == "missing":
            condition = f"{_missing(paper, claim)}; {condition}"
    return Judged(claim, verdict, condition, parts, commands)


def _computed(part: AnyPredicate, computation: Computation | None) -> Part:
    if computation is None:
        return Part(part.says, Finding(Verdict.not_run, ()), "nothing computes it")
    checks = part.checks if isinstance(part, Computed) else ()
    return Part(part.says, part.judge(computation.of(checks)))


def _part(part: AnyPredicate, evidence: dict[str, Evidence]) -> Part:
    not_run = Finding(Verdict.not_run, ())
    if part.artefact not in evidence:
        return Part(part.says, not_run, f"no experiment: {part.artefact}")
    found = evidence[part.artefact]
    if found.why_not:
        return Part(part.says, not_run, found.why_not)
    frame = found.of(part.compared)
    says = f"{part.says}{_stand_ins(frame)}"
    return Part(says, part.judge(frame), records=tuple(frame["cell_id"].unique()))


def _stand_ins(frame: pd.DataFrame) -> str:
    """Which methods stand for rows of a printed table, where some do."""
    if "label" not in frame:  # times, which are by method
        return ""
    of_rows = frame["method"].str.partition(AT)[0] != frame["label"]
    labels = frame.loc[of_rows, "label"].unique()
    return f" ({', '.join(labels)})" if len(labels) else ""


def _missing(paper: Paper, claim: Claim) -> str:
    """Which data cannot be had, and what stands in."""
    artefacts = [paper.artefact(name) for name in claim.artefacts]
    return "; ".join(artefact.missing for artefact in artefacts if artefact.missing)


def _why_not_run(paper: Paper, claim: Claim, parts: tuple[Part, ...]) -> str:
    """The first thing in the way: data, an experiment or records, a predicate."""
    artefacts = [paper.artefact(name) for name in claim.artefacts]
    missing = [_missing(paper, claim)] if claim.scale == "missing" else []
    if parts or missing:
        why = [part.why_not for part in parts if part.why_not]
        return "; ".join(dict.fromkeys([*missing, *why]))
    known = {
        a.id for a in artefacts if a.computed or a.timing or a.walks
    } | paper.experiments.keys()
    without = [artefact.id for artefact in artefacts if artefact.id not in known]
    return f"no experiment: {', '.join(without)}" if without else "no predicate in code"
