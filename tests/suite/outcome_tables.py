"""Tables of outcomes: drawn at random with everything that goes wrong in them, and written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.suite.outcomes import Outcomes

SILENT, BROKEN, UNEVEN = 2, 3, 4
"""Problems on which nobody gains, of which a fold may fail for everyone, and where the constant prediction
is the best on a fold."""
PAIRS = [(e, m) for e in (0.01, 0.1, 1.0) for m in (0.001, 0.01)]


def random_outcomes(seed: int, problems: int = 6, folds: int = 5) -> tuple[Outcomes, list[str]]:
    """Return outcomes and the names of the candidates.

    All numbers are eighths and all gains powers of two, so that what ought to be equal is equal. There are
    ties, failed runs with and without a constant prediction, missing entrants, searches that failed
    whole, a problem on which nobody gains, infinite times and, in some tables, a reference.
    """
    rng = np.random.default_rng(seed)
    candidates = ["A", "B", "C", "D"][: rng.integers(2, 5)]
    entrants = [*candidates, "R"] if rng.random() < 0.5 else candidates
    runs, trials = [], []
    for p in range(problems):
        easy = rng.random() < 0.3
        constant = rng.integers(8, 24, folds) / 8.0
        gain = 2.0 ** rng.integers(-1, 3, folds) * (p != SILENT)
        if p == UNEVEN:
            gain[1:2] = -0.125
        present = [e for e in entrants if rng.random() < 0.85] or entrants[:1]
        all_failed = present[-1] if rng.random() < 0.2 else None
        for entrant, fold in product(present, range(folds)):
            row = {"problem": f"p{p}", "entrant": entrant, "fold": fold, "ms": 1.0}
            if p == BROKEN and fold == 1 and seed % 3 == 0:
                runs.append(row | {"status": "timeout", "constant_nlpd": np.nan})
            elif entrant == all_failed:
                runs.append(row | {"status": "no trial finished"})
            else:
                runs.append(row | _random_run(rng, constant[fold], gain[fold], easy=easy))
        for entrant in present:
            if entrant != "R":
                rows = _random_trials(rng, constant[0])
                trials += [{"problem": f"p{p}", "entrant": entrant} | row for row in rows]
    table = pd.DataFrame(runs)
    score = table["nlpd"].where(table["status"] == "ok").fillna(np.inf)
    table["best_nlpd"] = score.groupby([table["problem"], table["fold"]]).transform("min")
    return Outcomes(table, pd.DataFrame(trials)), candidates


def _random_run(
    rng: np.random.Generator, constant: float, gain: float, *, easy: bool
) -> dict[str, Any]:
    """Draw what a run ended with."""
    fate = rng.random()
    if fate < 0.05:
        return {"status": "diverged", "constant_nlpd": constant}
    if fate < 0.08:
        return {"status": "timeout", "constant_nlpd": np.nan}
    if fate < 0.11:  # the bound is finite, and the density of a test row is 0
        return {"status": "ok", "constant_nlpd": constant, "nlpd": np.nan}
    nlpd = constant - gain + (0.0 if easy else rng.integers(0, 6) / 8.0 * rng.integers(0, 4))
    first, second = np.cumsum(rng.integers(1, 9, 2)) / 2.0
    first = np.inf if rng.random() < 0.2 else first
    return {
        "status": "ok",
        "constant_nlpd": constant,
        "nlpd": nlpd,
        "nlpd_tenth": nlpd + rng.integers(0, 8) / 8.0,
        "seconds_90": first,
        "seconds_99": np.inf if np.isinf(first) or rng.random() < 0.4 else second,
    }


def _random_trials(rng: np.random.Generator, constant: float) -> Iterator[dict[str, Any]]:
    """Draw trials of an entrant on a problem; those of the second round play no part in defaults."""
    for e, m in PAIRS:
        ok = rng.random() < 0.85
        row = {"stage": 1, "e_rate": e, "m_rate": m, "status": "ok" if ok else "diverged"}
        yield row | {"nlpd": constant + rng.integers(-8, 4) / 8.0 if ok else np.nan}
        if rng.random() < 0.3:
            yield row | {"stage": 2, "status": "ok", "nlpd": constant - 100.0}
