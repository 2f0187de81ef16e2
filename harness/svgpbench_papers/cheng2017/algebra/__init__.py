"""Cheng and Boots 2017, decoupled bases: results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench_papers.cheng2017.algebra import bases, costs, figure1, sampling, variances

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "cheng2017-01": bases.as_printed,
    "cheng2017-02": sampling.unbiased,
    "cheng2017-03": bases.splits,
    "cheng2017-04": variances.variances,
    "cheng2017-05": costs.table_1,
    "cheng2017-06": costs.same_order,
    "cheng2017-07": figure1.beside_large,
    "counting/printed": costs.beside_print,
    "fig1/sinc": figure1.curves,
}
"""Functions that compute a frame, by claim and by `ARTEFACT/FIGURE`."""
