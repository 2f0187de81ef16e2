"""Titsias 2025 and Bui et al. 2025, narrower q(f|u): results of the exact and counted claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench_papers.titsias2025.algebra import bounds

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "titsias2025-01": bounds.collapsed,
    "titsias2025-02": bounds.same_steps,
    "titsias2025-03": bounds.any_likelihood,
    "titsias2025-04": bounds.step_costs,
}
"""Functions that compute a frame, by claim and by `ARTEFACT/FIGURE`."""
