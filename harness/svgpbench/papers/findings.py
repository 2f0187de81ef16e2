"""Findings: templates of one sentence, filled with the numbers that decide a claim.

A placeholder has the `key` of a part and a field: `{nlpd.held} of {nlpd.cases} data sets`.

    grade               grade of the part
    value low high      median value, least lower end and largest upper end over the effects
    least most          least and largest value over the effects
    cases               number of effects that count
    held failed open    number of effects that support the claim, contradict it or are undecided
    where_held where_failed where_open    names of these effects
    sets ahead          number of data sets averaged over, and of those where the first method is better
    note                note of the part, such as the tolerance at which the grade changes, or of its effect
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
from svgpbench.stats.effects import NOT_VOTING, Effect, Outcome
from svgpbench_datasets.errors import join_names

FIELD: Final = re.compile(r"\{([a-z][a-z0-9_]*)\.([a-z_]+)(?:@([^{}:]+))?(?::([^{}]+))?\}")
MOST_NAMES: Final = 4
NOTHING: Final = "–"


def placeholders(template: str) -> list[tuple[str, str]]:
    """Return the (key, field) pairs of a template.

    Raises `ValueError` for an unknown field, a format that is none of a number's or a stray brace.
    """
    pairs = []
    for key, field, name, form in FIELD.findall(template):
        fields = NUMBERS if name else WORDS | NUMBERS.keys()
        if field not in fields:
            raise ValueError(
                f"{{{key}.{field}}}: a part has no {field!r}; use one of {sorted(fields)}"
            )
        try:
            format(0.0 if field in NUMBERS else "", form)
        except ValueError as error:
            raise ValueError(f"{{{key}.{field}:{form}}}: {error}") from None
        pairs.append((key, field))
    if re.search(r"[{}]", FIELD.sub("", template)):
        raise ValueError("a brace that is no {key.field}")
    return pairs


def fill(template: str, parts: Mapping[str, Judgement]) -> str:
    """Fill a template from the judgements of the parts, by key."""

    def value(match: re.Match[str]) -> str:
        key, field, name, form = match.groups()
        effects = [effect for effect in parts[key].effects if not name or effect.of == name]
        return _field_text(parts[key], effects, field, form)

    return FIELD.sub(value, template)


def with_explanation(finding: str, grade: Grade, core: Sequence[tuple[str, Judgement]]) -> str:
    """Append the cases that divide a mixed claim, or up to two notes of an open one, to its finding.

    Args:
        finding: the filled template.
        grade: grade of the claim.
        core: text and judgement of each core part.
    """
    sentences = [finding]
    if grade == Grade.mixed:
        divisions = []
        for text, judgement in core:
            division = judgement.note or str(judgement.grade)
            supporting = [effect.of for effect in judgement.effects if effect.held is True]
            contradicting = [effect.of for effect in judgement.effects if effect.held is False]
            if supporting and contradicting and not judgement.note:
                division = _division(supporting, contradicting)
            divisions.append(f"{text}: {division}")
        sentences.append(f"By part: {'; '.join(divisions)}.")
    elif grade == Grade.open:
        notes = [
            effect.note
            for _, judgement in core
            if judgement.grade == Grade.open
            for effect in judgement.effects
            if effect.held is None and effect.note and effect.outcome not in NOT_VOTING
        ]
        sentences += [f"Open: {note}." for note in list(dict.fromkeys(notes))[:2]]
    return " ".join(sentences)


def _division(supporting: Sequence[str], contradicting: Sequence[str]) -> str:
    """Return the cases on the smaller side by name, and the number of the others."""
    if len(supporting) > len(contradicting):
        return f"fails for {_names(contradicting)}, holds for {len(supporting)} others"
    if len(supporting) < len(contradicting):
        return f"holds for {_names(supporting)}, fails for {len(contradicting)} others"
    return f"holds for {_names(supporting)}, fails for {_names(contradicting)}"


def _field_text(judgement: Judgement, effects: list[Effect], field: str, form: str | None) -> str:
    """Return a field of a judgement as text, over some of its effects."""
    units = [x for x in effects if x.outcome == Outcome.unit and x.value is not None]
    if field in NUMBERS:
        number_of, summary = NUMBERS[field]
        # sets that are units stand beside their common effect: only the latter has an interval
        deciding = [effect for effect in effects if effect not in units] or effects
        values = [number for effect in deciding if (number := number_of(effect)) is not None]
        return format(summary(values), form or ".3g") if values else NOTHING
    voting = [effect for effect in effects if effect.outcome not in NOT_VOTING]
    groups = {
        "held": [effect.of for effect in voting if effect.held is True],
        "failed": [effect.of for effect in voting if effect.held is False],
        "open": [effect.of for effect in voting if effect.held is None],
    }
    if field.startswith("where_"):
        return _names(groups[field.removeprefix("where_")])
    notes = [effect.note for effect in voting if effect.note]
    return {
        **{name: str(len(group)) for name, group in groups.items()},
        "cases": str(len(voting)),
        "sets": str(len(units)),
        "ahead": str(sum(x.value is not None and x.value > 0 for x in units)),
        "grade": str(judgement.grade),
        "note": judgement.note or (notes[0] if len(notes) == 1 else NOTHING),
    }[field]


def _names(names: Sequence[str]) -> str:
    return join_names(names, MOST_NAMES) or "none"


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
WORDS: Final = frozenset(("grade", "cases", "held", "failed", "open", "sets", "ahead", "note")) | {
    f"where_{name}" for name in ("held", "failed", "open")
}
