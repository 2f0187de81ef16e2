"""One case as a run of the package and as a run of the second program, and the comparison of the two."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from cases import CASES, TARGETS, TOLERANCE, Case, likelihood
from observed_run import observed
from problems import (
    CLASSES,
    JITTER,
    LENGTHSCALE,
    LENGTHSCALES,
    NOISE_VARIANCE,
    SAMPLES,
    SEED,
    STUDENT_T_SCALE,
    VARIANCE,
    Y_SCALE,
    problem,
)
from program.draws import Data, Draws
from program.kernels import Kernel
from program.loop import Loop, Plan, Point
from program.schedules import Schedule, constant, falling, rising

from svgpbench.config import Decay, LikelihoodConfig, LogLinear, TrainingConfig
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import Likelihood, build_likelihood
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.chunked import trainer_class
from svgpbench.training.em import Trained, Trainer

ITERATIONS = 4
M_RATE = 0.05


def package_likelihood(name: str, treatment: str) -> Likelihood:
    more: dict[str, dict[str, Any]] = {
        "gaussian": {"noise_variance": NOISE_VARIANCE},
        "heteroskedastic": {"noise_variance": NOISE_VARIANCE},
        "student-t": {"scale": STUDENT_T_SCALE, "negative_beta": treatment},
        "softmax": {"classes": CLASSES, "samples": SAMPLES},
        "robust-max": {"classes": CLASSES, "negative_beta": treatment},
    }
    return build_likelihood(LikelihoodConfig(name=name, **more.get(name, {})))


def lengthscales(ard: bool) -> Any:
    return np.array(LENGTHSCALES if ard else (LENGTHSCALE,))


def package_run(ops: Ops, case: Case) -> Trainer:
    """The package's trainer of a case."""
    p, settings = problem(TARGETS[case.likelihood]), dict(case.settings)
    rate = settings["e_rate"]
    if isinstance(rate, tuple):
        rising_rate = rate[0] == "rise"
        keys = ("start", "end", "steps") if rising_rate else ("start", "decay")
        values: Any = dict(zip(keys, rate[1:], strict=True))
        settings["e_rate"] = LogLinear(**values) if rising_rate else Decay(**values)
    method = build_method(case.method, dict(case.options))
    lik = package_likelihood(case.likelihood, case.treatment)
    inducing = {"data": p.X, "decoupled": Decoupled(p.gamma, p.Z), "inducing": p.Z}[method.basis]
    parameters = KernelParameters(np.array([VARIANCE]), lengthscales(case.ard)[None])
    return trainer_class(method)(
        ops,
        Model(kernel(case.kernel), lik, JITTER),
        method,
        TrainingData(p.X, p.y, p.X_test, p.y_test, Y_SCALE),
        Theta(parameters, lik.initial_parameters(), inducing),
        TrainingConfig(**({"em_iterations": ITERATIONS, "m_rate": M_RATE} | settings)),
        seed=SEED,
    )


def first_theta(case: Case) -> dict[str, Any]:
    """θ without bases, for the second program."""
    theta = {"variance": np.array(VARIANCE), "lengthscales": lengthscales(case.ard)}
    values = {
        "gaussian": ("noise_variance", NOISE_VARIANCE),
        "heteroskedastic": ("noise_variance", NOISE_VARIANCE),
        "student-t": ("scale", STUDENT_T_SCALE),
    }
    if case.likelihood in values:
        name, value = values[case.likelihood]
        theta[name] = np.array(value)
    return theta


def schedule(rate: Any) -> Schedule:
    if not isinstance(rate, tuple):
        return constant(rate)
    return rising(*rate[1:]) if rate[0] == "rise" else falling(*rate[1:])


def program_run(case: Case) -> Loop:
    """The second program's run of a case."""
    p, s = problem(TARGETS[case.likelihood]), case.settings
    lik = likelihood(case.likelihood, case.treatment)
    family = case.build(Kernel(case.kernel, JITTER), lik, p.X)
    learn = tuple(s.get("learn", ("kernel", "likelihood", "inducing")))
    theta = first_theta(case)
    if case.method == "q-vgp":
        theta["Z"] = p.X
    elif case.method not in ("t-vgp", "gpr"):
        theta["Z"] = p.Z
    if case.method in ("orth", "hybrid", "decoupled"):
        theta["gamma"] = p.gamma
    if case.method.endswith("vgp") and not case.method.endswith("svgp"):
        learn = tuple(part for part in learn if part != "inducing")  # the data stay where they are
    data = Data(p.X, p.y, p.X_test, p.y_test, Y_SCALE)
    noise = (lik.samples, lik.latents)
    plan = Plan(
        s.get("em_iterations", ITERATIONS),
        s["e_steps"],
        schedule(s["e_rate"]),
        s["m_steps"],
        M_RATE,
        learn,
        lbfgs=s.get("optimiser") == "l-bfgs",
        trace_every=s.get("trace_every", 1),
    )
    return Loop(family, data, theta, Draws(data, s["batch_size"], SEED, noise, family.subset), plan)


@functools.cache
def program_of(name: str) -> list[Point]:
    """The second program's trace of a case of the table."""
    return program_run(CASES[name]).run()


def arrays_of(theta: Theta) -> dict[str, Any]:
    """The package's θ by the second program's names."""
    found = {"variance": theta.kernel.variance[0], "lengthscales": theta.kernel.lengthscales[0]}
    found |= theta.likelihood._asdict()
    bases = {"Z": theta.inducing}
    if isinstance(theta.inducing, Decoupled):
        bases = {"gamma": theta.inducing.gamma, "Z": theta.inducing.beta}
    for name, basis in bases.items():
        features = isinstance(basis, Features)
        found[name] = basis.centres if features else basis
        if features:
            found[f"{name}_widths"] = basis.widths
    return found


def difference(found: Any, wanted: Any) -> float:
    """The largest, relative to the largest entry that is wanted."""
    a, b = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if a.shape != b.shape:
        return float("inf")
    unit = float(np.max(np.abs(b)))
    return float(np.max(np.abs(a - b))) / unit if unit else float(np.max(np.abs(a)))


def compare(trainer: Trainer, points: list[Point], tolerance: float = TOLERANCE) -> Trained:
    """Run the package; every number of the trace, and θ at every point, must be the program's."""
    trained, seen = observed(trainer)
    assert trained.status == "ok", trained.message
    assert len(trained.trace) == len(points)
    worst: dict[str, float] = {}
    for point, at, wanted in zip(trained.trace, seen, points, strict=True):
        numbers = {key: value for key, value in point.items() if key != "seconds"}
        assert set(numbers) == set(wanted.numbers)
        theta = arrays_of(at.theta)
        known = {key: value for key, value in wanted.theta.items() if key in theta}
        assert set(wanted.theta) == set(known)
        for key, found, number in (
            *((key, numbers[key], wanted.numbers[key]) for key in numbers),
            *((f"θ.{key}", theta[key], known[key]) for key in known),
        ):
            title = f"{key} at {wanted.numbers['iteration']}"
            worst[title] = difference(found, number)
    wrong = {title: error for title, error in worst.items() if not error <= tolerance}
    assert not wrong, wrong
    last = arrays_of(trained.theta)
    assert all(difference(last[key], points[-1].theta[key]) <= tolerance for key in known)
    return trained
