"""Findings: templates of one sentence, filled with the numbers that decide a claim.

A placeholder has the `key` of a part and a field: `{nlpd.held} of {nlpd.cases} data sets`.

    grade               grade of the part
    value low high      median value, least lower end and largest upper end over the effects
    least most          least and largest value over the effects
    cases               number of effects that vote
    held failed open    number of effects that support the claim, contradict it or are undecided
    where_held where_failed where_open    names of these effects
    note                note of the part, such as the tolerance at which the grade changes
    value@NAME low@NAME high@NAME         value and ends of the effect NAME

Any field takes `@NAME`. A Python format may follow a colon: `{speed.value@M = 100:.2f}`. The default is three
digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

from svgpbench.papers.grades import Grade, Judgement
from svgpbench.stats.effects import Effect, Outcome

FIELD: Final = re.compile(r"\{([a-z][a-z0-9_]*)\.([a-z_]+)(?:@([^{}:]+))?(?::([^{}]+))?\}")
MOST_NAMES: Final = 4
NOTHING: Final = "–"


def placeholders(template: str) -> list[tuple[str, str]]:
    """Return the (key, field) pairs of a template.

    Raises `ValueError` for an unknown field or a stray brace.
    """
    found = [(match[1], match[2], match[3]) for match in FIELD.finditer(template)]
    for key, field, name in found:
        known = NUMBERS if name else WORDS | NUMBERS.keys()
        if field not in known:
            raise ValueError(
                f"{{{key}.{field}}}: a part has no {field!r}; use one of {sorted(known)}"
            )
    if re.search(r"[{}]", FIELD.sub("", template)):
        raise ValueError("a brace that is no {key.field}")
    return [(key, field) for key, field, _ in found]


def fill(template: str, parts: Mapping[str, Judgement]) -> str:
    """Fill a template from the judgements of the parts, by key."""

    def shown(match: re.Match[str]) -> str:
        key, field, name, form = match.groups()
        effects = list(parts[key].effects)
        if name:
            effects = [effect for effect in effects if effect.of == name]
        return _shown(parts[key], effects, field, form)

    return FIELD.sub(shown, template)


def with_divide(finding: str, grade: Grade, core: Sequence[tuple[str, Judgement]]) -> str:
    """Append the cases that divide a mixed claim, or up to two notes of an open one, to its finding.

    Args:
        finding: the filled template.
        grade: grade of the claim.
        core: text and judgement of each core part.
    """
    said = [finding]
    if grade == Grade.mixed:
        said += [f"{says}: {_divides(one)}." for says, one in core if _divides(one)]
    elif grade == Grade.open:
        notes = [
            effect.note
            for _, one in core
            if one.grade == Grade.open
            for effect in one.effects
            if effect.held is None and effect.note and effect.outcome != Outcome.not_learned
        ]
        said += [f"Open: {note}." for note in list(dict.fromkeys(notes))[:2]]
    return " ".join(said)


def _divides(one: Judgement) -> str:
    if one.note:
        return one.note
    held, failed = ([x.of for x in one.effects if x.held is way] for way in (True, False))
    if held and failed:
        return f"holds for {_names(held)}; fails for {_names(failed)}"
    return str(one.grade)


def _shown(one: Judgement, effects: list[Effect], field: str, form: str | None) -> str:
    if field in NUMBERS:
        values = [x for effect in effects if (x := NUMBERS[field][0](effect)) is not None]
        return format(NUMBERS[field][1](values), form or ".3g") if values else NOTHING
    voting = [effect for effect in effects if effect.outcome != Outcome.not_learned]
    groups = {
        "held": [effect.of for effect in voting if effect.held is True],
        "failed": [effect.of for effect in voting if effect.held is False],
        "open": [effect.of for effect in voting if effect.held is None],
    }
    if field in groups:
        return str(len(groups[field]))
    if field == "cases":
        return str(len(voting))
    if field.startswith("where_"):
        return _names(groups[field.removeprefix("where_")])
    return str(one.grade) if field == "grade" else one.note or NOTHING


def _names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    listed = ", ".join(names[:MOST_NAMES])
    return f"{listed} and {more} more" if more > 0 else listed or "none"


def _value(effect: Effect) -> float | None:
    return effect.value


Number = tuple[Callable[[Effect], float | None], Callable[[list[float]], float]]
NUMBERS: Final[Mapping[str, Number]] = {
    "value": (_value, median),
    "low": (lambda effect: effect.low, min),
    "high": (lambda effect: effect.high, max),
    "least": (_value, min),
    "most": (_value, max),
}
WORDS: Final = frozenset(
    ("grade", "cases", "held", "failed", "open", "note", "where_held", "where_failed", "where_open")
)
