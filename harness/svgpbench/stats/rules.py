"""The rules that grades are given by, and the variants that show how steady a grade is."""

from __future__ import annotations

from typing import Final, NamedTuple

AT: Final = " @ "
"""Between a method and the iteration of its trace, or the seconds, that a part of a claim is about."""

SECONDS: Final = " s"
"""After a number of seconds there."""

TOLERANCES: Final = (0.05, 0.01, 0.001)
"""Shares of the way from start to best within which a bound has converged: all three are tried."""


class Rules(NamedTuple):
    """What may change without the claim changing."""

    threshold: float = 1.0  # times every region and threshold
    tolerances: tuple[float, ...] = TOLERANCES
    lower_start: bool = False  # whether the way to the best starts at the lower first bound
    chaos: bool = True  # whether what rounding moves by more than itself decides nothing


RULES: Final = Rules()

VARIANTS: Final = {
    "threshold halved": Rules(threshold=0.5),
    "threshold doubled": Rules(threshold=2.0),
    "tolerance 5 % alone": Rules(tolerances=(0.05,)),
    "tolerance 1 % alone": Rules(tolerances=(0.01,)),
    "tolerance 0.1 % alone": Rules(tolerances=(0.001,)),
    "the way from the lower start": Rules(lower_start=True),
    "without the chaos rule": Rules(chaos=False),
}
"""Under each of these a claim is graded again."""
