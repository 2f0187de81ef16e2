"""Salimbeni et al. 2018b, §2.3, §3.2, §3.4 and §4: costs of a step of each basis, counted on shapes.

A step moves q on a batch of b rows. The blocks that depend on θ alone are computed before it (K_β and its
factor, K_βγ, and K_γ if it is not sampled). One size grows over a decade where its term dominates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from svgpbench.backends import new_backend
from svgpbench.checks.cases import build_model
from svgpbench.cost import CountingBackend
from svgpbench.kernels import Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.methods import build_method
from svgpbench.training.blocks import Batch, data_term, factor_at, prior_at
from svgpbench_papers.algebra.random_problems import Row, positive_part

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


class BasisSizes(NamedTuple):
    """Number of rows of a batch, and numbers of points of the two bases."""

    b: int
    beta: int
    gamma: int

    def over_a_decade(self, size: str) -> list[BasisSizes]:
        """Return these sizes with one of them multiplied by 1 to 10."""
        return [self._replace(**{size: factor * getattr(self, size)}) for factor in DECADE]


class Sweep(NamedTuple):
    """A term of a cost: sizes where it dominates, the size that grows, and the printed power."""

    term: str
    sizes: BasisSizes
    grows: str
    power: int


FEW = 10
LARGE_BETA = BasisSizes(b=FEW, beta=10**6, gamma=10**6)
LARGE_GAMMA = BasisSizes(b=FEW, beta=10**4, gamma=10**24)
MANY_ROWS = BasisSizes(b=10**12, beta=10**4, gamma=1)
BETA_CUBED = Sweep("|β|³", LARGE_BETA, "beta", 3)
GAMMA = Sweep("|γ|", LARGE_GAMMA, "gamma", 1)
BETA_BESIDE_GAMMA = Sweep("|β| beside |γ|", LARGE_GAMMA, "beta", 0)
STEPS: Mapping[str, tuple[Sweep, ...]] = {
    "COUPLED": (
        Sweep("M³", LARGE_BETA, "beta", 3),
        Sweep("M² a row", MANY_ROWS, "beta", 2),
        Sweep("rows", MANY_ROWS, "b", 1),
    ),
    "DECOUPLED": (BETA_CUBED, GAMMA, BETA_BESIDE_GAMMA),
    "HYBRID": (BETA_CUBED, GAMMA, BETA_BESIDE_GAMMA),
    "ORTH": (BETA_CUBED, GAMMA, BETA_BESIDE_GAMMA._replace(power=1)),
    "DECOUPLED in full": (GAMMA,),
    "ORTH in full": (GAMMA,),
}


def costs() -> pd.DataFrame:
    """Count FLOPs of steps and predictions, and of additional points (salimbeni2018-07)."""

    def one_weight_per_point(sizes: BasisSizes) -> int:
        """Count a step if HYBRID's mean has one weight per point of γ ∪ β, as DECOUPLED's has for α."""
        return step("DECOUPLED", sizes._replace(gamma=sizes.gamma + sizes.beta))

    counts: list[tuple[str, Callable[[BasisSizes], int], tuple[Sweep, ...]]] = [
        *((basis, partial(step, basis), sweeps) for basis, sweeps in STEPS.items()),
        ("HYBRID, K_γβ sampled too", one_weight_per_point, (GAMMA, BETA_BESIDE_GAMMA)),
        ("ORTH predicts", partial(prediction, "ORTH"), (GAMMA, BETA_BESIDE_GAMMA)),
        ("ORTH precomputes", partial(precomputation, "ORTH"), (BETA_CUBED,)),
    ]
    rows: list[Row] = []
    for name, flops, sweep in ((x, y, sweep) for x, y, sweeps in counts for sweep in sweeps):
        ladder = sweep.sizes.over_a_decade(sweep.grows)
        x = np.log([float(getattr(sizes, sweep.grows)) for sizes in ladder])
        exponent = float(np.polyfit(x, np.log([float(flops(sizes)) for sizes in ladder]), 1)[0])
        check, residual = f"{name}: {sweep.term}", abs(exponent - sweep.power)
        rows.append({"check": check, "exponent": exponent, "residual": residual})
    # one more point of γ and of β: the ratio of their costs as β grows, and the rise of its inverse
    ladder = LARGE_BETA.over_a_decade("beta")
    ratios = [_added(sizes, "beta") / _added(sizes, "gamma") for sizes in ladder]
    for sizes, ratio in zip(ladder, ratios, strict=True):
        rows.append({"check": "extra γ over extra β", "ratio": 1.0 / ratio} | sizes._asdict())
    for before, after in pairwise(ratios):
        rise = positive_part(after / before - 1.0)
        rows.append({"check": "extra β over extra γ", "residual": rise})
    return pd.DataFrame(rows)


def _added(sizes: BasisSizes, size: str) -> int:
    """Count the FLOPs that one more point of a basis adds to ORTH's step."""
    more = sizes._replace(**{size: getattr(sizes, size) + 1})
    return step("ORTH", more) - step("ORTH", sizes)


