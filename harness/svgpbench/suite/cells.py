"""Cells of the suite: trials of the search, and the runs of the board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pandas as pd

from svgpbench.config import (
    BackendConfig,
    CellConfig,
    DataConfig,
    EvaluationPlan,
    InducingConfig,
    MethodConfig,
    RatePair,
    SplitConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.suite.schema import SHIPPED_FILES, Entrant, Suite, SuiteProblem

Budgets: TypeAlias = Mapping[tuple[str, str], int]
"""Iterations of a full run by titles of problem and entrant."""
Stage: TypeAlias = Literal["trial 1", "trial 2", "run"]
STAGES: tuple[Stage, ...] = ("trial 1", "trial 2", "run")
EVALUATIONS_OF_A_TRIAL = 10
"""A trial is judged by its last evaluation; the others show how it went."""


class SuiteRun(NamedTuple):
    """One run of the protocol: its place, and the cell that computes it."""

    problem: SuiteProblem
    entrant: Entrant
    stage: Stage
    rates: RatePair | None  # None for a reference
    fold: int
    cell: CellConfig


def read_measured(file: Path) -> pd.DataFrame:
    """Read a table of what was measured for a suite. Raises `UserError` if it is no table."""
    # a name or a digest may look like a number, or like a missing value
    texts = dict.fromkeys(("problem", "entrant", "made_of"), str)
    with damage_is_told(file):
        return pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=[""])


@contextmanager
def damage_is_told(file: Path) -> Iterator[None]:
    """Raise `UserError` with the name of a table if it lacks a column, or has a text in place of a number."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:  # so do those of pandas' parser
        raise UserError(f"{file} is damaged: {error}; delete it to measure again") from None


def iterations_table(path: Path) -> pd.DataFrame:
    """Read the iterations of full runs [problem × entrant]; missing where an entrant has none."""
    table = read_measured(path)
    with damage_is_told(path):
        return table.set_index(table.columns[0]).astype("Int64")


def read_iterations(path: Path = SHIPPED_FILES.iterations) -> dict[tuple[str, str], int]:
    """Read the iterations of full runs by titles of problem and entrant; empty if there is no file.

    Raises `UserError` for a damaged file.
    """
    if not path.exists():
        return {}
    return {
        (str(problem), str(entrant)): int(count)
        for problem, row in iterations_table(path).iterrows()
        for entrant, count in row.dropna().items()
    }


def task(
    suite: Suite,
    budgets: Budgets,
    problem: SuiteProblem,
    entrant: Entrant,
    stage: Stage,
    rates: RatePair | None,
    fold: int = 0,
) -> SuiteRun:
    """Return a run of an entrant on a problem.

    Trials train on the first fold's training rows without those that are held out. Fold k of the runs has
    seed k, so that batches and inducing inputs differ between folds.

    Raises `UserError` if the entrant has no budget on the problem.
    """
    cell = cell_of(suite, problem, entrant, stage, rates, fold, budgets)
    return SuiteRun(problem, entrant, stage, rates, fold, cell)


def cell_of(
    suite: Suite,
    problem: SuiteProblem,
    entrant: Entrant,
    stage: Stage,
    rates: RatePair | None,
    fold: int,
    budgets: Budgets,
) -> CellConfig:
    """Return the cell of a run with its stage's share of the entrant's iterations on the problem."""
    p, size = suite.protocol, suite.size_of(problem)
    iterations = budgets.get((problem.title, entrant.label))
    if iterations is None:
        raise UserError(
            f"entrant {entrant.label!r} has no number of iterations on problem {problem.title!r}: "
            "measure its step times first"
        )
    is_run = stage == "run"
    share = (*p.trial_shares, 1.0)[STAGES.index(stage)]
    training = TrainingConfig(
        em_iterations=max(1, round(share * iterations)),
        batch_size=None if problem.rows < p.full_batch_below else p.batch_size,
        m_steps=1,
        evaluation=EvaluationPlan(
            count=p.evaluations if is_run else EVALUATIONS_OF_A_TRIAL,
            train_rows=p.evaluated_rows,
            test_rows=p.tested_rows,
        ),
    )
    if rates is None:
        training = training.model_copy(update={"optimiser": "l-bfgs", "batch_size": None})
    else:
        # the same fall of the rates for all: at constant rates a run ends in its gradient's noise
        update = {
            "e_rate": rates.e,
            "m_rate": rates.m,
            "joint": entrant.joint,
            "cool_down": p.cool_down,
        }
        training = training.model_copy(update=update)
    beta, gamma = entrant.bases.get(size.inducing, (size.inducing, None))
    return CellConfig(
        experiment=suite.experiment,
        data=DataConfig(name=problem.data),
        split=SplitConfig(
            kind="k-fold",
            folds=p.folds,
            fold=fold,
            seed=p.split_seed,
            held_out=None if is_run else p.held_out,
        ),
        kernel=p.kernel,
        likelihood=problem.likelihood,
        inducing=InducingConfig(count=beta, gamma=gamma, init="k-means"),
        training=training,
        method=MethodConfig(name=entrant.name, label=entrant.label, options=entrant.options),
        backend=BackendConfig.parse(p.backend),
        jitter=p.jitter,
        seed=fold,
    )
