"""The plan of a comparison: problems, the grid of rates that each contestant searches, seeds and targets."""

from __future__ import annotations

from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PositiveInt

from svgpbench.benchmarks.stability.plan import Jitter, ProblemPlan, read_as
from svgpbench.config import Positive, Strict
from svgpbench.experiments.identity import digest

SHIPPED = Path(__file__).with_name("plan.toml")
OURS = "svgpbench"
Rates = Annotated[tuple[Positive, ...], Field(min_length=1)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]


class RatePair(NamedTuple):
    """The rates of one run."""

    e: float  # of the natural gradient
    m: float  # of Adam


class Race(ProblemPlan):
    """A problem, how long every contestant trains on it, and the rates that it may choose from."""

    inducing: PositiveInt
    first_rows: bool = False  # the first training rows as inducing inputs, not random ones
    two_bases: tuple[PositiveInt, PositiveInt] | None = None  # |γ| and |β| of methods with both
    e_steps: PositiveInt = 1
    e_rates: Rates
    m_rates: Rates
    search_s: Positive
    seconds: Positive
    targets: Annotated[tuple[float, ...], Field(min_length=1)]

    @property
    def grid(self) -> list[RatePair]:
        """All pairs of rates, the surest first."""
        return [RatePair(*pair) for pair in product(self.e_rates, self.m_rates)]


class Plan(Strict):
    """What is trained."""

    seeds: Seeds = (0,)
    methods: tuple[str, ...] = ("t-svgp", "q-svgp")
    peer_methods: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Methods of a peer that take part; a peer that is not named has all of its methods."""
    backends: Annotated[tuple[str, ...], Field(min_length=1)] = ("torch",)
    jitter: Jitter = 1e-6
    checked_rows: PositiveInt = 1000
    test_rows: PositiveInt = 2000
    first_look_s: Positive = 0.25
    look_growth: Annotated[float, Field(gt=1)] = 1.1
    iterations: PositiveInt | None = None  # at most so many a run, whatever the clock says
    curves: Annotated[tuple[Literal["elbo", "nlpd"], ...], Field(min_length=1)] = ("nlpd",)
    problems: dict[str, Race]

    def within(self, seconds: float) -> Plan:
        """The plan with no run longer than so many seconds of training."""
        shorter = {
            name: race.model_copy(
                update={
                    "seconds": min(seconds, race.seconds),
                    "search_s": min(seconds, race.search_s),
                }
            )
            for name, race in self.problems.items()
        }
        return self.model_copy(update={"problems": shorter})

    def digest(self, problem: str) -> str:
        """Names all that decides a run on a problem but its own axes; targets and seconds do not."""
        aside = ("e_rates", "m_rates", "search_s", "seconds", "targets")
        race = self.problems[problem].model_dump(
            mode="json", exclude=dict.fromkeys(aside, True) | {"data": {"factors"}}
        )
        if not self.problems[problem].kernel.parts:  # plans of before there were kernels of several
            race["kernel"].pop("parts")
        for later in ("first_rows", "two_bases"):  # as digests were before these fields
            if not race[later]:
                del race[later]
        of_all = self.model_dump(
            mode="json", include={"jitter", "checked_rows", "test_rows", "iterations"}
        )
        return digest({"race": race, **of_all})

    def looks(self, seconds: float) -> list[float]:
        """The times of training at which a run is looked at, the last of them its end."""
        at, found = self.first_look_s, []
        while at < seconds:
            found.append(at)
            at *= self.look_growth
        return [*found, seconds]


class Contestant(NamedTuple):
    """A method of a library."""

    library: str
    method: str

    @property
    def title(self) -> str:
        """What tables and pictures call it."""
        return self.method if self.library == OURS else f"{self.library} {self.method}"


class Run(NamedTuple):
    """One training of a contestant: what tells it from others."""

    plan: str  # the digest of the problem's
    problem: str
    contestant: Contestant
    search: bool  # for rates; it sees no test row
    mode: str  # a backend of ours, a mode of a peer; empty: the peer finds its fastest
    rates: RatePair
    seed: int
    seconds: float

    @property
    def title(self) -> str:
        """For a line of progress."""
        at = f"{self.problem} {self.contestant.title}{f' ({self.mode})' if self.mode else ''}"
        stage = "search" if self.search else f"seed {self.seed}"
        return f"{at} {stage}: γ={self.rates.e:g} Adam={self.rates.m:g}"

    def key(self) -> dict[str, Any]:
        """As a record has it."""
        return {
            "problem": self.problem,
            **self.contestant._asdict(),
            "search": self.search,
            "asked": self.mode,
            "e_rate": self.rates.e,
            "m_rate": self.rates.m,
            "seed": self.seed,
            "seconds": self.seconds,
            "plan": self.plan,
        }


def shipped_plans() -> dict[str, Path]:
    """Return the plans of papers' figures by name."""
    papers = Path(str(files("svgpbench") / "papers"))
    return {x.stem: x for x in sorted(papers.glob("*/plans/*.toml"))}


def read_plan(path: Path = SHIPPED) -> Plan:
    """Read a plan from a file, or a shipped one by name; raises `UserError` for a file that is none."""
    return read_as(Plan, shipped_plans().get(str(path), path))
