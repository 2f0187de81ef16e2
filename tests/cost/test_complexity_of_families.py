"""Counted exponents of exact, collapsed, full, diagonal and decoupled families.

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

# D is large where it has to outweigh the handful of elementwise operations that a kernel makes
MEAN_BASIS = Regime("large mean basis", Size(n=10**9, b=10**8, M=10, D=10**4, gamma=10**20))
DIMENSIONS = Regime("many dimensions", Size(n=10**9, b=10**8, M=10, D=10**12, gamma=10**9), False)
ROWS = Regime("many rows", Size(n=10**15, b=10**14, M=10**6, D=1, gamma=10**7), False)
COVARIANCE_BASIS = Regime(
    "large covariance basis", Size(n=10**4, b=10**3, M=10**9, D=1, gamma=10**10), False
)
# M_α ≥ M_β as Table 1 assumes, and in memory N ≥ M_β, as it does where it leaves K_βα out
DECOUPLED = (MEAN_BASIS, DIMENSIONS, ROWS, COVARIANCE_BASIS)
MANY_PAIRS = Regime("many rows", Size(n=10**15, b=10**14, M=10**3, D=1, gamma=10**7))
MANY_DIMENSIONS_OF_PAIRS = Regime(
    "many dimensions", Size(n=10**9, b=10**3, M=10, D=10**12, gamma=10**6), False
)
# here a factor L_β⁻¹K_βγ in place of its product with a would show as M_γM_β²
BOTH_BASES = Regime(
    "large bases, small batch", Size(n=10**4, b=10**2, M=10**8, D=10**4, gamma=10**24)
)

FAMILIES = [
    # its E-step has nothing to find: the M-step climbs the marginal likelihood
    Stated(f"{TABLE_1}, GPR", "gpr", {}, "DN² + N³", "N²", ALL_ROWS, steps=("m_step",)),
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
        "products in place of factorisations",
        "r-svgp",
        {},
        "DNM + NM² + M³",
        "NM + M²",
        MINIBATCH,
    ),
    Stated(
        f"{TABLE_1}, SVDGP",
        "decoupled",
        {"subset": 100},
        "DNA + NB² + B³",
        "NA + B²",
        DECOUPLED,
    ),
    *(
        Stated(
            f"Salimbeni et al. 2018b, Secs. 3.1 and 3.3: {options}",
            method,
            options,
            "DNA + DAB + NB² + B³",
            "NA + AB + B²",
            (*DECOUPLED, BOTH_BASES),
        )
        for method, options in (
            ("hybrid", {"subset": 100}),
            ("orth", {"subset": 100}),
            ("orth", {"subset": 100, "coupled": "q-svgp natgrad", "gamma_rate": 0.02}),
        )
    ),
    Stated(
        "Salimbeni et al. 2018b, Eq. 17: the diagonal of D_γ needs all of L_β⁻¹K_βγ",
        "orth",
        {"subset": 100, "gamma_step": "scaled"},
        "DNA + DAB + ABB + NB² + B³",
        "NA + AB + B²",
        (MEAN_BASIS, DIMENSIONS, ROWS, BOTH_BASES),
    ),
    Stated(
        "Salimbeni et al. 2018b, Eq. 16a: D_γ is formed and factorised",
        "orth",
        {"gamma_step": "natural", "gamma_rate": 0.02},
        "DNA + DA² + A²B + A³ + NB² + B³",
        "NA + A² + B²",
        (MEAN_BASIS, ROWS, MANY_DIMENSIONS_OF_PAIRS),
        steps=("e_step",),
    ),
    Stated(
        "ours: D_γ and K_⊥ are formed, and their sum factorised in every step",
        "orth",
        {"gamma_step": "newton"},
        "DNA + DA² + A²B + A³ + NAB + NA² + NB² + B³",
        "NA + A² + B²",
        (MEAN_BASIS, MANY_PAIRS, MANY_DIMENSIONS_OF_PAIRS),
        steps=("e_step",),
    ),
]


@pytest.mark.parametrize("stated", FAMILIES, ids=lambda s: f"{s.method}: {s.source}")
def test_exponents_are_those_stated(stated: Stated) -> None:
    assert disagreements(stated) == []
