"""Schema of the suite's file: problems, groups of them, entrants and protocol."""

from __future__ import annotations

import datetime
import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field, PositiveInt, ValidationError, model_validator

from svgpbench.config import (
    KernelConfig,
    LikelihoodConfig,
    Positive,
    RatePair,
    Strict,
    Text,
    with_new_defaults,
)
from svgpbench.errors import UserError, refuse_unknown, unknown
from svgpbench.experiments.error_messages import as_user_errors, one_line
from svgpbench.experiments.loading import parse_toml
from svgpbench.plugins import LIKELIHOODS, plugins, registry_of
from svgpbench_datasets.entry import DatasetEntry

SHIPPED = Path(__file__).with_name("suite.toml")
Share = Annotated[float, Field(gt=0, lt=1)]
GRID = 12
"""Largest number of pairs of rates in an entrant's grid, the same for all."""


class SuiteFiles(NamedTuple):
    """Files of a suite: what it declares, and what was measured once for it."""

    suite: Path = SHIPPED

    @property
    def iterations(self) -> Path:
        """Table of the iterations of full runs: a row per problem, a column per entrant."""
        return self.suite.with_name(f"{self.suite.stem}-iterations.csv")

    @property
    def step_times(self) -> Path:
        """Table of the times of an iteration on the reference machine."""
        return self.suite.with_name(f"{self.suite.stem}-step-times.csv")


SHIPPED_FILES: Final = SuiteFiles()


class Protocol(Strict):
    """Settings that all runs share."""

    backend: str
    batch_size: PositiveInt
    full_batch_below: PositiveInt  # rows of the table
    folds: Annotated[int, Field(ge=2)]
    split_seed: Annotated[int, Field(ge=0)]
    held_out: Share
    trial_shares: tuple[Share, Share]
    kept: PositiveInt
    cool_down: Share
    evaluations: Annotated[int, Field(ge=2)]
    evaluated_rows: PositiveInt
    tested_rows: PositiveInt
    jitter: Annotated[float, Field(ge=0)]
    kernel: KernelConfig
    run_folds: PositiveInt | None = None  # number of folds that run; None: all

    @property
    def folds_run(self) -> int:
        """Number of folds that run, from the first on."""
        return self.run_folds or self.folds

    @model_validator(mode="after")
    def _runs_folds_that_are_there(self) -> Protocol:
        if self.folds_run > self.folds:
            raise ValueError(f"run_folds is {self.run_folds}, of {self.folds} folds")
        return self


class SizeClass(Strict):
    """Number of inducing points and budget of problems by their rows."""

    rows_below: PositiveInt
    inducing: PositiveInt
    seconds: Positive  # of training, on the reference machine


def _known_likelihoods(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    refuse_unknown("likelihood", names or (), plugins(LIKELIHOODS))
    return names


class Entrant(Strict):
    """A method with its options and its grid of rates."""

    label: Text
    name: str
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)
    bases: dict[PositiveInt, tuple[PositiveInt, PositiveInt]] = Field(default_factory=dict)
    """(|β|, |γ|) by number of inducing points, of a method with two bases."""
    joint: bool = False
    reference: bool = False
    likelihoods: Annotated[tuple[str, ...] | None, AfterValidator(_known_likelihoods)] = None
    """Names of those on whose problems the entrant runs; None: all."""
    rows_below: PositiveInt | None = None
    e_rates: tuple[Positive, ...] = ()
    m_rates: tuple[Positive, ...] = ()
    source: str = ""

    @property
    def grid(self) -> list[RatePair]:
        """All pairs of rates; empty for a reference, which has none."""
        return [RatePair(e, m) for e in self.e_rates for m in self.m_rates]

    @model_validator(mode="after")
    def _has_a_grid(self) -> Entrant:
        if self.reference == bool(self.grid):
            what = "a reference has no rates" if self.reference else "give e_rates and m_rates"
            raise ValueError(f"entrant {self.label!r}: {what}")
        if len(set(self.grid)) < len(self.grid):
            # the search waits for as many records as the grid has pairs
            raise ValueError(f"entrant {self.label!r}: a rate is there twice")
        if len(self.grid) > GRID:
            raise ValueError(
                f"entrant {self.label!r}: {len(self.grid)} pairs of rates; at most {GRID}, as all have"
            )
        return self


