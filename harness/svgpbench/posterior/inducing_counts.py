"""A search for enough inducing points: fits with a rising number M, and bounds on what more could add."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.errors import DataWarning, UnsettledWarning, UserError
from svgpbench.numerics.gaussian import LOG_2PI
from svgpbench.posterior.evidence_bounds import evidence_bounds
from svgpbench.posterior.fit import Named, fit
from svgpbench.posterior.inputs import distinct_rows, table_of
from svgpbench.posterior.posterior import Floats

COUNTS: Final = (10, 20, 50, 100, 200)

ENOUGH: Final = 0.01
"""Nats per row that more inducing points may add where their number is enough."""

MOST: Final = 0.95
"""Share of the gain that any number of points could have, from which on the answer names their number."""

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

    With Gaussian noise in float64 the fits are SGPR by L-BFGS unless `arguments` say otherwise.

    Args:
        X: inputs [n, D].
        y: targets [n].
        counts: numbers M of inducing points, in any order; those above the number of distinct rows of X are
            left out.
        likelihood: name, or the table of an experiment file.
        on_fit: called with the values of a row, without `gain`, `missing` and `enough`, when its fit ends.
        **arguments: further arguments of `fit`, but for `inducing`.

    Returns:
        One row per M, rising: `inducing`; `bound`; its `gain` over the previous row, in nats per row of the
        data; `upper_bound` on log p(y) at the fit's θ, NaN unless the noise is Gaussian; `missing`, the most
        that more points could add to `bound` at the θ of the largest M, in nats per row of the data;
        `enough`, whether that is at most 0.01; `share` of the gain over a noise model, that is (bound − log
        density of the targets under a Gaussian of their mean and variance) / (upper bound of the largest M −
        the same), NaN without an upper bound or a gain; `seconds`; `warning`, how the bound still moved.
        Without an upper bound `missing` is the distance to the bound of the largest M, which more points may
        exceed.

    Raises:
        UserError: as `fit`, and if no count is left.

    Examples:
        >>> import numpy as np
        >>> from svgpbench.api import compare_inducing_counts
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> table = compare_inducing_counts(X, np.sin(20.0 * X[:, 0]), [3, 15])
        >>> [int(count) for count in table["inducing"]], bool(table["gain"].iloc[1] > 0.1)
        ([3, 15], True)
    """
    inputs = table_of(X)
    n, distinct = len(inputs), distinct_rows(inputs)
    # a fit takes one inducing input per distinct row at most, whatever it is asked for
    try:
        tried = sorted({count for count in map(operator.index, counts) if count <= distinct})
    except TypeError:
        raise UserError(f"counts is {counts!r}; give a list of whole numbers") from None
    if not tried:
        raise UserError(
            f"no count of inducing points is at most the {distinct} distinct rows of the table"
        )
    name = likelihood if isinstance(likelihood, str) else likelihood.get("name", "gaussian")
    gaussian = name == "gaussian"
    in_float64 = arguments.get("dtype", "float64") == "float64"  # which L-BFGS needs
    settings = (dict(COLLAPSED) if gaussian and in_float64 else {}) | arguments
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
    # the upper bound is of the largest M's θ; a fit with fewer points may lie above it at its own
    missing = np.maximum(best - table["bound"], 0.0) / n
    table.insert(2, "gain", table["bound"].diff() / n)
    table.insert(4, "missing", missing)
    table.insert(5, "enough", missing <= ENOUGH)
    share = np.full(len(table), np.nan)
    if gaussian:
        noise = _noise_model(posterior.standardised_targets(y, n))
        # a share of a gain that is too small to count would be a quotient of two small differences
        if best - noise > ENOUGH * n:
            share = ((table["bound"] - noise) / (best - noise)).to_numpy()
    table.insert(6, "share", share)
    return table


def _noise_model(targets: Floats) -> float:
    """Return the log density of targets [n] under a Gaussian with their mean and variance."""
    with np.errstate(divide="ignore"):  # a constant target has an infinite density
        return float(-0.5 * len(targets) * (LOG_2PI + np.log(np.var(targets)) + 1.0))


def answer(table: pd.DataFrame) -> str:
    """Return how many points are enough, and how many have 95 % of the gain that any number could have.

    The table is that of `compare_inducing_counts`.
    """
    largest, reached = table.iloc[-1], table[table["share"] >= MOST]
    if np.isnan(largest["share"]):
        return _enough(table)
    if reached.empty:
        share = f"The bound at M = {largest['inducing']} has {100 * largest['share']:.1f} %"
    else:
        share = f"The bound at M = {reached['inducing'].iloc[0]} has at least {100 * MOST:.0f} %"
    return f"{_enough(table)} {share} of what any number could gain over a noise model."


def _enough(table: pd.DataFrame) -> str:
    """Return in one sentence how many points are enough."""
    largest, needed = table.iloc[-1], table[table["enough"]]
    first = needed.iloc[0] if len(needed) else largest
    M, missing = first["inducing"], f"{first['missing']:.2g} nats per row"
    if np.isnan(largest["upper_bound"]):
        growth = f"M = {M} is within {missing} of the bound at M = {largest['inducing']}."
        if np.isnan(largest["gain"]):
            growth = "One number of points does not show a gain; try several."
        elif largest["inducing"] == M:
            growth = f"The bound still grows up to M = {M}; try more."
        return (
            f"{growth} Without Gaussian noise there is no upper bound, so no number is certified."
        )
    at_largest = f"at the hyperparameters of M = {largest['inducing']}"
    if needed.empty:
        uncertified = f"No M is certified: {at_largest} more points could add up to {missing}."
        if np.isnan(largest["gain"]):
            return f"{uncertified} Try several."
        added = table["gain"].fillna(0.0)
        later = added.sum() - added.cumsum()  # by all points after those of a row
        # the first True; there is one, as nothing comes after the last row
        stop = int(np.argmax(later <= ENOUGH))
        if stop == len(table) - 1:
            return f"{uncertified} The last ones added {largest['gain']:.2g}: try more."
        M = table["inducing"].iloc[stop]
        return f"{uncertified} Use M = {M}: all after it added {later.iloc[stop]:.2g}."
    return f"M = {M} is enough: {at_largest} log p(y) of the exact GP is at most {missing} above its bound."
