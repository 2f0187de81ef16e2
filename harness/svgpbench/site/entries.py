"""A claim as pages show it: what came of it, and how its core evidence differs from the paper's."""

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
    one: Judged

    @property
    def number(self) -> str:
        """The claim's number within its paper."""
        return self.one.claim.id.rpartition("-")[2]

    @property
    def sentence(self) -> str:
        """The claim, with one stop at its end."""
        return f"{self.one.claim.claim.rstrip('.')}."

    @property
    def differences(self) -> list[str]:
        """How the core evidence is smaller than the paper's, or of other data; empty where it is neither."""
        deciding = [part.artefact for part in self.one.claim.core] or self.one.claim.artefacts
        artefacts = [self.paper.artefact(name) for name in dict.fromkeys(deciding)]
        said = [x.missing for x in artefacts] + [
            f"smaller: {x.smaller}" * bool(x.smaller) for x in artefacts
        ]
        return list(dict.fromkeys(filter(None, said)))


def by_kind(entries: Iterable[Entry]) -> list[tuple[Kind, list[Entry]]]:
    """Return the claims of theory, of experiments and of speed; a kind without any is left out."""
    entries = list(entries)
    groups = [(kind, [entry for entry in entries if entry.one.kind == kind]) for kind in KINDS]
    return [(kind, group) for kind, group in groups if group]


def outcome_of(part: Part) -> str:
    """Return what came of a part in a line: its figures and its note, or why it has not run."""
    said = [part.why_not, effect_of([part.judgement]), part.judgement.note]
    if len(effects := part.judgement.effects) == 1:
        said.append(effects[0].note)
    return "; ".join(dict.fromkeys(filter(None, said)))
