"""Salimbeni et al. 2018b, §2.3, §3.2, §3.4 and §4: costs of a step of each basis, counted on shapes.

A step moves q on a batch of b rows. The blocks that depend on θ alone are computed before it (K_β and its
factor, K_βγ, and K_γ if it is not sampled). One size grows over a decade where its term dominates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from svgpbench.checks.cases import build_model
from svgpbench.cost import CountingBackend
from svgpbench.kernels import Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.methods import build_method
from svgpbench.plugins import new_backend
from svgpbench.training.blocks import Batch, data_term, factor_at, prior_at

METHODS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "COUPLED": ("q-svgp", {"optimiser": "adam"}),
    "DECOUPLED": ("decoupled", {"subset": 1}),
    "DECOUPLED in full": ("decoupled", {}),
    "HYBRID": ("hybrid", {"subset": 1}),
    "ORTH": ("orth", {"subset": 1}),
    "ORTH in full": ("orth", {}),
}
"""Columns of K_α and K_γ are sampled, except "in full"; HYBRID always has K_γβ in full."""
DECADE = (1, 2, 5, 10)

Row = dict[str, Any]


class BasisSizes(NamedTuple):
    """Number of rows of a batch, and numbers of points of the two bases."""

    b: int
    beta: int
    gamma: int


FEW = 10
LARGE_BETA = BasisSizes(b=FEW, beta=10**6, gamma=10**6)
LARGE_GAMMA = BasisSizes(b=FEW, beta=10**4, gamma=10**24)
SWEEPS: tuple[tuple[str, str, BasisSizes, str, int], ...] = (
    ("COUPLED", "M³", LARGE_BETA, "beta", 3),
    ("COUPLED", "M² a row", BasisSizes(b=10**12, beta=10**4, gamma=1), "beta", 2),
    ("COUPLED", "rows", BasisSizes(b=10**12, beta=10**4, gamma=1), "b", 1),
    *(
        (basis, what, at, size, power)
        for basis, beside in (("DECOUPLED", 0), ("HYBRID", 0), ("ORTH", 1))
        for what, at, size, power in (
            ("|β|³", LARGE_BETA, "beta", 3),
            ("|γ|", LARGE_GAMMA, "gamma", 1),
            ("|β| beside |γ|", LARGE_GAMMA, "beta", beside),
        )
    ),
    ("DECOUPLED in full", "|γ|", LARGE_GAMMA, "gamma", 1),
    ("ORTH in full", "|γ|", LARGE_GAMMA, "gamma", 1),
)
"""A basis, the term of its cost, sizes where it dominates, the size that grows, and the printed power."""
PREDICTION = (
    ("|γ|", LARGE_GAMMA, "gamma", 1),
    ("|β| beside |γ|", LARGE_GAMMA, "beta", 0),
)


def costs() -> pd.DataFrame:
    """Count FLOPs of steps and predictions, and of additional points (salimbeni2018-07)."""
    return pd.DataFrame([*_steps(), *_predictions(), *_extra()])


def _steps() -> Iterator[Row]:
    for basis, what, least, size, power in SWEEPS:
        yield _off_print(f"{basis}: {what}", partial(step, basis), least, size, power)
    for what, size, power in (("|γ|", "gamma", 1), ("|β| beside |γ|", "beta", 0)):
        check = f"HYBRID, K_γβ sampled too: {what}"
        yield _off_print(check, _with_a_weight_a_point, LARGE_GAMMA, size, power)


def _with_a_weight_a_point(at: BasisSizes) -> int:
    """Count FLOPs of a step if HYBRID's mean has one weight per point of γ ∪ β, as DECOUPLED's has for α."""
    return step("DECOUPLED", at._replace(gamma=at.gamma + at.beta))


def _predictions() -> Iterator[Row]:
    for what, least, size, power in PREDICTION:
        predicts = partial(prediction, "ORTH")
        yield _off_print(f"ORTH predicts: {what}", predicts, least, size, power)
    precomputes = partial(precomputation, "ORTH")
    yield _off_print("ORTH precomputes: |β|³", precomputes, LARGE_BETA, "beta", 3)


def _off_print(
    check: str, flops: Callable[[BasisSizes], int], least: BasisSizes, size: str, power: int
) -> Row:
    """Fit the exponent of FLOPs in a size over a decade, and compare it with the printed power."""
    sizes = _over_a_decade(least, size)
    grown = np.log([float(getattr(at, size)) for at in sizes])
    exponent = float(np.polyfit(grown, np.log([float(flops(at)) for at in sizes]), 1)[0])
    return {"check": check, "exponent": exponent, "residual": abs(exponent - power)}


def _extra() -> Iterator[Row]:
    """Yield the ratio of the costs of one more point of γ and of β, as β grows.

    Then yield by how much the inverse ratio rises at each step.
    """
    sizes = _over_a_decade(LARGE_BETA, "beta")
    ratios = [_added(at, "beta") / _added(at, "gamma") for at in sizes]
    for at, ratio in zip(sizes, ratios, strict=True):
        yield {"check": "extra γ over extra β", "ratio": 1.0 / ratio} | at._asdict()
    for before, after in pairwise(ratios):
        yield {"check": "extra β over extra γ", "residual": max(0.0, after / before - 1.0)}


def _added(at: BasisSizes, size: str) -> int:
    """Count the FLOPs that one more point of a basis adds to ORTH's step."""
    return step("ORTH", at._replace(**{size: getattr(at, size) + 1})) - step("ORTH", at)


