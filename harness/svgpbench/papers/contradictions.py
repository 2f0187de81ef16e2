"""Contradictions within papers, between them or with algebra, the claims that settle each, and their page."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from svgpbench.config import Strict, Text
from svgpbench.errors import unknown
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged


class DecidingClaim(Strict):
    """A claim of the ledger and its parts that decide; without parts the claim's grade decides."""

    id: Text
    parts: tuple[Text, ...] = ()


class Contradiction(Strict):
    """Two statements that cannot both hold."""

    about: Text
    one: Text
    other: Text
    settled_by: Text
    claims: Annotated[tuple[DecidingClaim, ...], Field(min_length=1)]


class ContradictionsFile(Strict):
    """Content of `contradictions.toml`."""

    contradictions: tuple[Contradiction, ...]


def contradictions() -> tuple[Contradiction, ...]:
    """Return the contradictions shipped with the package, in file order."""
    content = files("svgpbench.papers").joinpath("contradictions.toml").read_bytes()
    return ContradictionsFile.model_validate(tomllib.loads(content.decode())).contradictions


def contradictions_as_markdown(
    contradictions: Sequence[Contradiction], ledger: Mapping[str, Judged]
) -> str:
    """Return one numbered section per contradiction; `ledger` has the judged claims by id.

    Raises `UserError` if a claim or a part is not in `ledger`.
    """
    paragraphs = []
    for number, contradiction in enumerate(contradictions, start=1):
        lines = [line for claim in contradiction.claims for line in _claim(claim, ledger)]
        paragraphs += [
            f"## {number}. {contradiction.about}",
            f"* {contradiction.one}\n* **But** {contradiction.other}",
            f"**What settles it:** {contradiction.settled_by}",
            "\n".join(lines),
        ]
    return "\n\n".join(paragraphs)


def _claim(deciding: DecidingClaim, ledger: Mapping[str, Judged]) -> Iterator[str]:
    """Yield the grade of a claim, the commands if it has not run, and the grades of its deciding parts."""
    if deciding.id not in ledger:
        raise unknown("claim", deciding.id, ledger)
    judged = ledger[deciding.id]
    yield f"* **{deciding.id}**, {judged.claim.title}: `{judged.grade}`"
    if judged.grade == Grade.not_run:
        yield from (f"  * not run yet; it rests on `{command}`" for command in judged.commands)
    parts = {part.says: part for part in judged.parts}
    for name in deciding.parts:
        if name not in parts:
            raise unknown(f"part of {deciding.id}", name, parts)
        if not parts[name].why_not:
            yield f"  * {name}: `{parts[name].grade}`"
