"""Meanings of grades, fidelities and variants of the rules, with the numbers that the code uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from svgpbench.output.table import Table, columns
from svgpbench.papers.grades import Fidelity, Grade
from svgpbench.papers.grading import Kind
from svgpbench.papers.predicates import averages, rates, times
from svgpbench.papers.predicates.computations import Exponent, Identity
from svgpbench.stats import convergence, differences, ranks
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.over_sets import FEWEST_SETS
from svgpbench.stats.pairs import UNLEARNED
from svgpbench.stats.rules import LASTING, RULES

GRADES: Final[Mapping[Grade, str]] = {
    Grade.holds: "the core tests pass",
    Grade.corrected: "the core tests pass after a correction of the paper, which the finding names",
    Grade.direction: "the sign is as claimed, the size is not",
    Grade.mixed: "true in some of the claim’s cases, false in others; the finding says in which",
    Grade.fails: "the core tests fail",
    Grade.open: "the runs cannot decide; the finding says what is missing",
    Grade.not_testable: "the claim depends on data or sizes that are not available",
    Grade.not_run: "records are missing; the command that makes them stands with the claim",
}

FIDELITIES: Final[Mapping[Fidelity, str]] = {
    Fidelity.algebra: "identities, or counts of operations, computed afresh; no training is involved",
    Fidelity.printed: "data, sizes and settings are those that the paper prints",
    Fidelity.authors: "settings are those of the authors’ public code, where they differ from the paper’s",
    Fidelity.scaled: "the same data, with smaller sizes or fewer steps; the claim says which, in numbers",
    Fidelity.stand_in: "other data stand in for data that are not available",
    Fidelity.ours: "a test that the paper does not describe, or deciding settings that it does not print",
}

KINDS: Final[Mapping[Kind, str]] = {
    "theory": "identities, bounds and counted costs",
    "experiments": "what trained models reach",
    "speed": "measured times",
    "ours": "findings of this project, which are in none of the papers and are not counted",
}

VARIANTS: Final[Mapping[str, str]] = {
    "threshold halved": "every region and threshold is half as large",
    "threshold doubled": "every region and threshold is twice as large",
    "tolerance 5 % alone": "a bound has converged when at most 5 % of the way is left",
    "tolerance 1 % alone": "a bound has converged when at most 1 % of the way is left",
    "tolerance 0.1 % alone": "a bound has converged when at most 0.1 % of the way is left",
    "the way from the lower start": "the way to the best bound starts at the lower first bound",
    "without the chaos rule": "a difference that rounding moves by more than itself decides, too",
    LASTING: "a difference may move by three times as much as it did in the last quarter of the runs",
}


def class_name(word: str) -> str:
    """Return a grade as a CSS class: `holds, corrected` becomes `holds-corrected`."""
    return re.sub(r"[^a-z]+", "-", word.lower())


def numbers() -> dict[str, Any]:
    """Return the numbers on the page of rules, read from the code that applies them."""
    return {
        "tolerances": [f"{100 * tolerance:g} %" for tolerance in RULES.tolerances],
        "window": convergence.WINDOW,
        "starts": differences.STARTS,
        "level": f"{100 * differences.LEVEL:g} %",
        "unlearned": UNLEARNED,
        "seeds": rates.SEEDS,
        "rounds": times.ROUNDS,
        "times": times.REGION,
        "spread": averages.SPREAD_REGION,
        "fewest_sets": ranks.FEWEST,
        "sets_as_units": FEWEST_SETS,
        "resamples": f"{differences.RESAMPLES:,}",
        "residual": f"{Identity.model_fields['tolerance'].default:.0e}".replace("e-0", "e-"),
        "exponent": Exponent.model_fields["within"].default,
    }


def regions() -> Table:
    """Return the regions of practical equivalence, one row per width."""
    titles_by_width: dict[str, list[str]] = {}
    for measure in MEASURES.values():
        width = f"{measure.region:g}"
        if measure.per_datum:
            width = f"{100 * measure.per_datum:g} nat for each 100 rows that the bound covers"
        elif measure.relative:
            width = f"{100 * measure.relative:g} % of the second method’s value"
        titles_by_width.setdefault(width, []).append(measure.title)
    rows = [(", ".join(titles), width) for width, titles in titles_by_width.items()]
    return Table(columns(("measure", "half the width of its region")), rows)
