"""Counted exponents against the complexities that papers and the methods' own facts state.

A cost is a polynomial in the sizes; far out, where one size outweighs the others, its local slopes are the
exponents of the leading term. Every term of a stated complexity leads in one of the regimes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from complexity import (
    FULL_BATCH,
    MANY_INDUCING,
    MANY_ROWS,
    MANY_ROWS_OF_A_BATCH,
    MINIBATCH,
    MORE_INDUCING_THAN_A_BATCH,
    Regime,
    Stated,
    disagreements,
)
from shipped import SHIPPED_METHODS

from svgpbench.cost import Size

SPARSE_TIME, SPARSE_SPACE = "DNM + NM² + M³", "NM + M²"
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

STATED = [
    Stated(f"{TABLE_1}, SVI", "q-svgp", {}, SPARSE_TIME, SPARSE_SPACE, MINIBATCH),
    *[
        Stated(
            f"{TABLE_1}, SVI: whiten = {whiten}, {optimiser}, {gradient}",
            "q-svgp",
            {"whiten": whiten, "optimiser": optimiser, "gradient": gradient},
            SPARSE_TIME,
            SPARSE_SPACE,
            FULL_BATCH,
        )
        for whiten in (True, False)
        for optimiser in ("natgrad", "adam")
        for gradient in ("closed-form", "autodiff")
    ],
    *[
        Stated(
            f"Adam et al. 2021, Sec. 2.1: all data, {tying}, {likelihood}",
            "t-svgp",
            {"tying": tying},
            "NM² + M³",
            SPARSE_SPACE,
            (MANY_ROWS, MANY_INDUCING),
            likelihood,
        )
        for tying in ("tied-projected", "tied", "untied", "standard", "whitened")
        for likelihood in ("gaussian", "bernoulli-logit")
    ],
    *[
        Stated(
            f"Adam et al. 2021, Sec. 2.1 and 6: minibatches, {tying}",
            "t-svgp",
            {"tying": tying},
            "M³ + NM²",
            SPARSE_SPACE,
            (MANY_ROWS_OF_A_BATCH, MORE_INDUCING_THAN_A_BATCH),
        )
        for tying in ("tied-projected", "tied", "standard", "whitened")
    ],
    Stated(
        "an E-step with sites: n of them in memory",
        "t-svgp",
        {"tying": "untied"},
        "M³ + NM² + n",
        "NM + M² + n",
        (
            MORE_INDUCING_THAN_A_BATCH,
            Regime("many sites", Size(n=10**17, b=10**2, M=10**2, D=1)),
        ),
        steps=("e_step",),
    ),
    Stated(
        "an M-step that rebuilds its sums from every site",
        "t-svgp",
        {"tying": "untied"},
        "DnM + nM² + M³",
        "nM + M²",
        (Regime("many rows, small batch", Size(n=10**14, b=10**3, M=10**7, D=1)),),
        steps=("m_step",),
    ),
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


@pytest.mark.parametrize("stated", STATED, ids=lambda s: f"{s.method}: {s.source}")
def test_exponents_are_those_stated(stated: Stated) -> None:
    assert disagreements(stated) == []


@pytest.mark.parametrize("method", ["t-svgp", "q-svgp", "diagonal-precision"])
def test_facts_of_a_method_state_what_is_counted(method: str) -> None:
    row = Stated("facts", method, {}, "", "", MINIBATCH[:2], steps=("e_step",))
    facts = row.build().info
    time, space = (
        re.fullmatch(r"O\((.*)\)", text)[1].replace("b", "N")  # type: ignore[index]
        for text in (facts.e_step, facts.memory)
    )
    assert disagreements(replace(row, time=time, space=space)) == []


# --- the comparison itself -------------------------------------------------------------------------


def test_every_method_that_is_here_has_a_row() -> None:
    rows = {stated.method for stated in STATED}
    assert {name for name, _ in SHIPPED_METHODS.values()} <= rows


@pytest.mark.parametrize(
    ("time", "space"),
    [
        ("DNM + NM + M³", SPARSE_SPACE),  # one factor M too few
        ("DNM + NM² + M²", SPARSE_SPACE),
        ("DNM² + NM² + M³", SPARSE_SPACE),
        (SPARSE_TIME, "N + M²"),
        (SPARSE_TIME, "NM + M³"),
    ],
)
def test_a_wrong_formula_is_found(time: str, space: str) -> None:
    wrong = Stated("", "t-svgp", {}, time, space, FULL_BATCH)
    assert disagreements(wrong)
    assert not disagreements(replace(wrong, time=SPARSE_TIME, space=SPARSE_SPACE))
