"""Claims as the pages show them: outcome, and differences between core evidence and paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from svgpbench.papers import Paper
from svgpbench.papers.grading import Judged, Kind, Part, effect_of
from svgpbench.site.meanings import KINDS


@dataclass(frozen=True)
class Entry:
    """A claim of a paper with its grade."""

    paper: Paper
    judged: Judged

    @property
    def number(self) -> str:
        """Number of the claim within its paper."""
        return self.judged.claim.id.rpartition("-")[2]

    @property
    def sentence(self) -> str:
        """Text of the claim, ending in one full stop."""
        return f"{self.judged.claim.claim.rstrip('.')}."

    @property
    def differences(self) -> list[str]:
        """Differences of the core evidence from the paper: data replaced by a stand-in, smaller sizes."""
        artefacts = [self.paper.artefact(name) for name in self.judged.claim.deciding]
        texts = [x.missing for x in artefacts] + [
            f"smaller: {x.smaller}" * bool(x.smaller) for x in artefacts
        ]
        return list(dict.fromkeys(filter(None, texts)))


def by_kind(entries: Iterable[Entry]) -> list[tuple[Kind, list[Entry]]]:
    """Group claims by kind: theory, experiments, speed. A kind without claims is left out."""
    entries = list(entries)
    groups = [(kind, [entry for entry in entries if entry.judged.kind == kind]) for kind in KINDS]
    return [(kind, group) for kind, group in groups if group]


def outcome_of(part: Part) -> str:
    """Return the outcome of a part in one line: effect and notes, or why it has not run."""
    reasons = [part.why_not, effect_of([part.judgement]), part.judgement.note]
    if len(effects := part.judgement.effects) == 1:
        reasons.append(effects[0].note)
    return "; ".join(dict.fromkeys(filter(None, reasons)))
