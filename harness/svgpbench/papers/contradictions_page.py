"""The papers' contradictions as Markdown: both statements, the test that settles them, and current grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from svgpbench.errors import unknown
from svgpbench.papers.contradictions import Contradiction, Settles
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged


def settled_as_markdown(
    contradictions: Sequence[Contradiction], judged: Mapping[str, Judged]
) -> str:
    """Return one numbered section per contradiction; `judged` has the claims by id.

    Raises `UserError` if a claim or a part is not in `judged`.
    """
    sections = [
        "\n\n".join([f"## {number}. {one.about}", *_section(one, judged)])
        for number, one in enumerate(contradictions, start=1)
    ]
    return "\n\n".join(sections)


def _section(one: Contradiction, judged: Mapping[str, Judged]) -> Iterator[str]:
    yield f"* {one.one}\n* **But** {one.other}"
    yield f"**What settles it:** {one.settled_by}"
    yield "\n".join(line for named in one.claims for line in _claim(named, judged))


def _claim(named: Settles, judged: Mapping[str, Judged]) -> Iterator[str]:
    """Yield the grade of a claim, the commands if it has not run, and the grades of the named parts."""
    if named.id not in judged:
        raise unknown("claim", named.id, judged)
    found = judged[named.id]
    yield f"* **{named.id}**, {found.claim.title}: `{found.grade}`"
    if found.grade == Grade.not_run:
        yield from (f"  * not run yet; it rests on `{command}`" for command in found.commands)
    parts = {part.says: part for part in found.parts}
    for says in named.parts:
        if says not in parts:
            raise unknown(f"part of {named.id}", says, parts)
        part = parts[says]
        if not part.why_not:
            yield f"  * {says}: `{part.grade}`"
