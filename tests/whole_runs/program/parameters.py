"""θ as a table of named arrays: raw values are learned, positive ones are softplus of raw plus a floor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import autograd.numpy as anp
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Table = dict[str, Any]

FLOOR = 1e-6
KERNEL, LIKELIHOOD = ("variance", "lengthscales"), ("noise_variance", "scale")


def part_of(name: str) -> str:
    """Return the part, kernel, likelihood or inducing, of a named array of θ."""
    if name in KERNEL:
        return "kernel"
    return "likelihood" if name in LIKELIHOOD else "inducing"


def constrained(raw: Mapping[str, Any]) -> Table:
    """Return θ = floor + log(1 + eʳᵃʷ) for kernel and likelihood, inducing inputs as they are."""
    return {
        name: x if part_of(name) == "inducing" else FLOOR + anp.logaddexp(0.0, x)
        for name, x in raw.items()
    }


def unconstrained(theta: Mapping[str, Any]) -> Table:
    """Return the raw values of θ."""
    return {
        name: np.asarray(x, dtype=np.float64)
        if part_of(name) == "inducing"
        else np.log(np.expm1(np.asarray(x, dtype=np.float64) - FLOOR))
        for name, x in theta.items()
    }


def chosen(raw: Mapping[str, Any], learn: tuple[str, ...]) -> Table:
    """Return the arrays of the parts that are learned, part by part."""
    return {name: raw[name] for part in learn for name in raw if part_of(name) == part}
