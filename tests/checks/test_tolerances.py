"""What `svgpbench check` allows, written a second time, and comparisons that would compare nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from shipped import SHIPPED_METHODS

from svgpbench.backends import load_backend
from svgpbench.checks import (
    evaluate,
    identities_of_bounds,
    identities_of_residuals,
    matrix,
    rounding,
    worker,
)
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import MatrixCase, cases, small_problem
from svgpbench.checks.completeness import omissions
from svgpbench.checks.dense import FAMILIES
from svgpbench.checks.evaluate import Arrays
from svgpbench.checks.identities import IDENTITIES
from svgpbench.checks.matrix import FLOAT64, GROUPS, bound, compare, difference
from svgpbench.config import BackendConfig
from svgpbench.experiments import rounding_model
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import Kernel, KernelParameters, kernel
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.methods import build_method
from svgpbench.methods.collapsed import SGPR
from svgpbench.ops import Ops
from svgpbench.runs import verification

CASE = MatrixCase("t-svgp tied-projected", "bernoulli-logit", "matern52")


def test_no_tolerance_is_looser_than_stated() -> None:
    assert FLOAT64 == {
        "values": 1e-10,
        "gradients": 1e-10,
        "e_step": 1e-10,
        "e_trajectory": 1e-9,
        "m_trajectory": 1e-9,
        "dense": 1e-10,
    }
    assert all(bound(group, "float64", 1e9) == FLOAT64[group] for group in FLOAT64)
    assert bound("values", "float32") < 3.5e-5 and bound("m_trajectory", "float32") < 1.4e-4
    assert [t for _, t in IDENTITIES.values()] == 9 * [1e-8] + 7 * [1e-10]
    assert matrix.SMALLEST_SLOPE == 1e-3
    model = rounding_model
    assert (model.PERTURBATION, model.REPLICAS, model.MARGIN) == (1e-15, 4, 10.0)
    assert len(verification.PERTURBATIONS) == 4 and verification.MARGIN == rounding.MARGIN == 10.0
    assert rounding.FLOOR == 1e-13
    assert rounding.ITERATIONS * rounding.M_STEPS == 300


def test_trajectories_are_of_fifty_steps() -> None:
    assert evaluate.STEPS == len(small_problem().batches) == 50
    assert evaluate.RATE == 0.6 and evaluate.ADAM_RATE == 0.02  # slower would part less


@dataclass(frozen=True)
class Exponential(QuadratureLikelihood):
    """Positive numbers with mean exp(f); −2 ∂V/∂v is about y e⁻ᶠ, so that full steps of rate .6 overshoot."""

    name: ClassVar[str] = "exponential"
    task: ClassVar[str] = "regression"  # type: ignore[assignment]
    support: ClassVar[str] = "positive"  # type: ignore[assignment]

    def log_density(self, ops: Ops, p: Any, y: Any, f: Any) -> tuple[Any, Any]:
        ratio = y * ops.exp(-f)
        return -f - ratio, ratio - 1.0

    def predict(self, ops: Ops, p: Any, mu: Any, v: Any) -> Any:
        return ops.exp(mu + 0.5 * v)[0, ...]


def test_steps_that_diverge_are_taken_again_and_shorter() -> None:
    """At a bound of −1e31 the rounding of f alone makes correct backends differ by 1e-10."""
    method = build_method("diagonal-precision", {"optimiser": "exact"})
    model = Model(kernel("matern52"), Exponential(), 1e-6)
    numbers = evaluate.evaluate(load_backend("numpy"), model, method, small_problem(), "none")
    assert numbers["e_step/elbo"] > -1e4


def test_every_method_of_this_package_has_a_dense_column() -> None:
    assert set(FAMILIES) == {name for name, _ in SHIPPED_METHODS.values()}


@pytest.fixture(scope="module")
def torch_arrays() -> Arrays:
    task = {"backend": "torch", "mode": "", "device": "cpu", "cases": [(0, vars(CASE))]}
    task |= {"identities": (), "replicas": []}
    made = worker.run_task(task)
    rest = {f"identity|{n}": np.array(0.0) for n in IDENTITIES}
    return made | rest | {"trajectory|0": np.zeros(20)}


def said_of(arrays: Arrays, backend: str = "torch") -> list[str]:
    return list(omissions(BackendConfig(name=backend), [CASE], arrays))


def test_a_whole_set_of_arrays_lacks_nothing(torch_arrays: Arrays) -> None:
    assert said_of(torch_arrays) == []


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_that_was_not_computed_is_a_failure(torch_arrays: Arrays, group: str) -> None:
    kept = {k: x for k, x in torch_arrays.items() if not k.startswith(f"0|{group}/")}
    (line,) = said_of(kept)
    assert line.startswith("torch: t-svgp tied-projected") and line.endswith(f"nothing for {group}")


@pytest.mark.parametrize("name", ["identity|steps agree", "trajectory|0"])
def test_an_identity_or_a_trajectory_that_did_not_run_is_a_failure(
    torch_arrays: Arrays, name: str
) -> None:
    kept = {k: x for k, x in torch_arrays.items() if k != name}
    assert said_of(kept) == [f"torch: no {name.replace('|', ' ')}"]


def test_a_backend_cannot_hand_in_what_another_computed(torch_arrays: Arrays) -> None:
    (line,) = said_of(torch_arrays, backend="jax")
    assert line.endswith("computed by torch")


def test_a_float32_case_cannot_be_computed_in_float64(torch_arrays: Arrays) -> None:
    single = MatrixCase(CASE.method, CASE.likelihood, CASE.kernel, "float32")
    (line,) = omissions(BackendConfig(name="torch"), [single], torch_arrays)
    assert line.endswith("computed in float64")


def test_a_case_without_trajectories_owes_none() -> None:
    few = next(case for case in cases(full=False) if case.trajectories == "none")
    (line, *_) = omissions(BackendConfig(name="torch"), [few], {})
    assert line.endswith("nothing for values, gradients, e_step")


def test_a_backend_that_computed_nothing_is_told_for_every_case() -> None:
    chosen = list(cases(full=False))
    assert len(list(omissions(BackendConfig(name="jax"), chosen, {}))) == len(chosen) + 1


VACUOUS = {
    "NaN on both sides": lambda x: np.full_like(x, np.nan),
    "infinite on both sides": lambda x: np.full_like(x, np.inf),
    "no numbers on both sides": lambda x: x[..., :0],
}


@pytest.mark.parametrize("plant", VACUOUS)
def test_two_arrays_of_nothing_do_not_agree(plant: str) -> None:
    made = VACUOUS[plant](np.ones((1, 3)))
    assert difference(made, made.copy()) == np.inf


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 1, 3), (1, 4)])
def test_unlike_shapes_do_not_agree_though_they_broadcast(shape: tuple[int, ...]) -> None:
    assert difference(np.ones((1, 3)), np.ones(shape)) == np.inf


def numbers() -> dict[str, Arrays]:
    model, method = CASE.build()
    one = evaluate.evaluate(load_backend("numpy"), model, method, small_problem(), "none")
    return {"numpy": one, "jax": dict(one), "torch": dict(one)}


@pytest.mark.parametrize("at", ["numpy", "jax", "torch"])
@pytest.mark.parametrize("name", ["values/mu", "gradients/kernel.variance", "e_step/q_cov"])
def test_an_array_that_one_backend_lacks_or_parts_in_is_red(at: str, name: str) -> None:
    for plant in ("absent", "apart", "NaN"):
        found = numbers()
        array = found[at].pop(name)
        if plant != "absent":
            found[at][name] = array * (1.0 + 2e-10) if plant == "apart" else array * np.nan
        entries = compare(CASE, found, None)
        assert [e.group for e in entries if not e.ok] == [name.split("/", maxsplit=1)[0]], plant
        assert all(at in e.pair and e.pair[0] != e.pair[1] for e in entries if not e.ok)


def test_a_divergence_that_is_nan_breaks_its_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "kl", lambda bench, state: float("nan"))
    worst = identities_of_bounds.divergence_is_positive(load_backend("numpy"), ())
    assert not worst <= IDENTITIES["divergence is positive"][1]


@pytest.mark.parametrize("other", [SGPR.collapsed_bound, lambda *_: float("nan")])
def test_an_upper_bound_that_is_none_breaks_its_identity(
    monkeypatch: pytest.MonkeyPatch, other: Callable[..., Any]
) -> None:
    monkeypatch.setattr(SGPR, "upper_bound", other)
    assert identities_of_bounds.evidence_is_between_bounds(load_backend("numpy"), ()) == np.inf


def test_a_bound_that_is_nan_fails_the_identity_of_narrower_residuals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = [-9.0, float("nan"), -7.0]
    monkeypatch.setattr(identities_of_residuals, "_bounds_at_one_q", lambda benches: list(bounds))
    worst = identities_of_residuals.narrower_is_tighter(load_backend("numpy"), ())
    assert not worst <= IDENTITIES["narrower is tighter"][1]


@pytest.mark.parametrize(
    ("parameter", "low", "high"),
    [
        ("variance", 1e-3, np.inf),
        ("variance", 0.0, 1e5),
        ("lengthscales", 0.1, np.inf),
        ("lengthscales", 0.0, 10.0),
    ],
)
def test_a_parameter_that_is_clipped_far_from_one_breaks_the_identity_of_sizes_alone(
    monkeypatch: pytest.MonkeyPatch, parameter: str, low: float, high: float
) -> None:
    sound = Kernel.cross

    def clipped(kernel: Kernel, ops: Ops, p: KernelParameters, A: Any, B: Any) -> Any:
        value = np.clip(getattr(p, parameter), low, high)
        return sound(kernel, ops, p._replace(**{parameter: value}), A, B)

    monkeypatch.setattr(Kernel, "cross", clipped)
    for name, holds in (("one step reaches sgpr", True), ("bounds hold at every size", False)):
        check, tolerance = IDENTITIES[name]
        assert (check(load_backend("numpy"), ()) <= tolerance) is holds
