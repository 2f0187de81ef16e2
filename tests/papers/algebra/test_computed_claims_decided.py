"""Every claim that is computed comes out as it did when it was read: grade by grade, figure by figure.

`decided.toml` has what came out. A change there is a change of what the ledger says, and is read like one:
`python tests/papers/algebra/test_computed_claims_decided.py` writes it anew.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svgpbench.papers import Claim, Paper, load_paper, paper_folders
from svgpbench.papers.grading import Judged, is_computed, judge

DECIDED = Path(__file__).parent / "decided.toml"
ROUNDING = 1e-6
"""Residuals below it are of rounding, so no figure is held against them; others may move by 1e-7."""


def computed_claims() -> Iterator[tuple[Paper, Claim]]:
    """Yield the claims with a part that is computed."""
    for name in paper_folders():
        paper = load_paper(name)
        yield from ((paper, claim) for claim in paper.claims if is_computed(paper, claim))


def computed_parts(paper: Paper, one: Judged) -> dict[str, Any]:
    """Return the grade of each computed part by what it says, with its figure where it has one."""
    found: dict[str, Any] = {}
    for stated, part in zip(one.claim.parts, one.parts, strict=True):
        if paper.artefact(stated.artefact).computed:
            values = [effect.value for effect in part.judgement.effects]
            large = len(values) == 1 and values[0] is not None and abs(values[0]) > ROUNDING
            large = large and "cond K" not in part.says  # rounding differs between processors
            found[part.says] = [str(part.grade), *(f"{values[0]:.3g}" for _ in range(large))]
    return found


KNOWN = tomllib.loads(DECIDED.read_text(encoding="utf-8")) if DECIDED.exists() else {}


def test_every_computed_claim_has_been_read() -> None:
    assert list(KNOWN) == [claim.id for _, claim in computed_claims()]


@pytest.mark.parametrize("claim_id", KNOWN)
def test_a_computed_claim_comes_out_as_it_was_read(claim_id: str, tmp_path: Path) -> None:
    paper = load_paper(claim_id.rpartition("-")[0])
    (one,) = judge(paper, [claim for claim in paper.claims if claim.id == claim_id], tmp_path)
    found, known = computed_parts(paper, one), KNOWN[claim_id]
    assert {says: of[0] for says, of in found.items()} == {
        says: of[0] for says, of in known.items()
    }
    for says, (_, *figure) in known.items():
        if figure:
            value = float(found[says][1])
            assert value == pytest.approx(float(figure[0]), rel=2e-2, abs=1e-7), says


def write() -> None:
    """Write what comes out now."""
    from svgpbench.papers.precomputed import precompute

    claims = list(computed_claims())
    papers = list({paper.name: paper for paper, _ in claims}.values())
    lines = ["# What each computed part of a claim comes to, and its figure; see the test beside."]
    with precompute(papers, {claim.id for _, claim in claims}, lambda name: None) as given:
        for paper, claim in claims:
            (one,) = judge(paper, [claim], Path("none"), given.claim)
            lines.append(f"\n[{claim.id}]")
            lines += [
                f"{_quoted(says)} = [{', '.join(map(_quoted, of))}]"
                for says, of in computed_parts(paper, one).items()
            ]
    DECIDED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


if __name__ == "__main__":
    write()
