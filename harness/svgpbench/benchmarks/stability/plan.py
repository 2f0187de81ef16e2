"""Plan of a stability map: problems, and cuts through a central point along one axis at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import NonNegativeInt, PositiveInt

from svgpbench.benchmarks.problem_plan import Jitter, ProblemPlan, read_as
from svgpbench.config import Positive, Strict
from svgpbench.environment import OURS
from svgpbench.experiments.identity import digest

SHIPPED = Path(__file__).with_name("plan.toml")
Dtype = Literal["float64", "float32"]


class AxisPoint(Strict):
    """Position of a cell on the axes."""

    rate: Positive  # γ
    dtype: Dtype
    jitter: Jitter
    inducing: PositiveInt  # M


class Cuts(Strict):
    """Values of each axis besides the centre's."""

    rate: tuple[Positive, ...] = ()
    inducing: tuple[PositiveInt, ...] = ()
    dtype: tuple[Dtype, ...] = ()
    jitter: tuple[Jitter, ...] = ()


class StabilityPlan(Strict):
    """Settings of a stability map, read from its file."""

    steps: PositiveInt = 1000
    check_every: PositiveInt = 100
    checked_rows: PositiveInt = 1000
    backend: str = "torch"
    seed: NonNegativeInt = 0
    more_seeds: tuple[NonNegativeInt, ...] = ()  # for the largest rate that completes
    centre: AxisPoint
    cuts: Cuts = Cuts()
    problems: dict[str, ProblemPlan]

    @property
    def points(self) -> tuple[AxisPoint, ...]:
        """All points: the centre, then the first value of every cut, the second of every cut, and so on."""
        rounds = zip_longest(*([{axis: value} for value in values] for axis, values in self.cuts))
        cuts = [cut for of_round in rounds for cut in of_round if cut is not None]
        return (self.centre, *(self.centre.model_copy(update=cut) for cut in cuts))

    @property
    def most_inducing(self) -> int:
        """Largest M of all points."""
        return max(point.inducing for point in self.points)

    def cell(
        self, problem: str, library: str, method: str, point: AxisPoint, seed: int
    ) -> StabilityCell:
        """Return a cell of the plan."""
        plan = self.digest(problem, library)
        return StabilityCell(problem, library, method, point, self.steps, seed, plan)

    def digest(self, problem: str, library: str) -> str:
        """Return a digest of all that decides a library's runs on a problem besides the axes."""
        declared = self.problems[problem]
        facts = {
            "most_inducing": self.most_inducing,  # the first M are of a draw of the most
            # without defaults: a key that is added later changes no digest of an older record
            "problem": declared.model_dump(mode="json", exclude_defaults=True),
            **declared.content(),
            "check_every": self.check_every,
            "checked_rows": self.checked_rows,
        }
        return digest(facts | ({"backend": self.backend} if library == OURS else {}))

    def along(self, axis: str) -> list[Any]:
        """Return the values of an axis, the centre's included, in increasing order; float64 comes first."""
        values = {getattr(self.centre, axis), *getattr(self.cuts, axis)}
        return sorted(values, reverse=axis == "dtype")


class StabilityCell(NamedTuple):
    """Run of one method of a library on a problem at a point of the axes."""

    problem: str
    library: str
    method: str
    point: AxisPoint
    steps: int
    seed: int
    plan: str  # `StabilityPlan.digest`

    @property
    def title(self) -> str:
        """Title in a line of progress."""
        point = self.point
        return (
            f"{self.problem} {self.library} {self.method}: "
            f"γ={point.rate:g} {point.dtype} jitter={point.jitter:g} M={point.inducing} seed={self.seed}"
        )

    def key(self) -> dict[str, Any]:
        """Return the fields of a record that identify the cell."""
        return {
            "problem": self.problem,
            "library": self.library,
            "method": self.method,
            **self.point.model_dump(),
            "steps": self.steps,
            "seed": self.seed,
            "plan": self.plan,
        }


def read_stability_plan(path: Path = SHIPPED) -> StabilityPlan:
    """Read a plan from its file. Raises `UserError` if the file is missing or invalid."""
    return read_as(StabilityPlan, path)


def cells_of(
    plan: StabilityPlan, methods: dict[str, tuple[str, ...]], problems: list[str]
) -> Iterator[StabilityCell]:
    """Yield the cells of each library's methods on some of the plan's problems.

    They come point by point, the centre first, so that an unfinished map has whole columns.
    """
    for point in plan.points:
        for problem in problems:
            for library, names in methods.items():
                for method in names:
                    yield plan.cell(problem, library, method, point, plan.seed)


def towards_the_largest_rate(
    plan: StabilityPlan, row: tuple[str, str, str], lived: Mapping[StabilityCell, bool]
) -> StabilityCell | None:
    """Return the next cell to run in search of the largest rate that all seeds complete, or None.

    All settings but the rate and the seed are the centre's. Rates decrease, and a rate at which any seed
    failed is skipped. None means that nothing is left to run. `row` is a problem, a library and a method;
    `lived` has True for every finished cell that completed.
    """
    for rate in reversed(plan.along("rate")):
        point = plan.centre.model_copy(update={"rate": rate})
        cells = [plan.cell(*row, point, seed) for seed in (plan.seed, *plan.more_seeds)]
        if all(lived.get(cell, True) for cell in cells):
            return next((cell for cell in cells if cell not in lived), None)
    return None
