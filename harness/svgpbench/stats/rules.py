"""Rules of grading, and variants of them that show how robust a grade is."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

MOMENT_SEPARATOR: Final = " @ "
"""Separator between a method and the iteration, or the seconds, of its trace that a claim is about."""

SECONDS: Final = " s"
"""Suffix of a number of seconds after `MOMENT_SEPARATOR`."""

TOLERANCES: Final = (0.05, 0.01, 0.001)
"""Shares of the distance from start to best within which a bound has converged. All three are tried."""


LASTING: Final = "twice the steps"
"""The variant that tells whether a grade would last: intervals are widened by `DRIFT`."""

# a distance c/t falls by c/(3t) in the last quarter: three times as much is all that is left;
# with runs cut at half their steps, 0 had 21 of 904 decisions turn round later, and 3 one of 456
DRIFT: Final = 3.0
"""Times the change over the last quarter of a run that a difference may still move in as many steps again."""


class Rules(NamedTuple):
    """Settings of the grading that are no part of a claim."""

    threshold: float = 1.0  # factor of every region and threshold
    tolerances: tuple[float, ...] = TOLERANCES
    lower_start: bool = False  # measure the distance to the best from the lower first bound
    chaos: bool = True  # a difference that rounding moves by more than itself is undecided
    drift: float = 0.0  # intervals are widened by so many times their change in the last quarter


class WatchedRules(Rules):
    """The usual rules, with the names of those settings that a grade has read."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    # not __getattr__, which is asked only for what the class lacks: it has every field
    def __getattribute__(self, name: str) -> Any:
        if name in Rules._fields:
            self.read.add(name)
        return super().__getattribute__(name)

    def differ_in_what_was_read(self, other: Rules) -> bool:
        """Return True if a setting that has been read has another value in `other`."""
        return any(getattr(RULES, name) != getattr(other, name) for name in self.read)


RULES: Final = Rules()

VARIANTS: Final = {
    "threshold halved": Rules(threshold=0.5),
    "threshold doubled": Rules(threshold=2.0),
    "tolerance 5 % alone": Rules(tolerances=(0.05,)),
    "tolerance 1 % alone": Rules(tolerances=(0.01,)),
    "tolerance 0.1 % alone": Rules(tolerances=(0.001,)),
    "the way from the lower start": Rules(lower_start=True),
    "without the chaos rule": Rules(chaos=False),
    LASTING: Rules(drift=DRIFT),
}
"""Variants under which each claim is graded again, by name."""