def _over_a_decade(least: BasisSizes, size: str) -> list[BasisSizes]:
    return [least._replace(**{size: times * getattr(least, size)}) for times in DECADE]


class _OnShapes:
    """A method with one input dimension on the counting backend."""

    def __init__(self, basis: str, at: BasisSizes) -> None:
        self.ops: CountingBackend = new_backend("counting")  # type: ignore[assignment]
        name, options = METHODS[basis]
        self.model, self.method = build_model("gaussian", "se"), build_method(name, options)
        zeros = self.ops.zeros
        beta, gamma = zeros((at.beta, 1)), zeros((at.gamma, 1))
        parameters = KernelParameters(zeros((1,)), zeros((1, 1)))
        inducing = beta if self.method.basis == "inducing" else Decoupled(gamma, beta)
        noise = type(self.model.likelihood.initial_parameters())(zeros(()))
        self.theta = Theta(parameters, noise, inducing)
        rows = self.ops.asarray(np.broadcast_to(np.int64(0), (at.b,)))
        sampled: Any = rows[: self.method.sampled_points] if self.method.sampled_points else ()
        self.batch = Batch(zeros((at.b, 1)), zeros((at.b,)), rows, (), sampled)

    def prior(self) -> Any:
        return prior_at(self.ops, self.model, self.method, self.theta)

    def blocks(self, p: Any) -> Any:
        X, sampled = self.batch.X, self.batch.basis_points
        return factor_at(self.ops, self.model, self.method, self.theta, p, X, sampled)

    def start(self, p: Any) -> Any:
        return self.method.initial_state(self.ops, p, 1, self.batch.y.shape[0])


def step(basis: str, at: BasisSizes) -> int:
    """Count the FLOPs of a step on q."""
    on = _OnShapes(basis, at)
    p, number = on.prior(), on.ops.zeros(())
    state, data = on.start(p), data_term(on.model, on.theta, on.batch, number)
    _, tally = on.ops.count(lambda: on.method.e_step(on.ops, on.blocks(p), data, state, number))
    return tally[0]


def precomputation(basis: str, at: BasisSizes) -> int:
    """Count the FLOPs of K_β's factor and K_β⁻¹K_βγa_γ, the part of a prediction without inputs."""
    on = _OnShapes(basis, at)
    state = on.start(on.prior())
    _, tally = on.ops.count(lambda: on.method.factorise(on.ops, on.prior(), state))
    return tally[0]


def prediction(basis: str, at: BasisSizes) -> int:
    """Count the FLOPs of means and variances at the rows of a batch, without the precomputation."""
    on = _OnShapes(basis, at)
    p = on.prior()
    q = on.method.factorise(on.ops, p, on.start(p))
    _, tally = on.ops.count(lambda: on.method.marginals(on.ops, on.blocks(p), q))
    return tally[0]
