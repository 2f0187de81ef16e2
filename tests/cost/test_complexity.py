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
    formula_exponents,
)
from shipped import SHIPPED_METHODS

from svgpbench.cost import Size

SPARSE_TIME, SPARSE_SPACE = "DNM + NM² + M³", "NM + M²"
TABLE_1 = "Cheng and Boots 2017, Table 1"

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
    from test_complexity_of_families import FAMILIES

    rows = {stated.method for stated in (*STATED, *FAMILIES)}
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


def test_each_term_of_a_formula_leads_in_one_regime() -> None:
    for regime, (n, M, D) in zip(FULL_BATCH, ((1, 2, 0), (0, 3, 0), (1, 1, 1)), strict=True):
        slopes = formula_exponents(SPARSE_TIME, regime.size)
        assert slopes == pytest.approx({"n": n, "M": M, "D": D}, abs=0.005)
