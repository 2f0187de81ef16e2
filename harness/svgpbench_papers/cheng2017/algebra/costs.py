"""Cheng and Boots 2017: costs of steps, counted over a decade of each size where one term dominates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from svgpbench.checks.cases import build_model
from svgpbench.cost import Size, count
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.covariance import Covariance
from svgpbench.methods import AnyMethod
from svgpbench.methods.decoupled import DecoupledPrior, DecoupledSVGP
from svgpbench.methods.gram_columns import all_columns, no_columns
from svgpbench.methods.registry import build_named
from svgpbench.ops import Ops
from svgpbench_papers.algebra.random_problems import Row


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


Methods = Mapping[str, AnyMethod | Callable[[Size], AnyMethod]]
"""Methods, or functions from the size to a method, by name."""


def iteration(method: AnyMethod, size: Size) -> tuple[int, int, int]:
    """Return FLOPs, bytes moved and peak bytes of one step on q and one on θ and the bases."""
    cost = count(method, MODEL, size)
    q, theta = cost.e_step, cost.m_step
    return q.flops + theta.flops, q.bytes + theta.bytes, max(q.peak_bytes, theta.peak_bytes)


@dataclass(frozen=True)
class Regime:
    """Sizes at which one term of a cost dominates; each size in `grow` is varied over a decade."""

    name: str
    size: Size
    grow: tuple[str, ...]


SIZES = {"N": "b", "M": "M", "M_alpha": "gamma", "D": "D"}  # the paper's letters: fields of `Size`


def decades(check: str, methods: Methods, regimes: tuple[Regime, ...]) -> Iterator[Row]:
    """Yield the cost of an iteration in every regime; N is the number of rows that a step uses."""
    for regime in regimes:
        for letter, (name, method), factor in itertools.product(
            regime.grow, methods.items(), (1, 3, 10)
        ):
            # without a batch, N is all rows
            field = "n" if letter == "N" and regime.size.b is None else SIZES[letter]
            size = replace(regime.size, **{field: factor * asdict(regime.size)[field]})
            flops, _, memory = iteration(method(size) if callable(method) else method, size)
            letters = {"N": size.rows, "M": size.M, "M_alpha": size.gamma, "D": size.D}
            where = f"{letter} where {regime.name}"
            case = {"check": f"{check}, {where}", "method": name, "grows": letter, **letters}
            setting = f"{name}, {where}".replace("M_alpha", "M_α")
            yield {**case, "setting": setting, "flops": flops, "memory": memory}


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
    online = {name: COUPLED[name] for name in ("SVI", "iVSGPR")}
    longer = replace(LONG_INPUTS, size=replace(LONG_INPUTS.size, gamma=10**9))
    rows = itertools.chain(
        decades("SVDGP", {"SVDGP": svdgp}, DECOUPLED),
        decades("all columns", {"SVDGP with all columns": StepAlone()}, (ALL_COLUMNS,)),
        decades("coupled", online, BATCHES),
        decades("coupled", {"VSGPR": COUPLED["VSGPR"]}, ALL_ROWS),
        decades("GPR", {"GPR": GPR}, EXACT),
        decades("diagonal B", {"Kobe 2021": DIAGONAL}, BATCHES[-1:]),
        decades("any", online, (LONG_INPUTS,)),
        decades("any", {"SVDGP": svdgp}, (longer,)),
    )
    return pd.DataFrame(rows)


def beside_print() -> pd.DataFrame:
    """Return the counted exponents of time and memory, for the settings of Table 1."""
    rows: list[Row] = []
    for setting, ladder in table_1().groupby("setting", sort=False):
        size = np.log(ladder[ladder["grows"].iloc[0]].to_numpy(float))
        for metric, column in (("exponent of time", "flops"), ("exponent of memory", "memory")):
            slope = float(np.polyfit(size, np.log(ladder[column].to_numpy(float)), 1)[0])
            rows.append({"setting": setting, "metric": metric, "value": slope, "note": ""})
    return pd.DataFrame(rows)


FIXED = Size(n=10**8, b=10, M=10**6, D=1)
ROWS = Size(n=10**18, b=10**12, M=10**6, D=1)
LONG_ROWS = replace(ROWS, D=10**16)
ONLINE_D = (28, 23)  # KUKA₁, MUJOCO₁


def same_order() -> pd.DataFrame:
    """Return cost ratios of SVDGP to SVI for growing M = M_β and M_α a power of M, and at Sec. 4's sizes."""
    rows: list[Row] = []
    for name, fixed, powers in (
        ("N and D held", FIXED, (2, 3)),
        ("N above M", ROWS, (2, 3)),
        ("N and D above M", LONG_ROWS, (2,)),
    ):
        for power, factor in itertools.product(powers, (1, 3, 10)):
            size = replace(fixed, M=factor * fixed.M)
            larger = replace(size, gamma=size.M**power)
            pairs = zip(
                iteration(svdgp(larger), larger), iteration(COUPLED["SVI"], size), strict=True
            )
            flops, _, memory = (x / y for x, y in pairs)
            check = f"M_alpha = M^{power}, {name}"
            rows.append({"check": check, "M": size.M, "flops": flops, "memory": memory})
    return pd.DataFrame([*rows, *(x for D in ONLINE_D for x in _online(D))])


def _online(D: int) -> list[Row]:
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
