"""Counted exponents of exact, collapsed, full, diagonal and decoupled families; skipped where not installed.

See `test_complexity.py` for how exponents are compared.
"""

from __future__ import annotations

import pytest
from complexity import (
    FULL_BATCH,
    MINIBATCH,
    Regime,
    Stated,
    disagreements,
)

from svgpbench.cost import Size

TABLE_1 = "Cheng and Boots 2017, Table 1"

ALL_ROWS = (
    Regime("many rows", Size(n=10**9, M=1, D=1)),
    Regime("many dimensions", Size(n=10**4, M=1, D=10**13), space=False),
)

# M_α ≥ M_β as the table assumes, and N ≥ M_β as it silently does where it leaves K_βα out
MEAN_BASIS = Regime("large mean basis", Size(n=10**9, b=10**8, M=10, D=1, gamma=10**18))
DIMENSIONS = Regime("many dimensions", Size(n=10**9, b=10**8, M=10, D=10**12, gamma=10**9), False)
ROWS = Regime("many rows", Size(n=10**15, b=10**14, M=10**6, D=1, gamma=10**7), False)
COVARIANCE_BASIS = Regime(
    "large covariance basis", Size(n=10**4, b=10**3, M=10**9, D=1, gamma=10**10), False
)
DECOUPLED = (MEAN_BASIS, DIMENSIONS, ROWS, COVARIANCE_BASIS)

FAMILIES = [
    Stated(f"{TABLE_1}, GPR", "gpr", {}, "DN² + N³", "N²", ALL_ROWS),
    Stated(f"{TABLE_1}, VSGPR", "sgpr", {}, "DNM + NM² + M³", "NM + M²", FULL_BATCH),
    Stated("exact inference", "t-vgp", {}, "DN² + N³", "N²", ALL_ROWS),
    Stated("exact inference", "q-vgp", {}, "DN² + N³", "N²", ALL_ROWS),
    Stated(
        "the coupled family's, with fewer parameters",
        "diagonal-precision",
        {},
        "DNM + NM² + M³",
        "NM + M²",
        MINIBATCH,
    ),
    Stated(
        f"{TABLE_1}, SVDGP",
        "decoupled",
        {"subset": 1000},
        "DNA + NB² + B³",
        "NA + B²",
        DECOUPLED,
    ),
    Stated("Salimbeni et al. 2018b, Sec. 3", "hybrid", {}, "", "", ()),
    Stated("Salimbeni et al. 2018b, Sec. 3", "orth", {}, "", "", ()),
]


@pytest.mark.parametrize("stated", FAMILIES, ids=lambda s: f"{s.method}: {s.source}")
def test_exponents_are_those_stated(stated: Stated) -> None:
    assert disagreements(stated) == []
