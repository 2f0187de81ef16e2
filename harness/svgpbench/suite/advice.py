"""Advice from the board: entrants, rates and seconds for data such as the user's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from svgpbench.config import DataConfig
from svgpbench.suite.board import Board, best_column
from svgpbench.suite.cells import read_iterations
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import Entrant, RatePair, SizeClass, Suite, SuiteProblem

FEWEST: Final = 5
"""Fewest problems of a group that an answer rests on, if a larger group has more."""
RECOMMENDED: Final = 3


class Group(NamedTuple):
    """Problems of the suite that an answer rests on."""

    name: str  # such as "gaussian, rows<10000"
    problems: tuple[SuiteProblem, ...]


class Recommendation(NamedTuple):
    """An entrant with rates for the user's data."""

    entrant: str
    won: float  # share of the group's problems on which no entrant ranks better
    share: float  # mean share of the possible gain at the end
    rates: RatePair  # the pair with the largest mean share in the group's trials
    seconds: (
        float  # median time to 90 % of the possible gain; infinite if most runs do not reach it
    )
    budget_s: float  # median time of a whole run


class Advice(NamedTuple):
    """Answer for a table."""

    likelihood: str
    rows: int
    inputs: int
    inducing: int
    group: Group
    recommended: tuple[Recommendation, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the answer for JSON."""
        return {
            **{key: getattr(self, key) for key in ("likelihood", "rows", "inputs", "inducing")},
            "group": self.group.name,
            "problems": [problem.title for problem in self.group.problems],
            "recommended": [x._asdict() | {"rates": x.rates._asdict()} for x in self.recommended],
        }


def advise(suite: Suite, outcomes: Outcomes, likelihood: str, rows: int, inputs: int) -> Advice:
    """Return the entrants of least average rank in the group of the suite that is nearest to a table."""
    size = size_class(suite, rows)
    group = group_of(suite, outcomes, likelihood, size)
    recommended = recommend(suite, outcomes, group)
    return Advice(likelihood, rows, inputs, size.inducing, group, recommended[:RECOMMENDED])


def size_class(suite: Suite, rows: int) -> SizeClass:
    """Return the size class of a table; the largest one has no end."""
    return next((size for size in suite.sizes if rows < size.rows_below), suite.sizes[-1])


def group_of(suite: Suite, outcomes: Outcomes, likelihood: str, size: SizeClass | None) -> Group:
    """Return the problems with this likelihood and size; with too few, those of the likelihood, or all."""
    ran = set(outcomes.runs["problem"])
    problems = [problem for problem in suite.problems if problem.title in ran]
    same = [x for x in problems if x.likelihood.name == likelihood]
    near = [x for x in same if size is None or suite.size_of(x) == size]
    if size is not None and len(near) >= FEWEST:
        return Group(f"{likelihood}, about as many rows", tuple(near))
    if len(same) >= FEWEST:
        return Group(likelihood, tuple(same))
    return Group(f"all likelihoods, as {len(same)} of {likelihood} are too few", tuple(problems))


def recommend(suite: Suite, outcomes: Outcomes, group: Group) -> tuple[Recommendation, ...]:
    """Return all candidates of a group, the one of least average rank first."""
    candidates = [x.label for x in suite.entrants if not x.reference]
    board = Board(outcomes, candidates, [problem.title for problem in group.problems])
    ranks, trials = board.ranks(), board.trial_shares()
    best = ranks.min(axis="columns")
    iterations = read_iterations()
    answers = []
    for row in board.rows():
        runs = board.runs[board.runs["entrant"] == row.entrant]
        spent = [
            iterations.get((str(problem), row.entrant), np.nan) * ms / 1e3
            for problem, ms in runs.groupby("problem")["ms"].first().items()
        ]
        answers.append(
            Recommendation(
                entrant=row.entrant,
                won=float((ranks[row.entrant] == best).mean()),
                share=row.share.mean,
                rates=RatePair(*best_column(trials[row.entrant])),
                seconds=float(np.median(runs["seconds_90"].fillna(np.inf).to_numpy())),
                budget_s=float(np.median(spent)),
            )
        )
    return tuple(answers)


def held_out_costs(suite: Suite, outcomes: Outcomes) -> pd.DataFrame:
    """Return what following the advice would have cost on each problem, had it not been in the suite.

    Columns are `problem`, `advised`, the first recommendation without the problem, `best`, the best entrant
    there, and `cost`, the share of the possible gain of the best less that of the advised entrant, each at
    the rates that its own search chose.
    """
    candidates = [x.label for x in suite.entrants if not x.reference]
    shares = Board(outcomes, candidates).shares()
    rows = []
    for problem in suite.problems:
        if problem.title not in shares.index:
            continue
        others = Outcomes(*(x[x["problem"] != problem.title] for x in outcomes))
        group = group_of(suite, others, problem.likelihood.name, suite.size_of(problem))
        advised = recommend(suite, others, group)[0].entrant
        costs = (shares.loc[problem.title].max() - shares.loc[problem.title]).dropna()
        rows.append((problem.title, advised, str(costs.idxmin()), costs[advised]))
    return pd.DataFrame(rows, columns=["problem", "advised", "best", "cost"])


def experiment_file(
    suite: Suite, advice: Advice, data: DataConfig, entrants: Sequence[Entrant]
) -> str:
    """Return the text of an experiment file that runs the recommended entrants on the user's data."""
    p, by_label = suite.protocol, {x.label: x for x in entrants}
    iterations = read_iterations()
    titles = [problem.title for problem in advice.group.problems]
    full_batch = advice.rows < p.full_batch_below
    lines = [
        f"# {advice.group.name}: {len(titles)} problems of suite {suite.version}",
        f"name = {json.dumps(f'advised-{data.name}')}",
        f"backends = [{json.dumps(p.backend)}]",
        f"kernel = {_table(p.kernel.model_dump(exclude_unset=True))}",
        f"inducing = {{ count = {advice.inducing} }}",
        f'split = {{ kind = "k-fold", folds = {p.folds} }}',
        "",
        "[training]",
        'steps = "full"',
        "m_steps = 1",
        *([] if full_batch else [f"batch_size = {p.batch_size}"]),
        f"cool_down = {p.cool_down:g}",
        f"evaluation = {{ count = {p.evaluations}, train_rows = {p.evaluated_rows} }}",
        "",
        "[[problems]]",
        f"data = [{_table(data.model_dump(exclude_unset=True, exclude_none=True))}]",
        f"likelihood = {{ name = {json.dumps(advice.likelihood)} }}",
    ]
    for x in advice.recommended:
        entrant = by_label[x.entrant]
        counts = [
            iterations[title, x.entrant] for title in titles if (title, x.entrant) in iterations
        ]
        training: dict[str, Any] = {
            "em_iterations": int(np.median(counts)),
            "e_rate": x.rates.e,
            "m_rate": x.rates.m,
        }
        if entrant.joint:
            training["joint"] = True
        lines += ["", "[[methods]]", f"label = {json.dumps(x.entrant)}"]
        lines += [f"name = {json.dumps(entrant.name)}", f"training = {_table(training)}"]
        if entrant.options:
            lines.append(f"options = {_table(entrant.options)}")
        if entrant.bases:
            beta, gamma = entrant.bases[advice.inducing]
            lines.append(f"inducing = {{ count = {beta}, gamma = {gamma} }}")
    return "\n".join(lines) + "\n"


def _table(values: dict[str, Any]) -> str:
    """Return an inline table of TOML. JSON has the same texts, numbers, lists and truth values."""
    return f"{{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in values.items())} }}"
