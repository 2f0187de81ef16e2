"""Plan of a comparison: problems, the grid of rates that each contestant searches, seeds and targets."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PositiveInt

from svgpbench.benchmarks.problem_plan import Jitter, ProblemPlan, read_as
from svgpbench.benchmarks.timing.cases import timed_method
from svgpbench.config import Positive, RatePair, Strict
from svgpbench.environment import OURS
from svgpbench.errors import refuse_unknown
from svgpbench.experiments.identity import digest, digests_of
from svgpbench.plugins import BACKENDS, METHODS, PEERS, paper_folders, plugins

SHIPPED = Path(__file__).with_name("plan.toml")
Rates = Annotated[tuple[Positive, ...], Field(min_length=1)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]


class TrainingProblem(ProblemPlan):
    """Problem with its training time, the rates that a contestant may choose from, and the targets."""

    inducing: PositiveInt
    first_rows: bool = False  # inducing inputs are the first training rows, not random ones
    two_bases: tuple[PositiveInt, PositiveInt] | None = None  # |γ| and |β| of methods with two
    e_steps: PositiveInt = 1
    e_rates: Rates
    m_rates: Rates
    search_s: Positive
    seconds: Positive
    targets: Annotated[tuple[float, ...], Field(min_length=1)]

    @property
    def grid(self) -> list[RatePair]:
        """All pairs of rates, the safest first."""
        return [RatePair(*pair) for pair in product(self.e_rates, self.m_rates)]


class LearningPlan(Strict):
    """Settings of a comparison, read from its file."""

    seeds: Seeds = (0,)
    methods: tuple[str, ...] = ("t-svgp", "q-svgp")
    peer_methods: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Methods of each peer that take part. A peer that is not named takes part with all its methods."""
    backends: Annotated[tuple[str, ...], Field(min_length=1)] = ("torch",)
    jitter: Jitter = 1e-6
    checked_rows: PositiveInt = 1000
    test_rows: PositiveInt = 2000
    first_look_s: Positive = 0.25
    look_growth: Annotated[float, Field(gt=1)] = 1.1
    iterations: PositiveInt | None = None  # per run, besides its limit in seconds
    curves: Annotated[tuple[Literal["elbo", "nlpd"], ...], Field(min_length=1)] = ("nlpd",)
    problems: dict[str, TrainingProblem]

    def limited_to(self, seconds: float) -> LearningPlan:
        """Return the plan with every run limited to `seconds` of training."""
        shorter = {
            name: settings.model_copy(
                update={
                    "seconds": min(seconds, settings.seconds),
                    "search_s": min(seconds, settings.search_s),
                }
            )
            for name, settings in self.problems.items()
        }
        return self.model_copy(update={"problems": shorter})

    def digest(self, problem: str) -> str:
        """Return a digest of all that decides a run on a problem, except the axes of the run itself.

        Rates, seconds and targets do not count. Raises `UserError` if the user's data file cannot be read.
        """
        # rates and seconds are in each run's key, and targets are read off its curve: old runs stay
        ignored = ("e_rates", "m_rates", "search_s", "seconds", "targets")
        settings = self.problems[problem].model_dump(mode="json", exclude=set(ignored))
        shared = self.model_dump(
            mode="json", include={"jitter", "checked_rows", "test_rows", "iterations"}
        )
        return digest({"race": settings, **shared, **self.problems[problem].content()})

    def code(self, contestant: Contestant) -> dict[str, str]:
        """Return the digests of the code of a contestant, with all backends of the plan if it is ours."""
        if contestant.library != OURS:
            return digests_of([(PEERS, contestant.library)])
        # all of them, because the search decides which one trains
        backends = [(BACKENDS, name.partition(":")[0]) for name in self.backends]
        return digests_of([(METHODS, timed_method(contestant.method).name), *backends])

    def evaluation_times(self, seconds: float) -> list[float]:
        """Return the training times at which a run is evaluated, from 0, its start, to its end."""
        time, times = self.first_look_s, [0.0]
        while time < seconds:
            times.append(time)
            # a constant factor: seconds to a target have the same relative error early and late
            time *= self.look_growth
        return [*times, seconds]


class Contestant(NamedTuple):
    """Method of a library."""

    library: str
    method: str

    @property
    def title(self) -> str:
        """Title in tables and figures."""
        return self.method if self.library == OURS else f"{self.library} {self.method}"


class Run(NamedTuple):
    """Training run of a contestant, with all that identifies it."""

    plan: str  # digest of the plan for the problem
    problem: str
    contestant: Contestant
    search: bool  # a run of the search for rates, which gets no test row
    mode: str  # backend of ours or mode of a peer; empty: the peer's fastest
    rates: RatePair
    seed: int
    seconds: float

    @property
    def title(self) -> str:
        """Title in a line of progress."""
        mode = f" ({self.mode})" if self.mode else ""
        stage = "search" if self.search else f"seed {self.seed}"
        contestant = f"{self.problem} {self.contestant.title}{mode}"
        return f"{contestant} {stage}: γ={self.rates.e:g} Adam={self.rates.m:g}"

    def key(self) -> dict[str, Any]:
        """Return the fields of a record that identify the run."""
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
    papers = (Path(str(folder)) for folder in paper_folders().values())
    return {x.stem: x for paper in papers for x in sorted(paper.glob("plans/*.toml"))}


def read_learning_plan(path: Path = SHIPPED) -> LearningPlan:
    """Read a plan from a file, or a shipped one by name.

    Raises `UserError` if the file is missing or invalid, or if `peer_methods` names no peer.
    """
    plan = read_as(LearningPlan, shipped_plans().get(str(path), path))
    refuse_unknown("peer of peer_methods", plan.peer_methods, plugins(PEERS))
    return plan
