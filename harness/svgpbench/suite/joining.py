"""A stranger's entrant: what it is, how many iterations it gets, and its place on the board."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd
from pydantic import ValidationError

from svgpbench.atomic import write_whole
from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.loading import is_file_name, parse_toml
from svgpbench.methods import build_method
from svgpbench.plugins import METHODS, code_of
from svgpbench.suite.cells import Budgets, read_iterations, read_measured
from svgpbench.suite.findings import BESIDE
from svgpbench.suite.outcomes import FinishedProtocol, Outcomes, finished, outcomes
from svgpbench.suite.protocol import RecordFinder
from svgpbench.suite.schema import Entrant, Suite, SuiteProblem
from svgpbench.suite.step_times import (
    ROUNDS_OF_A_PAIR,
    Milliseconds,
    ratios,
    read_step_times,
    two_digits,
)

REFERENCE: Final = BESIDE
"""Entrant of the suite that is timed beside a new one, to carry its time over to the reference machine."""

UNSURE: Final = 1.2
"""Upper over lower quartile of the rounds' ratios, above which a budget is not trusted."""


def added_entrant(suite: Suite, text: str) -> Entrant:
    """Return the entrant of a file with the keys of one of `[[entrants]]`, or of a method's name.

    A method has the grid of the suite's entrants whose q moves in the same way: by natural or other steps of
    its own, or by Adam. A method with two bases has the sizes of the first such entrant.

    Raises `UserError` for a file with a mistake, an unknown method, or the label of another entrant.
    """
    labels = {x.label for x in suite.entrants}
    if is_file_name(text):
        entrant = _from_file(suite, Path(text))
    elif text in labels:
        raise UserError(f"{text!r} is on the board already; name a method or a file of your own")
    else:
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
    if entrant.label in labels:
        raise UserError(
            f"the suite has an entrant {entrant.label!r} already; give yours another label"
        )
    return entrant


