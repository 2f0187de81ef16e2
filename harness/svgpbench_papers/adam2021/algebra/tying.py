"""Adam et al. 2021, Sec. 4: effect of tied sites at a fixed θ, compared with one site per row (claim 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.evaluate import RATE
from svgpbench_papers.algebra.objectives import converged_state, dense_of
from svgpbench_papers.algebra.random_problems import (
    LOG_CONCAVE,
    SEEDS,
    Check,
    Floats,
    bench_of,
    frame_over,
    random_problem,
)

Rows = npt.NDArray[np.int64]
TIED = "t-svgp tied-projected"
STEPS, PASSES = 50, 60
DECAYING_PASSES = 200


def decaying(step: int) -> float:
    """Return a rate as in Robbins and Monro (1951): its sum diverges, the sum of its squares does not."""
    return float((step + 2) ** -0.75)


@frame_over(seed=SEEDS, likelihood=LOG_CONCAVE)
def fixed_theta(seed: int, likelihood: str) -> Iterator[Check]:
    """Compare q(u) of tied sums with q(u) of one site per row, after E-steps and at the optimum."""
    b = bench_of(TIED, likelihood, random_problem(seed, n=24))
    everything, thirds = np.arange(b.n), np.arange(b.n).reshape(3, -1)
    state = b.start
    for _ in range(STEPS):
        state = b.e_step(state, b.full, RATE)
    by_sites = _steps_on_sites(b, [everything] * STEPS, all_decay=True)
    yield "all rows", worst_of(b.posterior(state)[:2], by_sites)

    tied = b.posterior(b.minibatch_run(STEPS))[:2]
    by_sites = _steps_on_sites(b, b.problem.batches[:STEPS], all_decay=True)
    yield "all sites decay", worst_of(tied, by_sites)

    optimum = b.posterior(converged_state(b))[:2]
    batches, more_batches = [*thirds] * PASSES, [*thirds] * DECAYING_PASSES
    ends = {
        "the batch's sites decay": _steps_on_sites(b, batches, all_decay=False),
        "tied, of minibatches": _steps_on_sites(b, batches, all_decay=True),
        "tied, decaying rate": _steps_on_sites(b, more_batches, all_decay=True, rate=decaying),
        "untied, decaying rate": _steps_on_sites(b, more_batches, all_decay=False, rate=decaying),
        "tied, decaying rate, without n/b": _steps_on_sites(
            b, batches, all_decay=True, rate=decaying, scaled=False
        ),
    }
    yield from ((check, worst_of(end, optimum)) for check, end in ends.items())


def _steps_on_sites(
    b: Bench,
    batches: Iterable[Rows],
    *,
    all_decay: bool,
    rate: Callable[[int], float] = lambda _: RATE,
    scaled: bool = True,
) -> list[Floats]:
    """Return mean and covariance after E-steps on sites (λ₁, β), each [n], from q = p.

    With `all_decay`, every site decays and the terms of a batch are multiplied by n/b, as for tied sums
    (Eqs. 22 and 23; `scaled=False` leaves n/b out, as printed). Without it, only the sites of the batch move
    (Eq. 17).
    """
    full, dense_by_rows = dense_of(b), dict[bytes, Dense]()
    lambda1, beta = np.zeros(len(full.y)), np.zeros(len(full.y))

    def posterior() -> list[Floats]:
        """Return (m, S) with S⁻¹ = K⁻¹ + A diag(β) Aᵀ and S⁻¹m = Aλ₁, where A = K⁻¹K_uf."""
        S: Floats = np.asarray(np.linalg.inv(full.K_inv + (full.A * beta) @ full.A.T), np.float64)
        return [(S @ (full.A @ lambda1))[None], S[None]]

    for number, rows in enumerate(batches):
        # batches recur in every pass: their kernels and inverses are computed once
        if (key := rows.tobytes()) not in dense_by_rows:
            dense_by_rows[key] = dense_of(b, rows=rows)
        dense = dense_by_rows[key]
        m, S = posterior()
        mu, _ = dense.marginals(m, S)
        _, alpha, slope = dense.expectations(m, S)
        r = rate(number)
        step = r * dense.scale if all_decay and scaled else r
        moving = slice(None) if all_decay else rows
        lambda1[moving] *= 1.0 - r
        beta[moving] *= 1.0 - r
        np.add.at(lambda1, rows, step * (slope * mu + alpha)[0])
        np.add.at(beta, rows, step * slope[0])
    return posterior()
