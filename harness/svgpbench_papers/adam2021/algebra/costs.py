"""Adam et al. 2021, costs of steps of t-SVGP and q-SVGP: claims 09 and 24."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.backends import new_backend
from svgpbench.checks.cases import VARIANTS, build_model
from svgpbench.cost import Size, count
from svgpbench.methods import AnyMethod, build_method
from svgpbench.numerics.gaussian import Prior
from svgpbench.tree import leaves
from svgpbench_papers.algebra.random_problems import positive_part

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
"""Sizes of which one grows over a decade; the others are chosen so that one term dominates."""
POWERS = (
    ("E-step: M³", "flops", "M", 3.0),
    ("M-step: M³", "flops", "M", 3.0),
    ("E-step: bM², M", "flops", "M", 2.0),
    ("M-step: bM², M", "flops", "M", 2.0),
    ("E-step: bM², b", "flops", "b", 1.0),
    ("M-step: bM², b", "flops", "b", 1.0),
    ("E-step: n", "flops", "n", 0.0),
    ("M-step: n", "flops", "n", 0.0),
    ("state: M³", "numbers", "M", 2.0),
    ("state: n", "numbers", "n", 0.0),
    ("state: n", "untied_numbers", "n", 1.0),
    *(
        (check, cost, check[-1] if check.endswith("b") else "M", 0.0)
        for check in ("E-step: M³", "M-step: M³", "E-step: bM², b", "M-step: bM², b")
        for cost in ("flops_over_q", "bytes_over_q")
    ),
)
"""Step and ladder, the quantity counted along it, the size that grows, and the printed exponent."""


def step_costs() -> pd.DataFrame:
    """Count FLOPs, bytes, memory and stored numbers along each ladder, and ratios to q-SVGP (claim 09)."""
    frame = pd.DataFrame([row for name in LADDERS for row in _along(name)])
    exponents = []
    for check, cost, size, power in POWERS:
        rows = frame[frame["check"] == check]
        slope = float(np.polyfit(np.log(rows[size]), np.log(rows[cost]), 1)[0])
        name = f"exponent of {cost}, {check}"
        exponents.append({"check": name, "value": slope, "residual": slope - power})
    return pd.concat([frame, pd.DataFrame(exponents)], ignore_index=True)


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
    """Count the numbers in the method's state."""
    ops = new_backend("counting")
    square = ops.zeros((1, size.M, size.M))
    state = method.initial_state(ops, Prior(square, square), MODEL.latents, size.n)
    return sum(math.prod(leaf.shape) for leaf in leaves(state))


PRINTED_SIZES = {
    "MNIST": ("softmax", Size(n=70_000, M=100, D=784, b=200)),
    "airfoil": ("gaussian", Size(n=1202, M=50, D=5)),
    "pima": ("bernoulli-probit", Size(n=614, M=50, D=8)),
}
"""Sizes of the paper's experiments: MNIST in minibatches, and the largest data set per task of Figure 3."""
LARGE = {"M = 1000, b = 100": ("bernoulli-probit", Size(n=70_000, M=1000, D=8, b=100))}
"""Sizes with M ≫ b."""
CHAIN_RULE = build_method(*VARIANTS["q-svgp natgrad autodiff"])


def compute_saved() -> pd.DataFrame:
    """Return t-SVGP's FLOPs over q-SVGP's, by chain rule (App. D) or closed form (claim 24)."""
    shares: dict[str, float] = {}
    for name, (likelihood, size) in {**PRINTED_SIZES, **LARGE}.items():
        model = build_model(likelihood, "matern52")
        for form, standard in (("chain rule", CHAIN_RULE), ("closed form", STANDARD)):
            costs = [count(method, model, size) for method in (TIED, standard)]
            e_steps, m_steps = [x.e_step.flops for x in costs], [x.m_step.flops for x in costs]
            iterations = [e_steps[0] + m_steps[0], e_steps[1] + m_steps[1]]
            steps = {"E-step": e_steps, "M-step": m_steps, "iteration": iterations}
            shares |= {f"{step}, {name}, {form}": x / y for step, (x, y) in steps.items()}
    rows = [{"check": check, "residual": share} for check, share in shares.items()]
    rows += [
        {"check": f"excess of {check}", "residual": positive_part(share - 1.0)}
        for check, share in shares.items()
    ]
    return pd.DataFrame(rows)
