"""Stated complexities as formulas, and their exponents next to the counted ones."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace

from svgpbench.checks.cases import build_model
from svgpbench.cost import Size, exponents
from svgpbench.methods import AnyMethod, build_method

POWERS = {"": 1, "²": 2, "³": 3}
TOLERANCE = 0.01


def value(formula: str, size: Size) -> int:
    """A sum of products such as `DNM + NM²`; N the rows of a step, A and B the two bases' sizes."""
    sizes = {"N": size.rows, "n": size.n, "M": size.M, "D": size.D, "A": size.gamma, "B": size.M}
    total = 0
    for term in formula.split(" + "):
        factors = re.findall(r"([A-Za-z])([²³]?)", term)
        assert "".join(symbol + power for symbol, power in factors) == term
        total += math.prod((sizes[symbol] or 0) ** POWERS[power] for symbol, power in factors)
    return total


def formula_exponents(formula: str, size: Size) -> dict[str, float]:
    """The slopes of a formula, as `cost.exponents` takes those of a count."""
    return {
        x: math.log2(value(formula, replace(size, **{x: 2 * v})) / value(formula, size))
        for x, v in asdict(size).items()
        if v is not None
    }


@dataclass(frozen=True)
class Regime:
    """Sizes where one term of a formula outweighs all others."""

    name: str
    size: Size
    space: bool = True  # whether the formula for memory, which leaves D out, is meant there too


MANY_ROWS = Regime("many rows", Size(n=10**14, M=10**7, D=1))
MANY_INDUCING = Regime("many inducing points", Size(n=10**3, M=10**9, D=1))
MANY_DIMENSIONS = Regime("many dimensions", Size(n=10**8, M=10**3, D=10**12), space=False)
MANY_ROWS_OF_A_BATCH = Regime("many rows of a batch", Size(n=10**15, b=10**14, M=10**7, D=1))
MORE_INDUCING_THAN_A_BATCH = Regime(
    "more inducing points than a batch", Size(n=10**10, b=10**3, M=10**9, D=1)
)
FULL_BATCH = (MANY_ROWS, MANY_INDUCING, MANY_DIMENSIONS)
MINIBATCH = (MANY_ROWS_OF_A_BATCH, MORE_INDUCING_THAN_A_BATCH, MANY_DIMENSIONS)


@dataclass(frozen=True)
class Stated:
    """What a source says of a method: time and space of a step, as formulas."""

    source: str
    method: str
    options: dict[str, str | bool | int | float]
    time: str
    space: str
    regimes: tuple[Regime, ...]
    likelihood: str = "gaussian"
    steps: tuple[str, ...] = ("e_step", "m_step")

    def build(self) -> AnyMethod:
        """The method."""
        return build_method(self.method, dict(self.options))


def disagreements(stated: Stated) -> list[str]:
    """Where a counted exponent is not the stated formula's."""
    method, model = stated.build(), build_model(stated.likelihood, "se")
    found = []
    for regime in stated.regimes:
        quantities = {"flops": stated.time}
        if regime.space:
            quantities["peak_bytes"] = stated.space
        for step in stated.steps:
            for quantity, formula in quantities.items():
                counted = exponents(method, model, regime.size, step, quantity)
                wanted = formula_exponents(formula, regime.size)
                found += [
                    f"{regime.name}: {step} {quantity} ∝ {x}^{counted[x]:.3f}, "
                    f"{formula} ∝ {x}^{wanted[x]:.3f}"
                    for x in wanted
                    if not abs(counted[x] - wanted[x]) < TOLERANCE
                ]
    return found
