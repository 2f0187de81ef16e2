"""The cost of a method's steps, by the code that trains; its memory is what torch and NumPy allocate."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from svgpbench.backends import framework_missing, load_backend
from svgpbench.checks.cases import VARIANTS, build_model, likelihoods_of, small_problem
from svgpbench.config import TrainingConfig
from svgpbench.cost import Cost, Size, count, exponents
from svgpbench.errors import UserError
from svgpbench.likelihoods import Likelihood
from svgpbench.methods import AnyMethod, build_method
from svgpbench.methods.dual import DualSVGP
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer
from svgpbench.tree import leaves

GAUSSIAN = build_model("gaussian", "matern52")


def built(method: str) -> AnyMethod:
    name, options = VARIANTS[method]
    return build_method(name, options)


def size_for(method: AnyMethod, b: int | None = None) -> Size:
    gamma = 12 if method.basis == "decoupled" else None
    return Size(n=48, M=8, D=3, b=b, gamma=gamma)


@pytest.mark.parametrize("method", VARIANTS)
def test_every_method_counts_with_every_likelihood_that_it_takes(method: str) -> None:
    for likelihood in likelihoods_of(method):
        model = build_model(likelihood, "matern52")
        cost = count(built(method), model, size_for(built(method)))
        assert all(x > 0 for tally in cost for x in tally[:3])
        smaller = count(built(method), model, size_for(built(method)), dtype="float32")
        for double, single in zip(cost, smaller, strict=True):
            assert double.flops == single.flops
            # indices and truth values are as long as before
            assert 0.5 <= single.bytes / double.bytes < 0.56
            assert 0.5 <= single.peak_bytes / double.peak_bytes < 0.56


def test_e_step_of_t_svgp_by_hand() -> None:
    """Cholesky of K and of B, one solve with K_uf and one with W, three quarters of W diag(β) Wᵀ."""
    n, M, D = 10**7, 10**5, 10
    cost = count(built("t-svgp tied-projected"), GAUSSIAN, Size(n=n, M=M, D=D))
    leading = 7 * n * M**2 // 2 + 2 * M**3 // 3
    assert cost.e_step.flops == pytest.approx(leading, rel=2e-3)
    assert cost.prediction.flops == pytest.approx(2 * n * M**2 + M**3 / 3, rel=2e-3)
    # K_uf and what makes it of distances: five arrays M × n at the most
    assert cost.e_step.peak_bytes == pytest.approx(8 * (5 * n * M), rel=0.02)


def test_e_step_of_t_svgp_by_kind_by_hand() -> None:
    """Distances for K; L and the factor of B; W, and a solve with it; W diag(β) Wᵀ; five times a vector."""
    n, M, D = 1000, 50, 4
    e_step = count(built("t-svgp tied-projected"), GAUSSIAN, Size(n=n, M=M, D=D)).e_step
    assert e_step.cholesky_flops == 2 * (M**3 // 3)
    assert e_step.solve_flops == 2 * M**2 * n + M**2
    assert e_step.product_flops == 2 * D * M * (M + n) + 2 * n * M**2 + 6 * M * n + 4 * M**2
    assert 0 < e_step.elementwise_flops < 0.2 * e_step.flops


P, S = 3, 12  # latents and draws of the softmax that is built here
SMALL_BATCH = Size(n=1000, M=50, D=4, b=20)


def shared_by_latents() -> int:
    """What either M-step has: distances and their slopes; μ, g and mαᵀ; the sums over draws."""
    M, D, b = SMALL_BATCH.M, SMALL_BATCH.D, SMALL_BATCH.rows
    distances = 2 * (D + 2) * (2 * M**2 + M * b) + 2 * D * (M**2 + M * b)
    return distances + 6 * P * M * b + 4 * P * b * S + 2 * b * S


def test_m_step_of_q_svgp_on_a_small_batch_by_hand() -> None:
    """RᵀW and its way back for each latent; one W̄Wᵀ, two solves with b columns and two with M."""
    M, b = SMALL_BATCH.M, SMALL_BATCH.rows
    m_step = count(built("q-svgp natgrad"), build_model("softmax", "se"), SMALL_BATCH).m_step
    assert m_step.product_flops == shared_by_latents() + 4 * P * M**2 * b + 2 * M**2 * b
    assert m_step.solve_flops == 2 * M**2 * b + 2 * M**3


def test_m_step_of_t_svgp_by_hand() -> None:
    """For each latent 9/4 M³ to the new θ, M³ for S, 2M³ for J²; JW and its square; four vectors."""
    M, b = SMALL_BATCH.M, SMALL_BATCH.rows
    model = build_model("softmax", "se")
    m_step = count(built("t-svgp tied-projected"), model, SMALL_BATCH).m_step
    own = 9 * M**3 // 4 + M**3 + 2 * M**3 + 4 * M**2 * b + 8 * M**2
    assert m_step.product_flops == shared_by_latents() + P * own
    assert m_step.solve_flops == 2 * M**2 * b + 2 * M**3 + M**3 + P * (M**3 + M**2)
    assert m_step.cholesky_flops == P * M**3 // 3 + M**3 // 3


def test_an_m_step_is_less_than_two_e_steps_and_keeps_three_arrays_more() -> None:
    cost = count(built("t-svgp tied-projected"), GAUSSIAN, Size(n=10_000, M=100, D=8))
    assert 1.0 < cost.m_step.flops / cost.e_step.flops < 2.0
    assert 1.0 < cost.m_step.peak_bytes / cost.e_step.peak_bytes < 2.0


@pytest.mark.parametrize(
    ("method", "e_step", "m_step"),
    [
        ("t-svgp tied-projected", 2, 2),  # of K(Z, Z) and of B
        ("q-svgp natgrad", 2, 1),  # of K(Z, Z) and of the new precision
        ("q-svgp adam", 1, 1),
        ("diagonal-precision exact", 4, 2),  # and of S∘S, and of the new B
    ],
)
def test_no_matrix_is_factorised_twice(method: str, e_step: int, m_step: int) -> None:
    cost = count(built(method), GAUSSIAN, Size(n=1000, M=20, D=3))
    assert (cost.e_step.choleskys, cost.m_step.choleskys) == (e_step, m_step)
    latents = count(built(method), build_model("softmax", "se"), Size(n=1000, M=20, D=3))
    assert latents.e_step.choleskys == 1 + 3 * (e_step - 1)  # three latents, one kernel


def test_no_array_is_made_however_large_the_problem() -> None:
    count(built("t-svgp untied"), GAUSSIAN, Size(n=10, M=5, D=1))  # first imports are not counted
    gc.collect()
    tracemalloc.start()
    count(built("t-svgp untied"), GAUSSIAN, Size(n=10**7, M=10**5, D=10**7))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_minibatch_costs_what_its_rows_cost() -> None:
    """At the same b, n matters only where every site is kept."""
    small, large = (Size(n=n, M=20, D=3, b=64) for n in (10**3, 10**7))
    tied, untied = built("t-svgp tied-projected"), built("t-svgp untied")
    assert count(tied, GAUSSIAN, small) == count(tied, GAUSSIAN, large)
    assert count(untied, GAUSSIAN, large).m_step.flops > 10**9
    whole = count(tied, GAUSSIAN, Size(n=64, M=20, D=3))
    for one, other in zip(whole, count(tied, GAUSSIAN, small), strict=True):
        assert one.flops == pytest.approx(other.flops, rel=0.01)
        assert one.peak_bytes == pytest.approx(other.peak_bytes, rel=0.02)


def test_a_batch_that_cannot_double_has_an_exponent_too() -> None:
    sizes = [Size(n=n, M=20, D=2, b=1000) for n in (1000, 1900, 10**6)]
    method = built("t-svgp tied-projected")
    slopes = [exponents(method, GAUSSIAN, size, "e_step", "flops")["b"] for size in sizes]
    assert 0.9 < slopes[0] == slopes[1] == pytest.approx(slopes[2], abs=0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 0}, "n = 0: a size is at least 1"),
        ({"D": -1}, "D = -1"),
        ({"b": 11}, "a batch of b = 11 rows is more than n = 10"),
        ({"gamma": 5}, "method 't-svgp' has no gamma"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, int], words: str) -> None:
    with pytest.raises(UserError, match=words):
        count(built("t-svgp tied"), GAUSSIAN, Size(**({"n": 10, "M": 4, "D": 2} | change)))


def test_a_method_is_refused_what_it_does_not_take() -> None:
    class Particular(DualSVGP):
        def refuses(self, likelihood: Likelihood) -> str:
            return "" if likelihood.name == "gaussian" else "Gaussian noise only"

    class TwoBases(DualSVGP):
        basis: ClassVar[str] = "decoupled"

    with pytest.raises(UserError, match="takes all rows at once; leave the batch out"):
        count(build_method("sgpr", {}), GAUSSIAN, Size(n=10, M=4, D=2, b=5))
    with pytest.raises(UserError, match="'t-svgp': Gaussian noise only"):
        count(Particular(), build_model("bernoulli-logit", "se"), Size(n=10, M=4, D=2))
    with pytest.raises(UserError, match="'t-svgp' needs gamma"):
        count(TwoBases(), GAUSSIAN, Size(n=10, M=4, D=2))


# --- memory against what is really allocated -------------------------------------------------------

NUMBER = 8  # bytes
N, M = 2000, 100


def trainer(ops: Ops, method: str) -> Trainer:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-2.0, 2.0, (N, 3)), rng.standard_normal(N)
    theta = small_problem().theta(GAUSSIAN)._replace(inducing=X[:M] + 0.01)
    data = TrainingData(X, y, X[:2], y[:2])
    settings = TrainingConfig(m_steps=1)
    return Trainer(ops, GAUSSIAN, built(method), data, theta, settings)


def steps(ops: Ops, method: str) -> tuple[Callable[[], Any], Callable[[], Any], int]:
    """An E-step from θ, an M-step, and the bytes of what they start from."""
    run = trainer(ops, method)
    run.state, _ = run.e_phase(run.state)
    batch, state, raw = run.batches.full(run.state.raw.inducing), run.state.q, run.state.raw

    def e_step() -> Any:
        f = run.steps.factor(raw, run.steps.prior(raw), batch)
        return run.steps.e_phase(raw, f, batch, state, run.e_rate(1), run.scale)

    def m_step() -> Any:
        return run.steps.m_phase(
            raw, run.state.prior, state, run.state.adam, batch, run.m_rate, run.one
        )

    inputs = [ops.to_numpy(x).nbytes for x in leaves((raw, run.state.adam, batch, state))]
    return e_step, m_step, sum(inputs)


def torch_peak(f: Callable[[], Any]) -> int:
    """The most bytes that torch's allocator held at a time while f ran."""
    from torch.profiler import ProfilerActivity, profile

    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        f()
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]
    return int(np.max(np.cumsum(sizes)))


