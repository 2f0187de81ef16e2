"""Adam et al. 2021, curvature of M-step objectives, and their terms that depend on θ: claims 06 and 07."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem, small_problem
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.kernels import Model, Theta
from svgpbench.ops import Tree
from svgpbench_papers.algebra.objectives import (
    converged_state,
    curvature,
    dense_of,
    dual,
    kernel_paths,
    partial_state,
    raw_at,
    slope,
    slope_along,
    standard,
)
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    SEEDS,
    Floats,
    Row,
    bench_of,
    frame_over,
    full_method,
    problems,
    random_problem,
    with_worst,
)

VARIANCES = (0.3, 1.0, 3.0, 10.0)
"""Factors of the kernel's variance: the θ_old of claim 06."""


def hessian_decides() -> pd.DataFrame:
    """Check the second difference of dual − standard, and that ΔH is positive semi-definite (claim 06)."""
    rows: list[Row] = []
    for (seed, problem), likelihood in itertools.product(problems(n=9, M=4), LIKELIHOODS):
        for check, method in (
            ("t-VGP", full_method(likelihood)),
            ("t-SVGP", "t-svgp tied-projected"),
        ):
            case = {"seed": seed, "likelihood": likelihood, "check": check}
            b = bench_of(method, likelihood, problem)
            state = converged_state(b)
            rows += [
                {**case, "along": along, "residual": _second_difference(b, state, path)}
                for along, path in kernel_paths(b).items()
            ]
    rows += [
        _definite(seed, likelihood, factor)
        for seed, likelihood, factor in itertools.product(SEEDS, LIKELIHOODS, VARIANCES)
    ]
    frame = pd.DataFrame(rows)
    inducing = frame[frame["check"] == "t-SVGP"]
    return with_worst(frame, inducing.assign(check="t-SVGP, at its worst"), "seed")


def _second_difference(b: Bench, state: Tree, path: Callable[[float], Theta]) -> float:
    """Compare d²(dual − standard)/dθ² with dᵀΔHd, d = ∂η_p/∂θ and ΔH = ∂²L/∂η_q² + 2I (Eq. 36)."""
    dense = dense_of(b)
    m, S = (x[0] for x in b.posterior(state)[:2])
    precision = np.linalg.inv(S)
    d: Floats = slope(lambda t: np.asarray(dense_of(b, path(t)).K_inv, np.float64))

    def elbo(t: float) -> float:
        cov: Floats = np.asarray(np.linalg.inv(precision + t * d), np.float64)
        return dense.elbo((cov @ precision @ m)[None], cov[None])

    gap = curvature(lambda t: dual(b, state, path(t)) - standard(b, state, path(t)))
    # the variance of −½uᵀdu under q, which is I along the direction −½d of η₂
    fisher = float(m @ d @ S @ d @ m + 0.5 * np.trace(S @ d @ S @ d))
    return difference(gap, curvature(elbo, 3e-3) + 2.0 * fisher)


@dataclass(frozen=True)
class WiderPrior(SmallProblem):
    """A problem whose θ has the kernel's variance multiplied."""

    factor: float = 1.0

    def theta(self, model: Model, basis: str = "inducing", *, moved: bool = False) -> Theta:
        theta = super().theta(model, basis, moved=moved)
        return theta._replace(
            kernel=theta.kernel._replace(variance=theta.kernel.variance * self.factor)
        )


def _definite(seed: int, likelihood: str, factor: float) -> Row:
    """Return by how much the smallest eigenvalue of I⁻¹∂²L/∂η_q² at t-VGP's optimum is below −2."""
    problem = WiderPrior(**vars(small_problem(n=5, M=2, b=2, seed=seed)), factor=factor)
    b = bench_of(full_method(likelihood), likelihood, problem)
    m, S = (x[0] for x in b.posterior(converged_state(b, 0.5))[:2])
    least = least_curvature(dense_of(b), m, S)
    check = "ΔH, other likelihoods"
    if likelihood == "gaussian":
        check = "ΔH, conjugate"
    elif (likelihood, factor) == ("poisson", max(VARIANCES)):
        check = "ΔH, Poisson, widest prior"
    return {
        "check": check, "seed": seed, "likelihood": likelihood, "factor": factor,
        "least": least, "residual": float(np.maximum(0.0, -2.0 - least)),
    }  # fmt: skip


def least_curvature(dense: Dense, m: Floats, S: Floats) -> float:
    """Return the smallest eigenvalue of I⁻¹∂²L/∂η² = ∂(∂L/∂μ)/∂η at an optimum (m, S), where ∂L/∂μ = 0."""
    n = len(m)
    upper = np.triu_indices(n)
    precision = np.linalg.inv(S)

    def natural_gradient(eta: Floats) -> Floats:
        half = np.zeros((n, n))
        half[upper] = eta[n:]
        cov: Floats = np.asarray(np.linalg.inv(-2.0 * (half + np.triu(half, 1).T)), np.float64)
        mean = cov @ eta[:n]
        d_m, d_S = dense.slopes(mean[None], cov[None])
        return np.concatenate([d_m[0] - 2.0 * d_S[0] @ mean, d_S[0][upper]])

    eta = np.concatenate([precision @ m, (-0.5 * precision)[upper]])
    columns = [slope_along(natural_gradient, [eta], [unit]) for unit in np.eye(len(eta))]
    # similar to the symmetric I^−½ ∂²L I^−½: imaginary parts are rounding
    return float(np.linalg.eigvals(np.stack(columns, axis=1)).real.min())


@frame_over(seed=SEEDS, likelihood=LIKELIHOODS)
def only_kl_moves(seed: int, likelihood: str) -> Iterator[Row]:
    """Return the share of ΣV in the standard objective's slope over θ, with q fixed (claim 07)."""
    for check, method, jitter in (
        ("VGP", "q-vgp natgrad unwhitened", 0.0),
        ("SVGP", "q-svgp natgrad unwhitened", 1e-6),
        ("VGP, whitened", "q-vgp natgrad", 0.0),
    ):
        b = bench_of(method, likelihood, random_problem(seed, n=16, M=4), jitter=jitter)
        state = partial_state(b)
        for name, path in kernel_paths(b).items():
            yield {"check": check, "along": name, "residual": _share_of_data(b, state, path)}


def _share_of_data(b: Bench, state: Tree, path: Callable[[float], Theta]) -> float:
    """Return |slope of ΣV| / (|slope of ΣV| + |slope of KL|) with the state's own numbers fixed."""
    ops, batch = b.ops, b.full

    def terms(t: float) -> Floats:
        raw = raw_at(b, path(t))
        f = b.steps.factor(raw, b.steps.prior(raw), batch)
        kl = b.method.kl(ops, f, b.method.factorise(ops, f, state))
        bound = b.steps.bound(raw, f, batch, state, b.one)
        return np.array([float(ops.to_numpy(bound + kl)), float(ops.to_numpy(kl))])

    data, kl = np.abs(slope(terms))
    return float(data / (data + kl))
