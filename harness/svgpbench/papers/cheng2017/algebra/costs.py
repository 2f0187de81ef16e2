"""Cheng and Boots 2017: costs of steps, counted over a decade of each size where one term dominates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.cases import build_model
from svgpbench.cost import Cost, Size, count
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.covariance import Covariance
from svgpbench.methods import AnyMethod
from svgpbench.methods.decoupled import DecoupledPrior, DecoupledSVGP
from svgpbench.methods.gram_columns import all_columns, no_columns
from svgpbench.methods.registry import build_named
from svgpbench.ops import Ops


class StepAlone(DecoupledSVGP):
    """DECOUPLED without K_βα, which no step needs and Table 1 does not count; only q at β needs it."""

    def prior(self, ops: Ops, cov: Covariance, inducing: Decoupled) -> DecoupledPrior:
        alpha, beta = inducing
        columns = no_columns(ops, cov) if self.subset else all_columns(ops, cov, alpha)
        nothing = ops.broadcast_to(ops.zeros(()), (1, beta.shape[0], alpha.shape[0]))
        return DecoupledPrior(columns, nothing, cov.square(beta))


COUPLED = {
    "SVI": build_named("q-svgp"),
    "iVSGPR": build_named("t-svgp"),
    "VSGPR": build_named("sgpr"),
}
GPR = build_named("gpr")
DIAGONAL = build_named("diagonal-precision adam")
MODEL = build_model("gaussian", "se")


def svdgp(size: Size) -> AnyMethod:
    """Return DECOUPLED with as many sampled columns of K_α as a batch has rows (Sec. 3.4)."""
    return StepAlone(subset=size.rows)


def of_all_columns(size: Size) -> AnyMethod:
    """Return DECOUPLED with all columns of K_α."""
    return StepAlone()


def at_any_size(method: AnyMethod) -> Callable[[Size], AnyMethod]:
    """Return a function that gives this method at every size."""
    return lambda size: method


def iteration(method: AnyMethod, size: Size) -> tuple[int, int, int]:
    """Return FLOPs, bytes moved and peak bytes of one step on q and one on θ and the bases."""
    cost: Cost = count(method, MODEL, size)
    q, theta = cost.e_step, cost.m_step
    return q.flops + theta.flops, q.bytes + theta.bytes, max(q.peak_bytes, theta.peak_bytes)


@dataclass(frozen=True)
class Regime:
    """Sizes at which one term of a cost dominates; each size in `grow` is varied over a decade."""

    name: str
    size: Size
    grow: tuple[str, ...]


SIZES = {"N": "b", "M": "M", "M_alpha": "gamma", "D": "D"}  # the paper's letters: fields of `Size`


def row(check: str, name: str, size: Size, method: AnyMethod) -> dict[str, Any]:
    """Return the row of one counted iteration; N is the number of rows that a step uses."""
    flops, _, memory = iteration(method, size)
    letters = {"N": size.rows, "M": size.M, "M_alpha": size.gamma, "D": size.D}
    return {"check": check, "method": name, **letters, "flops": flops, "memory": memory}


def decades(
    check: str, methods: dict[str, Callable[[Size], AnyMethod]], regimes: tuple[Regime, ...]
) -> Iterator[dict[str, Any]]:
    """Yield rows of every method in every regime; one size at a time varies over a decade."""
    for regime in regimes:
        for letter in regime.grow:
            for name, method in methods.items():
                for factor in (1, 3, 10):
                    size = grown(regime.size, letter, factor)
                    title = f"{check}, {letter} where {regime.name}"
                    yield row(title, name, size, method(size))


def grown(size: Size, letter: str, factor: int) -> Size:
    """Return a size with one of the paper's letters multiplied; without a batch, N is all rows."""
    field = "n" if letter == "N" and size.b is None else SIZES[letter]
    return replace(size, **{field: factor * asdict(size)[field]})