class _OnShapes:
    """A method with one input dimension on the counting backend, at its start."""

    def __init__(self, basis: str, sizes: BasisSizes) -> None:
        self.ops: CountingBackend = new_backend("counting")  # type: ignore[assignment]
        name, options = METHODS[basis]
        self.model, self.method = build_model("gaussian", "se"), build_method(name, options)
        zeros = self.ops.zeros
        beta, gamma = zeros((sizes.beta, 1)), zeros((sizes.gamma, 1))
        parameters = KernelParameters(zeros((1,)), zeros((1, 1)))
        inducing = beta if self.method.basis == "inducing" else Decoupled(gamma, beta)
        noise = type(self.model.likelihood.initial_parameters())(zeros(()))
        self.theta = Theta(parameters, noise, inducing)
        # of stride 0: the indices of 10¹² rows must not be allocated
        rows = self.ops.asarray(np.broadcast_to(np.int64(0), (sizes.b,)))
        sampled: Any = rows[: self.method.sampled_points] if self.method.sampled_points else ()
        self.batch = Batch(zeros((sizes.b, 1)), zeros((sizes.b,)), rows, (), sampled)
        self.prior = prior_at(self.ops, self.model, self.method, self.theta)
        self.state: Any = self.method.initial_state(self.ops, self.prior, 1, sizes.b)

    def blocks(self) -> Any:
        """Return the blocks of the batch."""
        X, sampled = self.batch.X, self.batch.basis_points
        return factor_at(self.ops, self.model, self.method, self.theta, self.prior, X, sampled)

    def flops(self, call: Callable[[], Any]) -> int:
        """Count the FLOPs of a call."""
        _, tally = self.ops.count(call)
        return tally[0]


def step(basis: str, sizes: BasisSizes) -> int:
    """Count the FLOPs of a step on q."""
    run = _OnShapes(basis, sizes)
    number = run.ops.zeros(())
    data = data_term(run.model, run.theta, run.batch, number)
    return run.flops(lambda: run.method.e_step(run.ops, run.blocks(), data, run.state, number))


def precomputation(basis: str, sizes: BasisSizes) -> int:
    """Count the FLOPs of K_β's factor and K_β⁻¹K_βγa_γ, the part of a prediction without inputs."""
    run = _OnShapes(basis, sizes)

    def precompute() -> Any:
        prior = prior_at(run.ops, run.model, run.method, run.theta)
        return run.method.factorise(run.ops, prior, run.state)

    return run.flops(precompute)


def prediction(basis: str, sizes: BasisSizes) -> int:
    """Count the FLOPs of means and variances at the rows of a batch, without the precomputation."""
    run = _OnShapes(basis, sizes)
    q = run.method.factorise(run.ops, run.prior, run.state)
    return run.flops(lambda: run.method.marginals(run.ops, run.blocks(), q))
