"""Advice from the board: entrants, rates and seconds for data such as the user's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from svgpbench.config import DataConfig, LikelihoodConfig, RatePair
from svgpbench.suite.board import Board, best_column
from svgpbench.suite.cells import read_iterations
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import SizeClass, Suite, SuiteProblem
from svgpbench.suite.step_times import read_step_times

FEWEST: Final = 5
"""Fewest problems of a group that an answer rests on, if a larger group has more."""
RECOMMENDED: Final = 3


class ProblemGroup(NamedTuple):
    """Problems of the suite that an answer rests on."""

    name: str  # such as "gaussian, about as many rows as yours"
    problems: tuple[SuiteProblem, ...]


class Recommendation(NamedTuple):
    """An entrant with rates for the user's data."""

    entrant: str
    won: float  # share of the group's problems on which no entrant has a better rank
    share: float  # mean share of the possible gain at the end
    rates: RatePair  # the pair with the largest mean share in the group's trials
    iterations: int  # median of whole runs
    seconds: (
        float  # to 90 % of the possible gain at the table's size; infinite if most runs miss it
    )
    whole_run: float  # seconds of so many iterations, at the table's size


class Advice(NamedTuple):
    """Answer for a table."""

    likelihood: str
    rows: int
    inputs: int
    inducing: int
    group: ProblemGroup
    recommended: tuple[Recommendation, ...]
    costs: pd.DataFrame  # see `held_out_costs`

    def to_json(self) -> dict[str, Any]:
        """Return the answer for JSON."""
        return {
            **{key: getattr(self, key) for key in ("likelihood", "rows", "inputs", "inducing")},
            "group": self.group.name,
            "problems": [problem.title for problem in self.group.problems],
            "recommended": [x._asdict() | {"rates": x.rates._asdict()} for x in self.recommended],
            "held_out": self.costs.to_dict("records"),
        }


def advise(suite: Suite, outcomes: Outcomes, likelihood: str, rows: int, inputs: int) -> Advice:
    """Return the entrants of least average rank in the group of the suite that a table falls into."""
    size = _size_for(suite, rows)
    group = group_of(suite, set(outcomes.runs["problem"]), likelihood, size)
    recommended = recommend(suite, outcomes, group, likelihood, size)
    costs = held_out_costs(suite, outcomes)
    inducing = min(size.inducing, _training_rows(suite, rows))
    return Advice(likelihood, rows, inputs, inducing, group, recommended, costs)


def _size_for(suite: Suite, rows: int) -> SizeClass:
    """Return the size class of a user's table; one beyond all gets advice as one of the largest."""
    return next((x for x in suite.sizes if rows < x.rows_below), suite.sizes[-1])


def _training_rows(suite: Suite, rows: int) -> int:
    """Return how many rows of a table train in every fold, of which the inducing inputs are chosen."""
    return rows - math.ceil(rows / suite.protocol.folds)


def group_of(suite: Suite, ran: Collection[str], likelihood: str, size: SizeClass) -> ProblemGroup:
    """Return the problems with this likelihood and size; with too few, those of the likelihood, or all.

    Only problems whose titles are in `ran` count.
    """
    problems = tuple(problem for problem in suite.problems if problem.title in ran)
    same = tuple(x for x in problems if x.likelihood.name == likelihood)
    near = tuple(x for x in same if suite.size_of(x) == size)
    if len(near) >= FEWEST:
        return ProblemGroup(f"{likelihood}, about as many rows as yours", near)
    if len(same) >= FEWEST:
        return ProblemGroup(
            f"{likelihood}; only {len(near)} with about as many rows as yours", same
        )
    return ProblemGroup(f"all likelihoods; only {len(same)} with {likelihood}", problems)


def _board(suite: Suite, outcomes: Outcomes, group: ProblemGroup) -> Board:
    """Return the board of a group; references are no candidates."""
    candidates = [x.label for x in suite.entrants if not x.reference]
    return Board(outcomes, candidates, [problem.title for problem in group.problems])


def recommend(
    suite: Suite, outcomes: Outcomes, group: ProblemGroup, likelihood: str, size: SizeClass
) -> tuple[Recommendation, ...]:
    """Return the best candidates of a group, that of least average rank first.

    Iterations are those of the group. Their time is that of an iteration at the table's size, as the group
    may have problems with fewer inducing points.
    """
    board = _board(suite, outcomes, group)
    ranks, shares, trials = board.ranks(), board.shares(), board.trial_shares()
    iterations = read_iterations()
    answers = []
    for entrant in ranks.mean().sort_values(kind="stable").index[:RECOMMENDED]:
        runs = board.runs[board.runs["entrant"] == entrant]
        steps_to_90 = (runs["seconds_90"].fillna(np.inf) / runs["ms"]).median()
        counts = [
            iterations[x.title, entrant] for x in group.problems if (x.title, entrant) in iterations
        ]
        ms = _milliseconds(suite, entrant, likelihood, size)
        answers.append(
            Recommendation(
                entrant=entrant,
                won=float((ranks[entrant] == ranks.min(axis="columns")).mean()),
                share=float(shares[entrant].mean()),
                rates=RatePair(*best_column(trials[entrant])),
                iterations=int(np.median(counts)),
                seconds=float(steps_to_90 * ms),
                whole_run=float(np.median(counts)) * ms / 1e3,
            )
        )
    return tuple(answers)


