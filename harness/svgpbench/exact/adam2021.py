"""Adam et al. 2021: the dual parameterization; what each exact or counted claim comes to."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {}
"""By claim: a frame, a row a case with its `check` and its `residual`, or its cost and sizes."""
