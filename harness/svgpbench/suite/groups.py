"""Groups of problems: by likelihood, by rows of the table and by number of inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from svgpbench.errors import UserError, unknown
from svgpbench.suite.schema import SuiteProblem

SIZES: Final[dict[str, Callable[[SuiteProblem], int]]] = {
    "rows": lambda problem: problem.rows,
    "inputs": lambda problem: problem.dimensions,
}
USUAL: Final = ("rows<2000", "rows<10000", "rows>=10000", "inputs<10", "inputs<30", "inputs>=30")
"""Groups by size that the board's page shows."""


def of_groups(problems: Sequence[SuiteProblem], groups: Sequence[str]) -> list[SuiteProblem]:
    """Return the problems that are in all of the groups.

    Raises `UserError` for an unknown group, or if no problem is left.
    """
    likelihoods = sorted({x.likelihood.name for x in problems})
    left = list(problems)
    for group in groups:
        size = re.fullmatch(r"(rows|inputs)\s*(<|>=)\s*(\d+)", group)
        if size:
            value, limit, below = SIZES[size[1]], int(size[3]), size[2] == "<"
            left = [x for x in left if (value(x) < limit) == below]
        elif group in likelihoods:
            left = [x for x in left if x.likelihood.name == group]
        else:
            raise unknown("group of problems", group, [*likelihoods, *USUAL])
    if not left:
        raise UserError(f"no problem of the suite is in {' and '.join(groups)}")
    return left
