"""Extra FLOPs of an E-step and an M-step with a narrower q(f|u): claim 04."""

from __future__ import annotations

from itertools import product

import pandas as pd

from svgpbench.checks.cases import VARIANTS, build_model
from svgpbench.cost import Size, count
from svgpbench.methods import build_method

PAIRS = {
    "q-SVGP": ("q-svgp natgrad", "q-svgp natgrad scalar", "q-svgp natgrad diagonal"),
    "t-SVGP untied": ("t-svgp untied", "t-svgp untied scalar", "t-svgp untied diagonal"),
    "t-SVGP tied-projected": ("t-svgp tied-projected", "t-svgp scalar", "t-svgp diagonal"),
    "SGPR": ("sgpr", "sgpr scalar", "sgpr diagonal"),
}
"""By family: the variants with the usual bound, with one v, and with a v_i for each datum."""

SIZES = [Size(n=n, M=M, D=8) for n in (1000, 10_000) for M in (30, 100, 300)]


def step_costs() -> pd.DataFrame:
    """Return claim 04's relative extra FLOPs of an E-step and an M-step over the usual bound, at least 0."""
    rows = []
    for (family, variants), size in product(PAIRS.items(), SIZES):
        usual, *narrower = (_flops(variant, size) for variant in variants)
        for name, flops in zip(("one v", "a v_i each"), narrower, strict=True):
            extra = max(0.0, flops / usual - 1.0)
            rows.append({"check": f"{family}, {name}", "n": size.n, "M": size.M, "residual": extra})
    return pd.DataFrame(rows)


def _flops(variant: str, size: Size) -> float:
    name, options = VARIANTS[variant]
    cost = count(build_method(name, options), build_model("gaussian", "matern52"), size)
    return float(cost.e_step.flops + cost.m_step.flops)
