"""A stranger's entrant: what it is, how many iterations it gets, and its place on the board."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd
from pydantic import ValidationError

from svgpbench.atomic import write_whole
from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.loading import is_file_name, parse_toml
from svgpbench.methods import build_method
from svgpbench.plugins import METHODS, find
from svgpbench.suite.cells import Budgets, read_iterations
from svgpbench.suite.outcomes import Outcomes, finished, outcomes
from svgpbench.suite.protocol import FolderLook
from svgpbench.suite.schema import Entrant, Suite, SuiteProblem
from svgpbench.suite.step_times import Milliseconds, measured, read_step_times, two_digits

REFERENCE: Final = "q-SVGP natural"
"""Entrant of the suite that is timed beside a new one, to carry its time over to the reference machine."""


def added_entrant(suite: Suite, text: str) -> Entrant:
    """Return the entrant of a file with the keys of one of `[[entrants]]`, or of a method's name.

    A method has the grid of the suite's entrants whose q moves in the same way: by natural or other steps of
    its own, or by Adam. A method with two bases has the sizes of the first such entrant.

    Raises `UserError` for a file with a mistake, an unknown method, or the label of another entrant.
    """
    if is_file_name(text):
        entrant = _from_file(Path(text))
    else:
        find(METHODS, text)
        method = build_method(text, {})
        like = next(x for x in suite.entrants if x.grid and x.joint == method.first_order)
        two = next(x for x in suite.entrants if x.bases)
        entrant = like.model_copy(
            update={
                "label": text,
                "name": text,
                "options": {},
                "bases": two.bases if method.basis == "decoupled" else {},
                "source": "",
            }
        )
    if entrant.label in {x.label for x in suite.entrants}:
        raise UserError(
            f"the suite has an entrant {entrant.label!r} already; give yours another label"
        )
    return entrant


def _from_file(path: Path) -> Entrant:
    try:
        declared = parse_toml(str(path), path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read the entrant {path}: {error.strerror}") from None
    try:
        entrant = Entrant.model_validate(declared)
    except ValidationError as error:
        raise UserError(f"{path}: {one_line(error, Entrant, declared)}") from None
    find(METHODS, entrant.name)
    build_method(entrant.name, entrant.options)
    return entrant


def own_iterations(
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrant: Entrant,
    folder: Path,
    run: Callable[[list[CellConfig], Path], bool],
) -> tuple[Budgets, Milliseconds]:
    """Return the iterations of a new entrant, and its time of an iteration on the reference machine.

    The entrant and `REFERENCE` are timed here, in turn. By the ratio of their times the entrant gets as many
    iterations as fit into the reference's budget. What was measured is kept in `folder`, so that a resumed
    search goes on with the same budgets.
    """
    path = (
        folder / f"{re.sub(r'[^A-Za-z0-9.-]', '-', entrant.label)}.csv"
    )  # a label may have a slash
    kept = (
        pd.read_csv(path)
        if path.exists()
        else pd.DataFrame(columns=["problem", "iterations", "ms"])
    )
    new = [x for x in problems if x.title not in set(kept["problem"])]
    if new:
        reference = next(x for x in suite.entrants if x.label == REFERENCE)
        times = measured(suite, new, [reference, entrant], run)
        here = {
            (x, y): ms for x, y, ms in times[["problem", "entrant", "ms"]].itertuples(index=False)
        }
        there, budgets = read_step_times(), read_iterations()
        rows = []
        for problem in new:
            own, other = (here.get((problem.title, x)) for x in (entrant.label, REFERENCE))
            if own is None or other is None:
                continue  # its runs fail, and say why
            of_reference = (problem.title, REFERENCE)
            count, ms = budgets[of_reference] * other / own, there[of_reference] * own / other
            rows.append((problem.title, two_digits(count), ms))
        kept = pd.concat([kept, pd.DataFrame(rows, columns=kept.columns)], ignore_index=True)
        write_whole(path, kept.to_csv(index=False).encode())
    by_problem = kept.set_index("problem")
    own_budgets = {(str(x), entrant.label): int(n) for x, n in by_problem["iterations"].items()}
    ms_of = {(str(x), entrant.label): float(ms) for x, ms in by_problem["ms"].items()}
    return own_budgets, ms_of


def with_entrant(
    suite: Suite,
    shipped: Outcomes,
    problems: Sequence[SuiteProblem],
    entrant: Entrant,
    budgets: Budgets,
    ms: Milliseconds,
    results: Path,
) -> Outcomes:
    """Return the shipped outcomes on these problems, and folds that run, with those of a new entrant."""
    look = FolderLook(results, any_status=True)
    done = finished(suite, budgets, problems, [entrant], look)
    # the shipped best: a new entrant changes no share but its own
    own = outcomes(suite, done, ms, best=shipped.runs)
    titles = [problem.title for problem in problems]
    runs = shipped.runs[
        shipped.runs["problem"].isin(titles) & (shipped.runs["fold"] < suite.protocol.folds_run)
    ]
    trials = shipped.trials[shipped.trials["problem"].isin(titles)]
    return Outcomes(pd.concat([runs, own.runs]), pd.concat([trials, own.trials]))
