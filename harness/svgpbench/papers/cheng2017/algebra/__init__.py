"""Cheng and Boots 2017, decoupled bases: results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench.papers.cheng2017.algebra.bases import as_printed, splits
from svgpbench.papers.cheng2017.algebra.costs import same_order, table_1
from svgpbench.papers.cheng2017.algebra.figure1 import beside_large, curves
from svgpbench.papers.cheng2017.algebra.sampling import unbiased
from svgpbench.papers.cheng2017.algebra.variances import variances

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "cheng2017-01": as_printed,
    "cheng2017-02": unbiased,
    "cheng2017-03": splits,
    "cheng2017-04": variances,
    "cheng2017-05": table_1,
    "cheng2017-06": same_order,
    "cheng2017-07": beside_large,
    "fig1/sinc": curves,
}
"""By claim: a frame with one row per case, its `check`, and its `residual` or its cost and sizes.

By figure: the frame that it draws.
"""