BATCHES = (
    Regime("DNM rules", Size(n=10**10, b=10**8, M=10**3, D=10**12), ("D", "N", "M")),
    Regime("NM² rules", Size(n=10**17, b=10**14, M=10**7, D=1), ("N", "M")),
    Regime("M³ rules", Size(n=10**10, b=10**3, M=10**9, D=1), ("M",)),
)
ALL_ROWS = tuple(replace(x, size=replace(x.size, n=x.size.rows, b=None)) for x in BATCHES)
LONG_INPUTS = Regime("D > M > N", Size(n=10**10, b=10**3, M=10**9, D=10**16), ("N",))
DECOUPLED = (
    Regime(
        "DNM_alpha rules",
        Size(n=10**10, b=10**8, M=10, D=10**12, gamma=10**9),
        ("D", "N", "M_alpha"),
    ),
    Regime("NM² rules", Size(n=10**17, b=10**14, M=10**6, D=1, gamma=10**7), ("N", "M")),
    Regime("M³ rules", Size(n=10**4, b=10**3, M=10**9, D=1, gamma=10**10), ("M",)),
    Regime("NM_alpha rules", Size(n=10**6, b=10**5, M=10, D=1, gamma=10**12), ("N", "M_alpha")),
)
ALL_COLUMNS = replace(DECOUPLED[-1], grow=("M_alpha",))
EXACT = (
    Regime("DN² rules", Size(n=10**4, M=1, D=10**13), ("D", "N")),
    Regime("N³ rules", Size(n=10**9, M=1, D=1), ("N",)),
)


def table_1() -> pd.DataFrame:
    """Count costs for the rows of Table 1, for terms that they leave out, and for a diagonal B."""
    online = {name: at_any_size(COUPLED[name]) for name in ("SVI", "iVSGPR")}
    longer = replace(LONG_INPUTS, size=replace(LONG_INPUTS.size, gamma=10**9))
    rows = (
        decades("SVDGP", {"SVDGP": svdgp}, DECOUPLED),
        decades("all columns", {"SVDGP": of_all_columns}, (ALL_COLUMNS,)),
        decades("coupled", online, BATCHES),
        decades("coupled", {"VSGPR": at_any_size(COUPLED["VSGPR"])}, ALL_ROWS),
        decades("GPR", {"GPR": at_any_size(GPR)}, EXACT),
        decades("diagonal B", {"Kobe 2021": at_any_size(DIAGONAL)}, BATCHES[-1:]),
        decades("any", online, (LONG_INPUTS,)),
        decades("any", {"SVDGP": svdgp}, (longer,)),
    )
    return pd.DataFrame([x for each in rows for x in each])


FIXED = Size(n=10**8, b=10, M=10**6, D=1)
ROWS = Size(n=10**18, b=10**12, M=10**6, D=1)
LONG_ROWS = replace(ROWS, D=10**16)
ONLINE_D = (28, 23)  # KUKA₁, MUJOCO₁


def same_order() -> pd.DataFrame:
    """Return cost ratios of SVDGP to SVI for growing M, with M_β = M and M_α a power of M.

    The ratios for the sizes of Sec. 4 are added.
    """
    held = (
        ("N and D held", FIXED, (2, 3)),
        ("N above M", ROWS, (2, 3)),
        ("N and D above M", LONG_ROWS, (2,)),
    )
    against = [
        _beside_coupled(f"M_alpha = M^{power}, {name}", replace(size, M=factor * size.M), power)
        for name, size, powers in held
        for power in powers
        for factor in (1, 3, 10)
    ]
    return pd.DataFrame([*against, *(x for D in ONLINE_D for x in _online(D))])


def _beside_coupled(check: str, size: Size, power: int) -> dict[str, Any]:
    larger = replace(size, gamma=size.M**power)
    flops, _, memory = (
        x / y
        for x, y in zip(
            iteration(svdgp(larger), larger), iteration(COUPLED["SVI"], size), strict=True
        )
    )
    return {"check": check, "M": size.M, "flops": flops, "memory": memory}


def _online(D: int) -> list[dict[str, Any]]:
    """Return the ratio of the largest to the smallest cost of the five steps in the paper's experiments."""
    n, b = 178_128, 1024
    batch = Size(n=n, b=b, M=1024, D=D)
    mean = replace(batch, M=128, gamma=128**2)
    costs = np.array(
        [
            iteration(svdgp(mean), mean),
            iteration(COUPLED["SVI"], batch),
            iteration(COUPLED["iVSGPR"], replace(batch, M=256)),
            iteration(COUPLED["VSGPR"], Size(n=4096, M=1024, D=D)),
            iteration(GPR, Size(n=1024, M=1, D=D)),
        ],
        float,
    )
    spread = costs.max(axis=0) / costs.min(axis=0)
    return [
        {"check": f"{what} of Sec. 4's steps", "D": D, "residual": ratio}
        for what, ratio in zip(("FLOPs", "bytes"), spread, strict=False)
    ]