@pytest.mark.skipif(framework_missing("torch") is not None, reason="torch is not installed")
@pytest.mark.parametrize("method", ["t-svgp tied-projected", "q-svgp natgrad"])
def test_peak_memory_is_what_torch_allocates(method: str) -> None:
    """An E-step's to 0.5 %; in an M-step torch adds some cotangents in place, the count does not."""
    e_step, m_step, inputs = steps(load_backend("torch"), method)
    cost = count(built(method), GAUSSIAN, Size(n=N, M=M, D=3))
    assert cost.e_step.peak_bytes == pytest.approx(torch_peak(e_step) + inputs, rel=0.005)
    inputs += 2 * NUMBER * M * M  # K(Z, Z) and its factor, held from the E-step
    assert 0.98 < cost.m_step.peak_bytes / (torch_peak(m_step) + inputs) < 1.15


def test_peak_memory_of_an_e_step_is_what_numpy_allocates() -> None:
    """To 0.1 %: small arrays and Python's own objects."""
    e_step, _, inputs = steps(load_backend("numpy"), "t-svgp tied-projected")
    cost: Cost = count(built("t-svgp tied-projected"), GAUSSIAN, Size(n=N, M=M, D=3))
    gc.collect()
    tracemalloc.start()
    e_step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cost.e_step.peak_bytes == pytest.approx(peak + inputs, rel=1e-3)