def _from_file(suite: Suite, path: Path) -> Entrant:
    try:
        declared = parse_toml(str(path), path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read the entrant {path}: {error.strerror}") from None
    try:
        entrant = Entrant.model_validate(declared)
    except ValidationError as error:
        raise UserError(f"{path}: {one_line(error, Entrant, declared)}") from None
    if entrant.reference:
        # it would have a rank, and stand below the board as one without
        raise UserError(f"{path}: a reference has no place on the board: give e_rates and m_rates")
    method = build_method(entrant.name, entrant.options)
    if method.basis == "decoupled" and not entrant.bases:
        raise UserError(
            f"{path}: method {entrant.name!r} has two bases: give bases, |β| and |γ| by number of inducing "
            "points, such as bases = { 50 = [35, 70] }"
        )
    if entrant.bases and method.basis != "decoupled":
        raise UserError(f"{path}: method {entrant.name!r} has one basis: leave bases out")
    suite.refuse_missing_bases(entrant)
    return entrant


class Measured(NamedTuple):
    """Iterations of full runs of a new entrant, and the time of one iteration on the reference machine."""

    budgets: Budgets
    ms: Milliseconds


def entrants_file(results: Path, experiment: str) -> Path:
    """Return the file of a folder of records with what was measured of new entrants."""
    return results / f"{experiment}-entrants.csv"


def own_iterations(
    suite: Suite,
    problems: Sequence[SuiteProblem],
    entrant: Entrant,
    file: Path,
    run: Callable[[list[CellConfig], Path], bool],
    say: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Return the iterations of a new entrant, and its time of an iteration on the reference machine.

    The entrant and `REFERENCE` are timed here, in turn. By the ratio of their times the entrant gets as many
    iterations as fit into the reference's budget. What was measured is kept in `file`, so that a resumed
    search goes on with the same budgets; an entrant with other code or options is measured again.

    Args:
        suite: the suite.
        problems: the problems that the entrant runs.
        entrant: the new entrant.
        file: the table of new entrants, from `entrants_file`.
        run: runs cells in one process, with their records in a folder; returns False if interrupted.
        say: prints a line of progress.
    """
    made_of = _made_of(entrant)
    own = _measured_before(file).query("entrant == @entrant.label and made_of == @made_of")
    new = [x for x in problems if x.title not in set(own["problem"])]
    if new:
        reference = next(x for x in suite.entrants if x.label == REFERENCE)
        found = ratios(
            suite, new, entrant, reference, run,
            lambda number: say(
                f"timing {entrant.label} beside {REFERENCE}: round {number} of {ROUNDS_OF_A_PAIR}"
            ),
        )  # fmt: skip
        there, budgets = read_step_times(), read_iterations()
        rows = []
        for title, ratio, low, high in found.itertuples():
            of_reference = (str(title), REFERENCE)
            count, ms = two_digits(budgets[of_reference] / ratio), there[of_reference] * ratio
            rows.append((entrant.label, made_of, title, count, ms))
            say(
                f"{title}: an iteration takes {ratio:.2f} times as long ({low:.2f} to {high:.2f}), "
                f"{count} fit"
            )
        if unsure := [str(x) for x in found.index[found["high"] > UNSURE * found["low"]]]:
            say(
                f"warning: the times of {'; '.join(unsure)} are unsure, as something else ran; delete "
                f"{file} and start again on a quiet machine"
            )
        own = pd.concat([own, pd.DataFrame(rows, columns=own.columns)], ignore_index=True)
        _write_measured(file, own)
    by_problem = own.set_index("problem")
    return Measured(
        {(str(x), entrant.label): int(n) for x, n in by_problem["iterations"].items()},
        {(str(x), entrant.label): float(ms) for x, ms in by_problem["ms"].items()},
    )


def _made_of(entrant: Entrant) -> str:
    """Return a digest of what decides an entrant's time: the code of its method, options and bases."""
    facts = entrant.model_dump(mode="json", include={"name", "options", "joint", "bases"})
    text = json.dumps([facts, code_of(METHODS, entrant.name)], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def _measured_before(file: Path) -> pd.DataFrame:
    """Read the table of measured entrants; without rows if there is no file.

    Raises `UserError` for a damaged file.
    """
    columns = ["entrant", "made_of", "problem", "iterations", "ms"]
    if not file.exists():
        return pd.DataFrame(columns=columns)
    table = read_measured(file)
    if [*table.columns] != columns:
        raise UserError(f"{file} has other columns than {', '.join(columns)}; delete it")
    return table


def _write_measured(file: Path, rows: pd.DataFrame) -> None:
    """Put rows into the table of a file; those of the same entrant, code and problem are replaced."""
    before = _measured_before(file)
    table = pd.concat([before, rows], ignore_index=True) if len(before) else rows
    table = table.drop_duplicates(["entrant", "made_of", "problem"], keep="last")
    write_whole(file, table.to_csv(index=False).encode())


def collect_entrants(folders: Iterable[Path], results: Path) -> None:
    """Put what was measured of new entrants, in folders of records and below, into that of `results`."""
    for folder in folders:
        for file in sorted(folder.rglob("*-entrants.csv")):
            if file.parent != results:
                _write_measured(results / file.name, _measured_before(file))


def with_entrant(
    suite: Suite,
    shipped: Outcomes,
    problems: Sequence[SuiteProblem],
    entrant: Entrant,
    budgets: Budgets,
    ms: Milliseconds,
    results: Path,
) -> Outcomes:
    """Return the shipped outcomes on these problems, and folds that run, with those of a new entrant.

    A problem without a budget is one on which the entrant failed while it was timed: it is last there.
    """
    find_record = RecordFinder(results, any_status=True)
    failed = [x for x in problems if (x.title, entrant.label) not in budgets]
    done = [
        *finished(suite, budgets, problems, [entrant], find_record),
        *(FinishedProtocol(problem, entrant, [], []) for problem in failed),
    ]
    # the shipped best: a new entrant changes no share but its own
    own = outcomes(suite, done, ms, best=shipped.runs)
    titles = [problem.title for problem in problems]
    runs = shipped.runs[
        shipped.runs["problem"].isin(titles) & (shipped.runs["fold"] < suite.protocol.folds_run)
    ]
    trials = shipped.trials[shipped.trials["problem"].isin(titles)]
    both = (runs, own.runs), (trials, own.trials)
    return Outcomes(*(pd.concat(tables, ignore_index=True) for tables in both))
