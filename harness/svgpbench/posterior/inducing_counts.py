"""How many inducing points are enough: fits with a rising number M, and bounds on what more could add."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.errors import DataWarning, UnsettledWarning, UserError
from svgpbench.posterior.evidence_bounds import evidence_bounds
from svgpbench.posterior.fit import Named, fit
from svgpbench.posterior.given import table_of

COUNTS: Final = (10, 20, 50, 100, 200)

ENOUGH: Final = 0.01
"""Nats per row that more inducing points may add where their number is enough."""

COLLAPSED: Final[Mapping[str, Any]] = {
    "method": "sgpr",
    "training": {"optimiser": "l-bfgs", "em_iterations": 20, "m_steps": 15},
}
"""Arguments of a fit with Gaussian noise: with the best q(u) at every θ, only θ and Z are learned."""


def compare_inducing_counts(
    X: npt.ArrayLike | pd.DataFrame,
    y: npt.ArrayLike,
    counts: Sequence[int] = COUNTS,
    *,
    likelihood: Named = "gaussian",
    on_fit: Callable[[Mapping[str, Any]], None] = lambda row: None,
    **arguments: Any,
) -> pd.DataFrame:
    """Fit with each number of inducing points, and bound what more of them could add.

    With Gaussian noise the fits are SGPR by L-BFGS unless `arguments` say otherwise.

    Args:
        X: inputs [n, D].
        y: targets [n].
        counts: numbers M of inducing points, in any order; those above n are left out.
        likelihood: name, or the table of an experiment file.
        on_fit: called with the values of a row, without `gain`, `missing` and `enough`, when its fit ends.
        **arguments: further arguments of `fit`, but for `inducing`.

    Returns:
        One row per M, rising: `inducing`; `bound`; its `gain` over the previous row, in nats per row of the
        data; `upper_bound` on log p(y) at the fit's θ, NaN unless the noise is Gaussian; `missing`, the most
        that more points could add to `bound` at the θ of the largest M, in nats per row of the data;
        `enough`, whether that is at most 0.01; `seconds`; `warning`, how the bound still moved. Without
        an upper bound `missing` is the distance to the bound of the largest M, which more points may exceed.

    Raises:
        UserError: as `fit`, and if no count is left.
    """
    n = len(table_of(X))
    tried = sorted({count for count in counts if count <= n})
    if not tried:
        raise UserError(f"no count of inducing points is at most the {n} rows of the table")
    gaussian = (likelihood if isinstance(likelihood, str) else likelihood.get("name")) == "gaussian"
    settings = (dict(COLLAPSED) if gaussian else {}) | arguments
    rows: list[dict[str, Any]] = []
    for count in tried:
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsettledWarning)  # a column of the table says it
            if rows:
                warnings.simplefilter("ignore", DataWarning)  # once
            posterior = fit(X, y, likelihood=likelihood, inducing=count, **settings)
        bounds = evidence_bounds(posterior, X, y) if gaussian else None
        rows.append(
            {
                "inducing": count,
                "bound": bounds.lower if bounds else posterior.elbo,
                "upper_bound": bounds.upper if bounds else np.nan,
                "seconds": perf_counter() - start,
                "warning": posterior.unsettled,
            }
        )
        on_fit(rows[-1])
    table = pd.DataFrame(rows)
    best = table["upper_bound" if gaussian else "bound"].iloc[-1]
    missing = np.maximum(best - table["bound"], 0.0) / n
    table.insert(2, "gain", table["bound"].diff() / n)
    table.insert(4, "missing", missing)
    table.insert(5, "enough", missing <= ENOUGH)
    return table


def answer(table: pd.DataFrame) -> str:
    """Return in one sentence how many points are enough, by a table of `compare_inducing_counts`."""
    largest, needed = table.iloc[-1], table[table["enough"]]
    first = needed.iloc[0] if len(needed) else largest
    M, missing = first["inducing"], f"{first['missing']:.2g} nats per row"
    if np.isnan(largest["upper_bound"]):
        uncertain = "Without Gaussian noise there is no upper bound, so no number is certified."
        if largest["inducing"] == M:
            return f"The bound still grows up to M = {M}; try more. {uncertain}"
        return f"M = {M} is within {missing} of the bound at M = {largest['inducing']}. {uncertain}"
    at_largest = f"at the hyperparameters of M = {largest['inducing']}"
    if needed.empty:
        uncertified = f"No M is certified: {at_largest} more points could add up to {missing}."
        if np.isnan(largest["gain"]):
            return f"{uncertified} Try several."
        added = table["gain"].fillna(0.0)
        later = added.sum() - added.cumsum()  # by all points after those of a row
        stop = int(np.argmax(later <= ENOUGH))
        if stop == len(table) - 1:
            return f"{uncertified} The last ones added {largest['gain']:.2g}: try more."
        M = table["inducing"].iloc[stop]
        return f"{uncertified} Use M = {M}: all after it added {later.iloc[stop]:.2g}."
    return f"M = {M} is enough: {at_largest} log p(y) of the exact GP is at most {missing} above its bound."
