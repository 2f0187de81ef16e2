"""Tables of outcomes: drawn at random with everything that goes wrong in them, and written by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from svgpbench.suite.outcomes import Outcomes

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
        silent, easy = p == 2, rng.random() < 0.3
        constant = rng.integers(8, 24, folds) / 8.0
        gain = 2.0 ** rng.integers(-1, 3, folds)
        if p == 4:  # on one fold the constant prediction is the best
            gain[1] = -0.125
        present = [e for e in entrants if rng.random() < 0.85] or entrants[:1]
        found: list[dict[str, object]] = []
        for entrant, fold in product(present, range(folds)):
            row: dict[str, object] = {"problem": f"p{p}", "entrant": entrant, "fold": fold}
            gone = rng.random()
            row |= {"status": "ok", "constant_nlpd": constant[fold], "ms": 1.0}
            if gone < 0.05:
                row["status"] = "diverged"
            elif gone < 0.08:
                row |= {"status": "timeout", "constant_nlpd": np.nan}
            else:
                worse = 0.0 if easy else rng.integers(0, 6) / 8.0 * rng.integers(0, 4)
                least = constant[fold] - (0.0 if silent else gain[fold])
                row["nlpd"] = least + worse
                row["nlpd_tenth"] = least + worse + rng.integers(0, 8) / 8.0
                first, second = np.cumsum(rng.integers(1, 9, 2)) / 2.0
                row["seconds_90"] = np.inf if rng.random() < 0.2 else first
                lost = np.isinf(row["seconds_90"]) or rng.random() < 0.4
                row["seconds_99"] = np.inf if lost else second
                if rng.random() < 0.03:  # the bound is finite, and the density of a test row is 0
                    row |= dict.fromkeys(("nlpd", "nlpd_tenth"), np.nan)
                    row |= dict.fromkeys(("seconds_90", "seconds_99"), np.inf)
            found.append(row)
        if rng.random() < 0.2:  # every trial of an entrant failed
            for row in found:
                if row["entrant"] == present[-1]:
                    kept = {key: row[key] for key in ("problem", "entrant", "fold", "ms")}
                    row.clear()
                    row |= kept | {"status": "no trial finished"}
        runs += found
        for entrant in present:
            if entrant == "R":
                continue
            for e, m in PAIRS:
                ok = rng.random() < 0.85
                score = constant[0] + rng.integers(-8, 4) / 8.0 if ok else np.nan
                status = "ok" if ok else "diverged"
                values = (f"p{p}", entrant, 1, e, m, status, score)
                trials.append(values)
                if rng.random() < 0.3:  # the second round plays no part
                    trials.append((f"p{p}", entrant, 2, e, m, "ok", constant[0] - 100.0))
    table = pd.DataFrame(runs)
    score = table["nlpd"].where(table["status"] == "ok").fillna(np.inf)
    table["best_nlpd"] = score.groupby([table["problem"], table["fold"]]).transform("min")
    columns = ["problem", "entrant", "stage", "e_rate", "m_rate", "status", "nlpd"]
    return Outcomes(table, pd.DataFrame(trials, columns=columns)), candidates
