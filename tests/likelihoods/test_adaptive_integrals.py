"""Adaptive integrals: expectations and class probabilities against dense integrals, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.integrate
import scipy.stats
from densities_by_mpmath import Exponential, Laplace, NegativeBinomial

from svgpbench.backends import load_backend
from svgpbench.config import LikelihoodConfig
from svgpbench.experiments.identity import likelihood_keys
from svgpbench.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Likelihood,
    NoParameters,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
    StudentTParameters,
)
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]
NUMPY = load_backend("numpy")

CASES: dict[str, tuple[QuadratureLikelihood, Tree, tuple[float, ...]]] = {
    "logit": (BernoulliLogit(integrals="adaptive"), NoParameters(), (0.0, 1.0)),
    "probit": (BernoulliProbit(integrals="adaptive"), NoParameters(), (0.0, 1.0)),
    "squashed": (BernoulliProbit(integrals="adaptive", squash=1e-3), NoParameters(), (0.0, 1.0)),
    "student-t 1e-3": (
        StudentT(integrals="adaptive", df=3.0), StudentTParameters(1e-3), (0.3, -2.0, 30.0)
    ),
    "student-t 0.03": (
        StudentT(integrals="adaptive", df=30.0), StudentTParameters(0.03), (0.3, -2.0, 30.0)
    ),
    "poisson": (Poisson(integrals="adaptive"), NoParameters(), (0.0, 4.0, 60.0)),
    "negative binomial": (NegativeBinomial(integrals="adaptive"), NoParameters(), (0.0, 4.0, 60.0)),
    "exponential": (Exponential(integrals="adaptive"), NoParameters(), (0.01, 1.0, 30.0)),
    "laplace": (Laplace(integrals="adaptive"), NoParameters(), (0.3, -2.0, 30.0)),
}  # fmt: skip
MEANS, VARIANCES = (-2.0, 0.3, 2.5), (1e-6, 0.01, 1.0, 10.0)


def points(ys: tuple[float, ...]) -> tuple[Floats, Floats, Floats]:
    rows = [(y, m, v) for y in ys for m in MEANS for v in VARIANCES]
    y, mu, v = np.array(rows).T
    return y, mu[None], v[None]


def dense(likelihood: Any, p: Tree, y: float, m: float, v: float) -> tuple[float, float, float]:
    """Return (V, α, β) with panels that double in length from μ and from every place where log p bends."""
    sd, bends = np.sqrt(v), [m, y, 0.0, np.log(max(y, 0.01)), 3.09, -3.09]
    steps = np.concatenate([[0.0], 2.0 ** np.arange(-22.0, 6.0)])
    edges = np.concatenate([c + s * steps for c in bends for s in (-1, 1)])
    edges = np.unique(np.concatenate([edges, m + sd * np.linspace(-14, 14, 57)]))
    edges = edges[(edges >= m - 14 * sd) & (edges <= m + 14 * sd)]
    x, w = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(edges)[:, None]
    f = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
    q = (half * w).ravel() * scipy.stats.norm.pdf(f, m, sd)
    value, slope = (
        z[0, 0] for z in likelihood.log_density(NUMPY, p, np.array([[y]]), f[None, None])
    )
    return float(q @ value), float(q @ slope), float(-(q * (f - m)) @ slope / v)


@pytest.mark.parametrize("name", CASES)
def test_expectations_and_their_slopes_are_exact_to_1e_6(name: str) -> None:
    likelihood, p, ys = CASES[name]
    y, mu, v = points(ys)
    V = likelihood.variational_expectations(NUMPY, p, y, mu, v)
    alpha, beta = likelihood.gradients(NUMPY, p, y, mu, v)
    expected = [dense(likelihood, p, *row) for row in zip(y, mu[0], v[0], strict=True)]
    for got, exact in zip((V, alpha[0], beta[0]), np.transpose(expected), strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["student-t 0.03", "laplace", "poisson"])
def test_backends_agree_on_moving_nodes(ops: Ops, name: str) -> None:
    likelihood, p, ys = CASES[name]
    arrays = points(ys)

    def expectations(on: Ops) -> list[Floats]:
        parameters = tree_map(lambda x: on.asarray(np.float64(x)), p)
        e = likelihood.expectations(on, parameters, *map(on.asarray, arrays))
        return [np.asarray(on.to_numpy(x)) for x in (e.value, e.alpha, e.beta)]

    for got, reference in zip(expectations(ops), expectations(NUMPY), strict=True):
        scale = np.maximum(1.0, np.abs(reference).max())
        np.testing.assert_allclose(got / scale, reference / scale, rtol=0, atol=1e-10)


def test_the_gradient_in_the_scale_is_that_of_v(ops: Ops) -> None:
    likelihood, p, ys = CASES["student-t 0.03"]
    y, mu, v = points(ys)
    found = likelihood.expectations(
        ops, StudentTParameters(ops.asarray(np.float64(p.scale))), *map(ops.asarray, (y, mu, v))
    )
    h = 1e-6

    def total(scale: float) -> float:
        V = likelihood.variational_expectations(NUMPY, StudentTParameters(scale), y, mu, v)
        return float(V.sum())

    slope = (total(p.scale + h) - total(p.scale - h)) / (2 * h)
    assert float(ops.to_numpy(found.parameters.scale)) == pytest.approx(slope, rel=1e-6)


ROBUST, SOFT = RobustMax(classes=3, integrals="adaptive"), Softmax(classes=3, integrals="adaptive")


def probabilities(likelihood: Likelihood, ops: Ops, mu: Floats, v: Floats) -> Floats:
    noise = ops.asarray(np.zeros((likelihood.samples, 3))) if likelihood.samples else ()
    p = likelihood.bind(NoParameters(), noise)
    found = np.asarray(ops.to_numpy(likelihood.predict(ops, p, ops.asarray(mu), ops.asarray(v))))
    for c in range(3):
        y = ops.asarray(np.full(mu.shape[1], float(c)))
        log_p = likelihood.log_predictive_density(ops, p, y, ops.asarray(mu), ops.asarray(v))
        np.testing.assert_allclose(ops.to_numpy(log_p), np.log(found[c]), rtol=1e-12)
    return found


MU3 = np.array([[0.0, 0.3, 1.0, 0.0], [0.0, -0.2, 2.0, 0.0], [0.0, 0.1, -3.0, 5.0]])
V3 = np.array([[1.0, 1.0, 4.0, 1e-4], [1.0, 1.0 / 30.0, 9.0, 2.0], [1.0, 1.0 / 30.0, 0.2, 9.0]])


def test_equal_classes_are_equally_probable_and_all_add_up_to_one(ops: Ops) -> None:
    for likelihood in (ROBUST, SOFT):
        found = probabilities(likelihood, ops, MU3, V3)
        np.testing.assert_allclose(found[:, 0], 1.0 / 3.0, rtol=1e-6)
        np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-6)


def test_robust_max_is_the_integral_over_its_own_latent() -> None:
    found = probabilities(ROBUST, NUMPY, MU3, V3)
    for c, b in np.ndindex(3, 4):
        sd = np.sqrt(V3[:, b])
        others = [k for k in range(3) if k != c]

        def inner(f: float, b: int = b, c: int = c, sd: Floats = sd, others: Any = others) -> float:
            below = [scipy.stats.norm.cdf((f - MU3[k, b]) / sd[k]) for k in others]
            return float(scipy.stats.norm.pdf(f, MU3[c, b], sd[c]) * np.prod(below))

        low, high = MU3[c, b] - 9 * sd[c], MU3[c, b] + 9 * sd[c]
        steps = [MU3[k, b] + a * sd[k] for k in others for a in (-6, -2, 0, 2, 6)]
        breaks = sorted(x for x in steps if low < x < high)
        largest, _ = scipy.integrate.quad(inner, low, high, points=breaks, limit=500, epsabs=1e-12)
        error = ROBUST.epsilon / 2.0
        expected = error + (1.0 - ROBUST.epsilon - error) * largest
        assert found[c, b] == pytest.approx(expected, abs=1e-9)


def softmax_log_probabilities(ops: Ops, mu: Floats, v: Floats) -> Floats:
    """Return log E softmax(f) [C, b] as the likelihood predicts it."""
    likelihood = Softmax(classes=len(mu), integrals="adaptive")
    p = likelihood.bind(NoParameters(), ops.asarray(np.zeros((1, len(mu)))))
    return np.log(ops.to_numpy(likelihood.predict(ops, p, ops.asarray(mu), ops.asarray(v))))


def log_probabilities_by_many_nodes(mu: Floats, v: Floats) -> Floats:
    """Return log ∫ p_c(z) ∏_{k≠c} F_k(z) dz [C] by sums of positive terms with steps of 0.2."""
    sd, likely = np.sqrt(v), []
    z = np.arange(np.max(mu - 9.0 * sd) - 4.0, np.max(mu + 7.5 * sd) + 25.0, 0.2)
    for m, s in zip(mu, sd, strict=True):
        step = min(0.2, 0.2 / s)
        t = np.arange(-9.5, 9.5 + s, step)  # E exp(f − z) has its mass about t = √v
        rate = np.exp(np.minimum(m + s * t - z[:, None], 700.0))
        weighted = step * scipy.stats.norm.pdf(t) * np.exp(-rate)
        likely.append((np.sum(rate * weighted, axis=1), np.sum(weighted, axis=1)))
    p, F = np.transpose(likely, (1, 0, 2))
    others = [np.prod(np.delete(F, c, axis=0), axis=0) for c in range(len(mu))]
    return np.asarray(np.log(0.2 * np.sum(p * others, axis=1)))


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_log_probabilities_of_softmax_are_exact_to_2e_7(ops: Ops, classes: int) -> None:
    """From variances of 1e-8 to 200, in all classes or apart, with means near each other and far away."""
    rng = np.random.default_rng(classes)
    scale = np.repeat([0.3, 3.0, 30.0], 6)
    same = np.tile([1e-8, 0.01, 0.07, 0.3, 4.0, 200.0], 3)
    apart = 10.0 ** rng.uniform(-4.0, 2.0, (classes, 18))
    mu = np.tile(scale, 2) * rng.standard_normal((classes, 36))
    v = np.concatenate([np.broadcast_to(same, (classes, 18)), apart], axis=1)
    got = softmax_log_probabilities(ops, mu, v)
    for b in range(36):
        exact = log_probabilities_by_many_nodes(mu[:, b], v[:, b])
        likely = exact > np.log(1e-13)
        np.testing.assert_allclose(got[likely, b], exact[likely], rtol=0, atol=2e-7)
        # below 1e-13 the sums cancel: there the docstring promises a relative 1e-3
        np.testing.assert_allclose(got[:, b], exact, rtol=1e-3, atol=2e-7)
    np.testing.assert_allclose(got, softmax_log_probabilities(NUMPY, mu, v), rtol=0, atol=1e-10)


def test_softmax_is_its_mean_over_a_grid_of_all_latents() -> None:
    found = probabilities(SOFT, NUMPY, MU3, V3)
    t, w = np.polynomial.hermite_e.hermegauss(150)
    w = w / w.sum()
    for b in range(4):
        f = [MU3[c, b] + np.sqrt(V3[c, b]) * t for c in range(3)]
        grid = np.stack(np.meshgrid(*f, indexing="ij"))
        grid = np.exp(grid - grid.max(axis=0))
        mean = np.einsum("cijk,i,j,k->c", grid / grid.sum(axis=0), w, w, w)
        np.testing.assert_allclose(found[:, b], mean, rtol=0, atol=1e-6)


def test_softmax_of_sure_wide_and_broken_rows(ops: Ops) -> None:
    """A row with NaN takes none of the others along, and a variance without bounds ends."""
    mu = np.array([[0.0, 0.0, np.nan, 0.0], [-700.0, 3.0, 1.0, 3.0]])
    v = np.array([[0.01, 9e4, 1.0, 1e12], [0.01, 1.0, 1.0, 1.0]])
    got = softmax_log_probabilities(ops, mu, v)
    np.testing.assert_allclose(got[:, 0], [0.0, -700.0 + 0.01], rtol=1e-6, atol=2e-7)
    np.testing.assert_allclose(np.exp(got[0, 1]), scipy.stats.norm.cdf(-0.01), atol=1e-5)
    assert np.all(np.isnan(got[:, 2]))
    np.testing.assert_allclose(np.exp(got[:, 3]), 0.5, atol=2e-3)


def test_softmax_takes_hundreds_of_exponentials_per_row_and_class() -> None:
    class Counting(type(NUMPY)):  # type: ignore[misc]
        count = 0

        def exp(self, x: Array) -> Array:
            self.count += np.size(x)
            return super().exp(x)

    counting = Counting("eager", "float64", "cpu")
    softmax_log_probabilities(counting, np.zeros((3, 50)), np.ones((3, 50)))
    assert 100 < counting.count / 150 < 1000


def test_fixed_integrals_are_not_in_an_id_and_adaptive_ones_are() -> None:
    def keys(**options: Any) -> dict[str, Any]:
        return likelihood_keys(LikelihoodConfig.model_validate(options)).model_dump()

    assert "integrals" not in keys(name="student-t")
    assert "integrals" not in keys(name="student-t", integrals="fixed")
    assert keys(name="student-t", integrals="adaptive")["integrals"] == "adaptive"
    assert "integrals" not in keys(name="gaussian", integrals="adaptive")


def test_a_likelihood_without_a_known_bend_finds_it() -> None:
    class Hidden(StudentT):
        def bend(self, ops: Ops, p: Tree, y: Array) -> tuple[()]:
            return ()

    likelihood, p, ys = CASES["student-t 1e-3"]
    found = Hidden(integrals="adaptive", df=3.0).gradients(NUMPY, p, *points(ys))
    for got, expected in zip(found, likelihood.gradients(NUMPY, p, *points(ys)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
