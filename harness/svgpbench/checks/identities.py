"""Identities of the mathematics that the numbers must satisfy, each under its stated conditions.

Most compare methods with one another on one backend; three compare with textbook bounds in plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from svgpbench.checks.bench import Names
from svgpbench.checks.evaluate import SKIPPED, WITHOUT_AUTODIFF, step_by_step
from svgpbench.checks.identities_of_bases import (
    coupled_inside_decoupled,
    functions_without_width_are_points,
    growing_keeps_q,
)
from svgpbench.checks.identities_of_bounds import (
    divergence_is_positive,
    inducing_at_data_gives_gpr,
    objectives_meet,
    sites_of_data_stay_exact,
)
from svgpbench.checks.identities_of_residuals import narrower_is_tighter
from svgpbench.checks.identities_of_steps import (
    exact_diagonal_step_is_stationary,
    minibatches_average,
    one_step_reaches_sgpr,
    steps_agree,
    tyings_agree_at_fixed_theta,
    whitening_keeps_values,
)
from svgpbench.errors import NoAutodiffError
from svgpbench.ops import Ops
from svgpbench.runs.worker import one_line


@dataclass(frozen=True)
class NotShown:
    """One identity that has no number on a backend: `skipped` without autodiff, `failed` where it raised."""

    number: int
    state: str
    why: str


@dataclass(frozen=True)
class Identity:
    """One identity on one backend: how far its two sides are apart, and how far they may be."""

    number: int
    statement: str
    backend: str
    worst: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether the identity holds."""
        return self.worst <= self.tolerance


IDENTITIES: dict[int, tuple[Callable[[Ops, Names], float], float]] = {
    1: (steps_agree, 1e-8),
    2: (one_step_reaches_sgpr, 1e-8),
    3: (inducing_at_data_gives_gpr, 1e-8),
    4: (sites_of_data_stay_exact, 1e-8),
    5: (tyings_agree_at_fixed_theta, 1e-8),
    6: (coupled_inside_decoupled, 1e-8),
    7: (whitening_keeps_values, 1e-8),
    8: (exact_diagonal_step_is_stationary, 1e-8),
    9: (objectives_meet, 1e-8),
    10: (functions_without_width_are_points, 1e-10),
    11: (minibatches_average, 1e-10),
    12: (divergence_is_positive, 1e-10),
    13: (growing_keeps_q, 1e-10),
    14: (narrower_is_tighter, 1e-10),
}
"""By number, with the tolerance of each."""


def statement(number: int) -> str:
    """What an identity says, in a line."""
    return " ".join((IDENTITIES[number][0].__doc__ or "").split(": ", 1)[1].split())


def identities(ops: Ops, likelihoods: Names) -> Iterator[Identity | NotShown]:
    """Every identity on a float64 backend, step by step: they are about the mathematics.

    `likelihoods` are those over which an identity runs that is not about one of its own.
    """
    ops = step_by_step(ops)
    for number, (check, tolerance) in IDENTITIES.items():
        try:
            worst = check(ops, likelihoods)
        except Exception as error:  # a backend's or a method's own: the other identities go on
            without = isinstance(error, NoAutodiffError) and not type(ops).capabilities.autodiff
            if without:
                yield NotShown(number, SKIPPED, WITHOUT_AUTODIFF)
            else:
                yield NotShown(number, "failed", one_line(error))
            continue
        yield Identity(number, statement(number), ops.name, worst, tolerance)
