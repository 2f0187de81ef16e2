"""Whole runs of the EM loop: every number of every trace point, θ and its bases among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from observed_run import GivenRows, Seen, observed
from oracle_agreement import agree
from oracle_files import Oracle, OracleError
from oracle_problem import build_likelihood, likelihood_parameters

from svgpbench.config import LogLinear, TrainingConfig
from svgpbench.kernels import SMALLEST_POSITIVE, Model, Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.methods import AnyMethod, build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer

RUN_TOLERANCE = 1e-9
"""Of a trajectory of five iterations: rounding grows a little along it."""


def check_run(ops: Ops, oracle: Oracle) -> None:
    """The trace of the file, from its rows, by the loop as it is."""
    trainer = trainer_of(ops, oracle)
    rows = GivenRows(_rows_in_order(oracle) if oracle.settings["batch_size"] else ())
    if rows.batches:
        rows.feed(trainer)
    trained, seen = observed(trainer)
    assert trained.status == "ok", trained.message
    assert rows.left == 0, f"{rows.left} batches of the file were not drawn"
    expected: list[Mapping[str, Any]] = oracle.expected["trace"]
    assert len(trained.trace) == len(expected)
    for point, at, wanted in zip(trained.trace, seen, expected, strict=True):
        assert point.get("halvings", 0) == 0  # the file's steps were not damped
        arrays = _arrays(at)
        for key, number in {**wanted, **_in_few_numbers(wanted["lengthscales"])}.items():
            where = f"{key} at iteration {wanted['iteration']}"
            found = [values[key] for values in (point, arrays) if key in values]
            assert found, f"{where}: the run does not have it"
            for value in found:
                agree(value, number, where, RUN_TOLERANCE)


def _in_few_numbers(lengthscales: list[float]) -> dict[str, float]:
    """What a trace point says of the lengthscales."""
    mean = float(np.prod(lengthscales) ** (1.0 / len(lengthscales)))
    return {
        "lengthscale_min": min(lengthscales),
        "lengthscale_mean": mean,
        "lengthscale_max": max(lengthscales),
    }


def _arrays(at: Seen) -> dict[str, Any]:
    """θ and, of a diagonal precision, g, under the names of the files."""
    inducing, kernel_parameters = at.theta.inducing, at.theta.kernel
    two = isinstance(inducing, Decoupled)
    found = {
        "variance": kernel_parameters.variance[0],
        "lengthscales": kernel_parameters.lengthscales[0],
        "Z": inducing.beta if two else inducing,
    }
    if two:
        found["Z_gamma"] = inducing.gamma
    if hasattr(at.state, "g"):
        found["g"] = at.state.g[0]
    return found


def trainer_of(ops: Ops, oracle: Oracle) -> Trainer:
    """The run that a file's settings and inputs state."""
    s, name = oracle.settings, str(oracle.settings["likelihood"])
    if float(s["positive_floor"]) != SMALLEST_POSITIVE:
        raise OracleError(f"{oracle.name}: settings.positive_floor is not {SMALLEST_POSITIVE:g}")
    likelihood = build_likelihood(name, nodes=int(s["nodes"]), squash=float(s["squash"]))
    model = Model(kernel(str(s["kernel"])), likelihood, oracle.jitter)
    X, y, X_test, y_test = (oracle.number("inputs", key) for key in ("X", "y", "Xtest", "ytest"))
    noise = oracle.inputs.get("noise_variance", 0.0)
    Z: Any = oracle.number("inputs", "Z")
    if "Z_gamma" in oracle.inputs:
        Z = Decoupled(oracle.number("inputs", "Z_gamma"), Z)
    parameters = KernelParameters(
        oracle.number("inputs", "variance").reshape(1),
        oracle.number("inputs", "lengthscales").reshape(1, -1),
    )
    theta = Theta(parameters, likelihood_parameters(ops, name, noise), Z)
    return Trainer(
        ops,
        model,
        method_of(oracle),
        TrainingData(X, y, X_test, y_test),
        theta,
        settings_of(oracle),
    )


def settings_of(oracle: Oracle) -> TrainingConfig:
    s = oracle.settings
    rates = [float(rate) for rate in s["e_rates"]]
    rate: Any = LogLinear(**s["e_ramp"]) if "e_ramp" in s else rates[0]
    if "e_ramp" not in s and set(rates) != {rates[0]}:
        raise OracleError(f"{oracle.name}: settings.e_rates vary, and there is no e_ramp")
    same = ("e_steps", "m_steps", "m_rate", "em_iterations", "batch_size")
    return TrainingConfig(
        e_rate=rate, learn=tuple(s["learn"]), **{key: s[key] for key in same if key in s}
    )


def method_of(oracle: Oracle) -> AnyMethod:
    s, name = oracle.settings, str(oracle.settings["method"])
    options: dict[str, Mapping[str, Any]] = {
        "q-svgp": {"optimiser": s.get("e_step"), "whiten": s.get("whiten")},
        "t-svgp": {"tying": s.get("tying")},
        "diagonal-precision": {"optimiser": s.get("e_step"), "start": s.get("start")},
        "orth": {
            "coupled": f"q-svgp {s.get('e_step')}",
            "gamma_step": s.get("gamma_step"),
            "gamma_rate": s.get("gamma_rate"),
        },
    }
    if name not in options:
        raise OracleError(f"{oracle.name}: no method {name!r} here, only {', '.join(options)}")
    return build_method(name, dict(options[name]))


def _rows_in_order(oracle: Oracle) -> Iterator[Any]:
    """E-phase, M-phase, E-phase …; an untied M-phase takes all rows and draws none."""
    e_batches = oracle.number("inputs", "e_batches")
    m_batches = oracle.number("inputs", "m_batches")
    for i, phase in enumerate(np.asarray(e_batches)):
        yield from phase
        if i < len(m_batches) and oracle.settings.get("tying") != "untied":
            yield from m_batches[i]