def _milliseconds(suite: Suite, entrant: str, likelihood: str, size: SizeClass) -> float:
    """Return the median time of an entrant's iteration over problems of a size that were timed.

    These are those of the likelihood, else all of the size.
    """
    times = read_step_times()
    of_size = [
        (problem, times[problem.title, entrant])
        for problem in suite.problems
        if suite.size_of(problem) == size and (problem.title, entrant) in times
    ]
    same = [ms for problem, ms in of_size if problem.likelihood.name == likelihood]
    return float(np.median(same or [ms for _, ms in of_size]))


def held_out_costs(suite: Suite, outcomes: Outcomes) -> pd.DataFrame:
    """Return what following the advice would have cost on each problem, had its table not been in the suite.

    Columns are `problem`, `advised`, the first recommendation without the table, `best`, the best entrant
    there, and `cost`, the share of the possible gain of the best less that of the advised entrant, each at
    the rates that its own search chose.
    """
    # a rank or a share is of one problem: one board serves, whatever is left out
    board = _board(suite, outcomes, ProblemGroup("all", suite.problems))
    ranks, shares = board.ranks(), board.shares()
    by_title = {problem.title: problem for problem in suite.problems}
    rows = []
    for title, share in shares.iterrows():
        problem = by_title[str(title)]
        # another problem of the same table would know its rows
        others = [x for x in ranks.index if by_title[x].data != problem.data]
        if not others:
            continue
        group = group_of(suite, others, problem.likelihood.name, suite.size_of(problem))
        advised = str(ranks.loc[[x.title for x in group.problems]].mean().idxmin())
        cost = share.max() - share[advised]
        rows.append((problem.title, advised, str(share.idxmax()), float(cost)))
    return pd.DataFrame(rows, columns=["problem", "advised", "best", "cost"])


def experiment_file(suite: Suite, advice: Advice, data: DataConfig) -> str:
    """Return the text of an experiment file that runs the recommended entrants on the user's data."""
    p, by_label = suite.protocol, {x.label: x for x in suite.entrants}
    full_batch = advice.rows < p.full_batch_below
    name = re.sub(r"[^A-Za-z0-9._-]", "-", f"advised-{data.name}")
    same = (x.likelihood for x in suite.problems if x.likelihood.name == advice.likelihood)
    likelihood = next(same, LikelihoodConfig(name=advice.likelihood))
    evaluation = {
        "count": p.evaluations,
        "train_rows": p.evaluated_rows,
        "test_rows": p.tested_rows,
    }
    lines = [
        f"# {advice.group.name}: {len(advice.group.problems)} problems of suite {suite.version}",
        f"name = {_value(name)}",
        f"backends = [{_value(p.backend)}]",
        f"jitter = {p.jitter:g}",
        f"kernel = {_table(p.kernel.model_dump(exclude_unset=True))}",
        f"inducing = {{ count = {advice.inducing} }}",
        f'split = {{ kind = "k-fold", folds = {p.folds} }}',
        "",
        "[training]",
        # said, as a new file would get guarded steps; the rates were found with full ones
        'steps = "full"',
        "m_steps = 1",
        *([] if full_batch else [f"batch_size = {p.batch_size}"]),
        f"cool_down = {p.cool_down}",
        f"evaluation = {_table(evaluation)}",
        "",
        "[[problems]]",
        f"data = [{_table(data.model_dump(exclude_unset=True, exclude_none=True))}]",
        f"likelihood = {_table(likelihood.model_dump(exclude_unset=True, exclude_none=True))}",
    ]
    for x in advice.recommended:
        entrant = by_label[x.entrant]
        training: dict[str, Any] = {
            "em_iterations": x.iterations,
            "e_rate": x.rates.e,
            "m_rate": x.rates.m,
        }
        if entrant.joint:
            training["joint"] = True
        lines += ["", "[[methods]]", f"label = {_value(x.entrant)}"]
        lines += [f"name = {_value(entrant.name)}", f"training = {_table(training)}"]
        if entrant.options:
            lines.append(f"options = {_table(entrant.options)}")
        if entrant.bases:
            bases = entrant.bases[_size_for(suite, advice.rows).inducing]
            # both are chosen from the rows, and no row is in both
            share = min(1.0, _training_rows(suite, advice.rows) / sum(bases))
            beta, gamma = (max(1, int(share * x)) for x in bases)
            lines.append(f"inducing = {{ count = {beta}, gamma = {gamma} }}")
    return "\n".join(lines) + "\n"


def _table(values: dict[str, Any]) -> str:
    """Return an inline table of TOML."""
    return f"{{ {', '.join(f'{key} = {_value(value)}' for key, value in values.items())} }}"


def _value(value: Any) -> str:
    """Return a value as TOML, which has the same texts, numbers and truth values as JSON."""
    if isinstance(value, dict):
        return _table(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)  # TOML forbids the surrogates of JSON's escapes
