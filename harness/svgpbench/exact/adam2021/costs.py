"""Adam et al. 2021, what a step of t-SVGP costs beside one of q-SVGP: claim 09."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from svgpbench.checks.cases import VARIANTS, build_model
from svgpbench.cost import Size, count
from svgpbench.methods import AnyMethod, build_method
from svgpbench.numerics.gaussian import Prior
from svgpbench.plugins import new_backend
from svgpbench.tree import leaves

MODEL = build_model("bernoulli-logit", "matern52")
TIED, UNTIED, STANDARD = (
    build_method(name, options)
    for name, options in (
        VARIANTS[variant]
        for variant in ("t-svgp tied-projected", "t-svgp untied", "q-svgp natgrad")
    )
)
LADDERS = {
    "M³": [Size(n=1000, M=M, D=1, b=10) for M in (10_000, 30_000, 100_000)],
    "bM², M": [Size(n=10**8, M=M, D=1, b=10**7) for M in (300, 1000, 3000)],
    "bM², b": [Size(n=10**8, M=100, D=1, b=b) for b in (10**5, 10**6, 10**7)],
    "n": [Size(n=n, M=100, D=1, b=100) for n in (10**6, 10**7, 10**8)],
    "D": [Size(n=10**4, M=100, D=D, b=200) for D in (10**5, 10**6, 10**7)],
}
"""Sizes of which one grows over a decade, so far from the others that one term rules."""


def step_costs() -> pd.DataFrame:
    """Claim 09: FLOPs, bytes, memory and stored numbers along each ladder, and t-SVGP over q-SVGP."""
    return pd.DataFrame([row for name in LADDERS for row in _along(name)])


def _along(ladder: str) -> Iterator[dict[str, Any]]:
    for size in LADDERS[ladder]:
        sizes = {"n": size.n, "M": size.M, "D": size.D, "b": size.b}
        for step in ("e_step", "m_step"):
            tied, untied, standard = (
                getattr(count(method, MODEL, size), step) for method in (TIED, UNTIED, STANDARD)
            )
            title = {"e_step": "E-step", "m_step": "M-step"}[step]
            yield {
                "check": f"{title}: {ladder}", **sizes,
                "flops": tied.flops, "bytes": tied.bytes, "peak_bytes": tied.peak_bytes,
                "untied_flops": untied.flops,
                "flops_over_q": tied.flops / standard.flops,
                "bytes_over_q": tied.bytes / standard.bytes,
            }  # fmt: skip
        yield {
            "check": f"state: {ladder}", **sizes,
            "numbers": numbers_of(TIED, size), "untied_numbers": numbers_of(UNTIED, size),
        }  # fmt: skip


def numbers_of(method: AnyMethod, size: Size) -> int:
    """How many numbers the method's state has."""
    ops = new_backend("counting")
    square = ops.zeros((1, size.M, size.M))
    state = method.initial_state(ops, Prior(square, square), MODEL.latents, size.n)
    return sum(math.prod(leaf.shape) for leaf in leaves(state))