class SuiteProblem(Strict):
    """A data set with its likelihood."""

    data: str
    likelihood: Annotated[LikelihoodConfig, with_new_defaults("likelihood")]
    why: Text
    name: str = ""
    lite: bool = False  # part of the preset `lite`

    @property
    def title(self) -> str:
        """Name on the board: that of the data set if there is no other."""
        return self.name or self.data

    @property
    def rows(self) -> int:
        """Number of rows of the table, from the registry: the data need not be there."""
        return _described(self.data).rows

    @property
    def dimensions(self) -> int:
        """Number of inputs."""
        return len(_described(self.data).features)


@functools.lru_cache
def _described(data: str) -> DatasetEntry:
    with as_user_errors():
        entry: DatasetEntry = registry_of(data).describe(data)
    return entry


class Suite(Strict):
    """The suite's file."""

    version: str
    date: datetime.date
    protocol: Protocol
    sizes: tuple[SizeClass, ...]
    entrants: tuple[Entrant, ...]
    problems: tuple[SuiteProblem, ...]

    @property
    def experiment(self) -> str:
        """Name of the experiment in records."""
        return f"suite-{self.version}"

    def size_of(self, problem: SuiteProblem) -> SizeClass:
        """Return the size class of a problem. Raises `UserError` if its table is larger than all."""
        for size in self.sizes:
            if problem.rows < size.rows_below:
                return size
        raise UserError(f"problem {problem.title!r}: {problem.rows} rows, beyond all [[sizes]]")

    def takes_part(self, entrant: Entrant, problem: SuiteProblem) -> bool:
        """Return True if an entrant runs on a problem."""
        allowed = entrant.likelihoods is None or problem.likelihood.name in entrant.likelihoods
        return allowed and (entrant.rows_below is None or problem.rows < entrant.rows_below)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Suite:
        for what, names in (
            ("problem", [x.title for x in self.problems]),
            ("entrant", [x.label for x in self.entrants]),
        ):
            for name, times in Counter(names).items():
                if times > 1:
                    raise ValueError(f"{what} {name!r} is there {times} times; give each its name")
        return self

    def refuse_missing_bases(self, entrant: Entrant) -> None:
        """Raise `UserError` if an entrant with two bases has none for a number of inducing points."""
        for size in self.sizes if entrant.bases else ():
            if size.inducing not in entrant.bases:
                raise UserError(f"entrant {entrant.label!r}: bases has no {size.inducing}, the number "
                                f"of inducing points below {size.rows_below} rows")  # fmt: skip

    @model_validator(mode="after")
    def _bases_are_whole(self) -> Suite:
        for entrant in self.entrants:
            self.refuse_missing_bases(entrant)
        return self

    @model_validator(mode="after")
    def _sizes_ascend(self) -> Suite:
        # a problem is in the first class that it fits
        limits = [size.rows_below for size in self.sizes]
        if limits != sorted(set(limits)):
            raise ValueError(f"rows_below of [[sizes]] are {limits}; sort them, the least first")
        return self


def load_suite(path: Path = SHIPPED) -> Suite:
    """Read the suite's file. Raises `UserError` with file and key for a mistake."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the suite {path}: {error.strerror}") from None
    declared = parse_toml(str(path), raw)
    try:
        return Suite.model_validate(declared)
    except ValidationError as error:
        raise UserError(f"{path}: {one_line(error, Suite, declared)}") from None


SIZES: Final[dict[str, Callable[[SuiteProblem], int]]] = {
    "rows": lambda problem: problem.rows,
    "inputs": lambda problem: problem.dimensions,
}
USUAL: Final = ("rows<2000", "rows<10000", "rows>=10000", "inputs<10", "inputs<30", "inputs>=30")
"""Groups by size that the board's page shows."""


_OF_SIZE: Final = re.compile(r"(rows|inputs)\s*(<|>=)\s*(\d+)")


def of_groups(problems: Sequence[SuiteProblem], groups: Sequence[str]) -> list[SuiteProblem]:
    """Return the problems that are in all of the groups.

    Raises `UserError` for an unknown group, or if no problem is left.
    """
    likelihoods = sorted({x.likelihood.name for x in problems})
    for group in groups:
        if group not in likelihoods and not _OF_SIZE.fullmatch(group):
            raise unknown("group of problems", group, [*likelihoods, *USUAL])
    left = [x for x in problems if all(is_in_group(x, group) for group in groups)]
    if not left:
        raise UserError(f"no problem of the suite is in {' and '.join(groups)}")
    return left


def is_in_group(problem: SuiteProblem, group: str) -> bool:
    """Return True if a problem has the size that a group such as `rows<2000` names, or the likelihood."""
    size = _OF_SIZE.fullmatch(group)
    if size is None:
        return problem.likelihood.name == group
    value, limit, below = SIZES[size[1]](problem), int(size[3]), size[2] == "<"
    return (value < limit) == below
