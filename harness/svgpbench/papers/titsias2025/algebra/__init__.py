"""Titsias 2025 and Bui et al. 2025: bounds with a narrower q(f|u); what exact and counted claims come to."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench.papers.titsias2025.algebra.bounds import any_likelihood, collapsed, same_steps
from svgpbench.papers.titsias2025.algebra.costs import step_costs

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "titsias2025-01": collapsed,
    "titsias2025-02": same_steps,
    "titsias2025-03": any_likelihood,
    "titsias2025-04": step_costs,
}
"""By claim: a frame, a row a case with its `check` and its `residual`."""
