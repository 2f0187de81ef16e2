"""Titsias 2025 and Bui et al. 2025, narrower q(f|u): results of the exact and counted claims."""

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
"""By claim: a frame with one row per case, its `check` and its `residual`."""
