"""Expectations under a Gaussian of one latent or several."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from oracle_agreement import TOLERANCE, agree
from oracle_files import Oracle, numbers
from oracle_problem import (
    DENSE_NODES,
    Floats,
    build_likelihood,
    likelihood_parameters,
    mean_cholesky_state,
    problem,
    q_svgp,
)

from svgpbench.likelihoods import (
    NoParameters,
    Softmax,
    WeightedNoise,
)
from svgpbench.likelihoods.quadrature import gauss_hermite
from svgpbench.ops import Ops
from svgpbench.training.blocks import factor_at


def row_likelihood(row: Mapping[str, object]) -> str:
    """`bernoulli-probit (exact, no squash)` is `bernoulli-probit`."""
    return str(row.get("likelihood", "")).partition(" ")[0]


FILE_S_OWN_ERROR = 1e-7
"""Of the file's β of Student-t at its largest variance. It is a quadrature of −∇²log p, which 200 nodes
give to 4e-8 there; the quadrature of t·∇log p here is within 2e-9 of the integral."""


def check_scalar(name: str, ops: Ops, oracle: Oracle) -> None:
    """V, α and β of every row of one likelihood, as one batch."""
    rows = [row for row in oracle.expected["rows"] if row_likelihood(row) == name]

    def column(key: str) -> npt.NDArray[np.float64]:
        return np.array([numbers(row, key, f"{oracle.name}: rows") for row in rows])

    likelihood = build_likelihood(name, nodes=DENSE_NODES, squash=0.0)
    p = likelihood_parameters(ops, name, oracle.settings.get("noise_variance", 0.3))
    y = ops.asarray(column("y"))
    mu, v = (ops.asarray(column(key)[None]) for key in ("mean", "var"))
    V = likelihood.variational_expectations(ops, p, y, mu, v)
    alpha, beta = likelihood.gradients(ops, p, y, mu, v)
    agree(ops.to_numpy(V), column("V"), f"V of {name}")
    agree(ops.to_numpy(alpha)[0], column("alpha"), f"alpha of {name}")
    wide = (column("var") > 1.0) & (name == "student-t")
    for rows_of, tolerance in ((~wide, TOLERANCE), (wide, FILE_S_OWN_ERROR)):
        if rows_of.any():
            got, expected = ops.to_numpy(beta)[0][rows_of], column("beta")[rows_of]
            agree(got, expected, f"beta of {name}", tolerance)


def check_robust_max(ops: Ops, oracle: Oracle) -> None:
    """Bound, KL, predictions and class probabilities of four latents; q_mu is [M, P] in the file."""
    x, method = problem(ops, oracle), q_svgp(whiten=True)
    mean = oracle.number("inputs", "q_mu").T
    state = mean_cholesky_state(ops, mean, oracle.number("inputs", "q_sqrt"))
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(method, state), expected("elbo"), "elbo")
    q = method.factorise(ops, x.prior, state)
    agree(ops.to_numpy(method.kl(ops, x.f, q)), expected("kl"), "kl")
    f = factor_at(ops, x.model, method, x.theta, x.prior, x.X_test)
    mu, v = method.marginals(ops, f, q)
    agree(ops.to_numpy(mu).T, expected("mean"), "mean")
    agree(ops.to_numpy(v).T, expected("var"), "var")
    labels = ops.zeros((mu.shape[-1],))  # the probabilities are of all classes
    probabilities = ops.to_numpy(x.likelihood.predicted(ops, labels, mu, v).mean).T
    agree(probabilities, expected("class_probabilities"), "class_probabilities")


GRID_NODES = 30
"""Per latent, of the dense quadrature that made the softmax file."""


def _softmax_rows(ops: Ops, oracle: Oracle, p: WeightedNoise) -> dict[str, list[Floats]]:
    """V [1, rows] and α, β [rows, C] with the noise given, beside the file's."""
    rows: list[Mapping[str, object]] = oracle.expected["rows"]

    def column(key: str) -> Floats:
        return np.array([numbers(row, key, f"{oracle.name}: rows") for row in rows])

    y, mu, v = (ops.asarray(column(key).T) for key in ("label", "mean", "var"))
    likelihood = Softmax(classes=column("mean").shape[1])
    V = likelihood.variational_expectations(ops, p, y, mu, v)
    alpha, beta = likelihood.gradients(ops, p, y, mu, v)
    got = {"V": V, "alpha": ops.matrix_transpose(alpha), "beta": ops.matrix_transpose(beta)}
    return {key: [ops.to_numpy(value), column(key)] for key, value in got.items()}


def check_softmax_on_the_grid(ops: Ops, oracle: Oracle) -> None:
    """The file's own tensor product of Gauss–Hermite nodes as weighted noise gives its numbers."""
    t, w = gauss_hermite(GRID_NODES)
    noise = np.stack(np.meshgrid(t, t, t, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", w, w, w).reshape(-1)
    p = WeightedNoise(ops.asarray(noise), ops.asarray(weights))
    for key, (got, expected) in _softmax_rows(ops, oracle, p).items():
        agree(got, expected, key)


def check_softmax_by_sampling(ops: Ops, oracle: Oracle) -> None:
    """Plain draws come within six standard errors of every number.

    |∇_f log p| ≤ √2, so a standard error of V is at most √(2 max v/S) (Poincaré's inequality); α and β
    average numbers in an interval of length 1 and ¼.
    """
    draws = 40_000
    noise = ops.asarray(np.random.default_rng(0).standard_normal((draws, 3)))
    p = Softmax(classes=3).bind(NoParameters(), noise)
    largest = max(float(np.max(row["var"])) for row in oracle.expected["rows"])
    bounds = {"V": np.sqrt(2 * largest), "alpha": 0.5, "beta": 0.125}
    for key, (got, expected) in _softmax_rows(ops, oracle, p).items():
        error = float(np.max(np.abs(got - expected)))
        limit = 6.0 * bounds[key] / np.sqrt(draws)
        assert error <= limit, f"{key}: {error:.2e} above six standard errors, {limit:.2e}"
