"""Mathematical identities that the numbers must satisfy, each under its stated conditions.

Some compare methods with one another on one backend. Others compare with textbook bounds in plain NumPy.
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
    bounds_hold_at_every_size,
    divergence_is_positive,
    evidence_is_between_bounds,
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
from svgpbench.runs.worker import located_error_line


@dataclass(frozen=True)
class NotShown:
    """An identity without a number on a backend: `skipped` without autodiff, `failed` if it raised."""

    name: str
    state: str
    why: str


@dataclass(frozen=True)
class IdentityResult:
    """An identity on one backend: the difference of its two sides, and the tolerance."""

    name: str
    statement: str
    backend: str
    worst: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Return True if the identity holds within its tolerance."""
        return self.worst <= self.tolerance


IDENTITIES: dict[str, tuple[Callable[[Ops, Names], float], float]] = {
    check.__name__.replace("_", " "): (check, tolerance)
    for check, tolerance in {
        steps_agree: 1e-8,
        one_step_reaches_sgpr: 1e-8,
        inducing_at_data_gives_gpr: 1e-8,
        sites_of_data_stay_exact: 1e-8,
        tyings_agree_at_fixed_theta: 1e-8,
        coupled_inside_decoupled: 1e-8,
        whitening_keeps_values: 1e-8,
        exact_diagonal_step_is_stationary: 1e-8,
        objectives_meet: 1e-8,
        functions_without_width_are_points: 1e-10,
        minibatches_average: 1e-10,
        divergence_is_positive: 1e-10,
        growing_keeps_q: 1e-10,
        narrower_is_tighter: 1e-10,
        evidence_is_between_bounds: 1e-10,
        bounds_hold_at_every_size: 1e-10,
    }.items()
}
"""Name → check and tolerance."""


def statement(name: str) -> str:
    """Return the statement of an identity: its docstring in one line."""
    return " ".join((IDENTITIES[name][0].__doc__ or "").split())


def identities(ops: Ops, likelihoods: Names) -> Iterator[IdentityResult | NotShown]:
    """Yield the outcome of every identity on a float64 backend, in eager mode if it has one.

    An identity that is not about particular likelihoods runs with those in `likelihoods`.
    """
    ops = step_by_step(ops)
    for name, (check, tolerance) in IDENTITIES.items():
        try:
            worst = check(ops, likelihoods)
        except Exception as error:  # of a backend or method: other identities continue
            # a backend that declares autodiff and raises this has failed
            without = isinstance(error, NoAutodiffError) and not type(ops).capabilities.autodiff
            if without:
                yield NotShown(name, SKIPPED, WITHOUT_AUTODIFF)
            else:
                yield NotShown(name, "failed", located_error_line(error))
            continue
        yield IdentityResult(name, statement(name), ops.name, worst, tolerance)
