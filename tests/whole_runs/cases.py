"""The table of runs: what the package is told, and the family of the second program that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from problems import CLASSES, SAMPLES, Floats
from program import likelihoods
from program.coupled import AdamOnCholesky, Diagonal, Natural, Sites
from program.full import Collapsed, SitesOnData
from program.gaussians import Family
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.relaxed import Relaxed
from program.two_bases import Decoupled, TwoParts

Build = Callable[[Kernel, Likelihood, Floats], Family]

TOLERANCE = 1e-9
AT_A_MAXIMUM = 1e-7
"""There the bound is flat, and θ is known to the root of what rounding does to the bound."""

TARGETS = {
    "gaussian": "real",
    "heteroskedastic": "real",
    "student-t": "heavy",
    "bernoulli-probit": "binary",
    "bernoulli-logit": "binary",
    "poisson": "counts",
    "softmax": "classes",
    "robust-max": "classes",
}


def likelihood(name: str, treatment: str) -> Likelihood:
    """One of the second program."""
    made: dict[str, Callable[[], Likelihood]] = {
        "gaussian": likelihoods.Gaussian,
        "heteroskedastic": likelihoods.Heteroskedastic,
        "student-t": lambda: likelihoods.StudentT(treatment),
        "bernoulli-probit": likelihoods.Probit,
        "bernoulli-logit": likelihoods.Logit,
        "poisson": likelihoods.Poisson,
        "softmax": lambda: likelihoods.Softmax(CLASSES, SAMPLES),
        "robust-max": lambda: likelihoods.RobustMax(CLASSES, treatment),
    }
    return made[name]()


@dataclass(frozen=True)
class Case:
    """One run; `settings` are the training's, where they are not the ones of `run_settings`."""

    method: str
    options: Mapping[str, Any]
    build: Build
    settings: Mapping[str, Any] = field(default_factory=dict)
    likelihood: str = "gaussian"
    treatment: str = "damp"
    kernel: str = "matern52"
    ard: bool = True
    tolerance: float = TOLERANCE


MINIBATCH = {"batch_size": 15, "e_steps": 3, "e_rate": 0.4, "m_steps": 2}
FULL = {"batch_size": None, "e_steps": 2, "e_rate": 0.6, "m_steps": 3}
CLIMB = FULL | {"optimiser": "l-bfgs", "m_steps": 4}
ADAM = MINIBATCH | {"e_rate": 0.05}


def natural(held: str) -> Build:
    return lambda kernel, lik, X: Natural(kernel, lik, held)


def cholesky(whiten: bool) -> Build:
    return lambda kernel, lik, X: AdamOnCholesky(kernel, lik, whiten=whiten)


def diagonal(step: str, *, unit: bool = False, held: str = "weights") -> Build:
    return lambda kernel, lik, X: Diagonal(kernel, lik, step=step, unit=unit, held=held)


def relaxed(first_s: float, *, precondition: bool = True) -> Build:
    return lambda kernel, lik, X: Relaxed(kernel, lik, first_s=first_s, precondition=precondition)


def collapsed(*, exact: bool) -> Build:
    return lambda kernel, lik, X: Collapsed(kernel, lik, X, exact=exact)


def two_parts(coupled: str, **how: Any) -> Build:
    """`coupled` is what the M-step holds of a natural gradient's q, or `adam`."""

    def build(kernel: Kernel, lik: Likelihood, X: Floats) -> Family:
        if coupled == "adam":
            return TwoParts(AdamOnCholesky(kernel, lik, whiten=True), **how)
        return TwoParts(Natural(kernel, lik, coupled), **how)

    return build


def decoupled(subset: int, *, adam: bool = True) -> Build:
    return lambda kernel, lik, X: Decoupled(kernel, lik, subset=subset, adam=adam)


TIED = {"tying": "tied-projected"}
UNTIED = {"tying": "untied"}
EXACT_T = {"tolerance": 1e-13}
NATURAL_ADAM = {"coupled": "q-svgp natgrad", "gamma_step": "adam", "gamma_rate": 0.02}
NATURAL_SCALED = {"coupled": "q-svgp natgrad", "gamma_step": "scaled", "gamma_rate": 0.02}
NATURAL_NATURAL = {
    "coupled": "q-svgp natgrad unwhitened",
    "gamma_step": "natural",
    "gamma_rate": 0.02,
}
NATURAL_NEWTON = {"coupled": "q-svgp natgrad", "gamma_step": "newton"}
DUAL_NEWTON = {"coupled": "t-svgp", "gamma_step": "newton"}
ADAM_ADAM = {"coupled": "q-svgp adam", "gamma_step": "adam"}

CASES: dict[str, Case] = {
    # L-BFGS
    "t-svgp tied-projected by l-bfgs": Case("t-svgp", TIED, natural("projected"), CLIMB),
    "t-svgp untied by l-bfgs": Case("t-svgp", UNTIED, Sites, CLIMB, kernel="matern32"),
    "q-svgp by l-bfgs": Case("q-svgp", {}, natural("whitened"), CLIMB, "bernoulli-probit"),
    "softmax by l-bfgs": Case("t-svgp", TIED, natural("projected"), CLIMB, "softmax"),
    "gpr by l-bfgs": Case("gpr", {}, collapsed(exact=True), CLIMB | {"m_steps": 3}),
    "gpr by adam": Case("gpr", {}, collapsed(exact=True), FULL, kernel="se"),
    "sgpr by l-bfgs": Case("sgpr", {}, collapsed(exact=False), CLIMB | {"m_steps": 3}),
    "sgpr by adam": Case("sgpr", {}, collapsed(exact=False), FULL, kernel="matern32"),
    "an early stop": Case(
        "gpr",
        {},
        collapsed(exact=True),
        CLIMB | {"m_steps": 3, "learn": ("likelihood",), "em_iterations": 5},
        tolerance=AT_A_MAXIMUM,
    ),
    # schedules
    "a rising rate": Case(
        "q-svgp",
        {},
        natural("whitened"),
        MINIBATCH | {"e_rate": ("rise", 0.02, 0.7, 2)},
    ),
    "a falling rate": Case(
        "t-svgp", TIED, natural("projected"), MINIBATCH | {"e_rate": ("fall", 0.8, 0.5)}
    ),
    "a falling rate of Adam": Case(
        "q-svgp", {"optimiser": "adam"}, cholesky(True), FULL | {"e_rate": ("fall", 0.1, 0.3)}
    ),
    # several latents
    "softmax full batch": Case("t-svgp", TIED, natural("projected"), FULL, "softmax"),
    "softmax by minibatch": Case("t-svgp", TIED, natural("projected"), MINIBATCH, "softmax"),
    "softmax, sites": Case("t-svgp", UNTIED, Sites, MINIBATCH, "softmax"),
    "softmax by q-svgp": Case("q-svgp", {}, natural("whitened"), MINIBATCH, "softmax", kernel="se"),
    "robust-max full batch": Case("t-svgp", TIED, natural("projected"), FULL, "robust-max"),
    "robust-max by minibatch": Case("q-svgp", {}, natural("whitened"), MINIBATCH, "robust-max"),
    # two bases
    "orth adam": Case("orth", ADAM_ADAM, two_parts("adam", step="adam"), ADAM),
    "orth adam, columns": Case(
        "orth", ADAM_ADAM | {"subset": 4}, two_parts("adam", step="adam", subset=4), ADAM
    ),
    "orth natural, adam": Case(
        "orth", NATURAL_ADAM, two_parts("whitened", step="adam", rate=0.02), MINIBATCH
    ),
    "orth natural, scaled": Case(
        "orth", NATURAL_SCALED, two_parts("whitened", step="scaled", rate=0.02), MINIBATCH
    ),
    "orth natural, natural": Case(
        "orth", NATURAL_NATURAL, two_parts("own", step="natural", rate=0.02), MINIBATCH
    ),
    "orth natural, newton": Case(
        "orth", NATURAL_NEWTON, two_parts("whitened", step="newton"), MINIBATCH, "bernoulli-logit"
    ),
    "orth dual, newton, l-bfgs": Case(
        "orth", DUAL_NEWTON, two_parts("projected", step="newton"), CLIMB
    ),
    "orth dual, newton": Case(
        "orth", DUAL_NEWTON, two_parts("projected", step="newton"), MINIBATCH, "student-t"
    ),
    "hybrid adam": Case("hybrid", ADAM_ADAM, two_parts("adam", step="adam", hybrid=True), ADAM),
    "hybrid adam, columns": Case(
        "hybrid",
        ADAM_ADAM | {"subset": 3},
        two_parts("adam", step="adam", subset=3, hybrid=True),
        ADAM,
    ),
    "hybrid newton": Case(
        "hybrid", NATURAL_NEWTON, two_parts("whitened", step="newton", hybrid=True), MINIBATCH
    ),
    "decoupled adam": Case("decoupled", {}, decoupled(0), ADAM),
    "decoupled adam, columns": Case("decoupled", {"subset": 3}, decoupled(3), ADAM),
    "decoupled columns, full batch": Case(
        "decoupled", {"subset": 3}, decoupled(3), FULL | {"e_rate": 0.05}
    ),
    "decoupled sgd": Case(
        "decoupled", {"optimiser": "sgd"}, decoupled(0, adam=False), MINIBATCH | {"e_rate": 0.001}
    ),
    # diagonal precision
    "diagonal exact": Case("diagonal-precision", {}, diagonal("exact"), MINIBATCH),
    "diagonal exact, S⁻¹m held": Case(
        "diagonal-precision", TIED, diagonal("exact", held="projected"), MINIBATCH
    ),
    "diagonal projected-a": Case(
        "diagonal-precision",
        {"optimiser": "projected-a"},
        diagonal("projected-a"),
        MINIBATCH | {"e_rate": 0.2},
        "bernoulli-logit",
    ),
    "diagonal projected-a, S⁻¹m held": Case(
        "diagonal-precision",
        {"optimiser": "projected-a"} | TIED,
        diagonal("projected-a", held="projected"),
        MINIBATCH | {"e_rate": 0.2},
    ),
    "diagonal projected-b": Case(
        "diagonal-precision",
        {"optimiser": "projected-b", "start": "unit"} | TIED,
        diagonal("projected-b", unit=True, held="projected"),
        MINIBATCH | {"e_rate": 0.2},
    ),
    "diagonal adam": Case(
        "diagonal-precision",
        {"optimiser": "adam", "start": "unit"},
        diagonal("adam", unit=True),
        ADAM,
    ),
    # the same without a factorisation
    "relaxed": Case("r-svgp", EXACT_T | {"initial_s": 0.1}, relaxed(0.1), ADAM),
    "relaxed, by factorisation": Case(
        "r-svgp", {"inverse": "cholesky", "initial_s": 0.2}, relaxed(0.2), ADAM, "poisson"
    ),
    "relaxed, μ itself": Case(
        "r-svgp",
        EXACT_T | {"precondition": False, "initial_s": 0.1, "schedule": "log-linear"},
        relaxed(0.1, precondition=False),
        FULL | {"e_rate": 0.05},
        "bernoulli-logit",
        kernel="se",
    ),
    # full families
    "t-vgp": Case("t-vgp", {}, SitesOnData, FULL),
    "t-vgp, counts": Case(
        "t-vgp", {}, SitesOnData, FULL | {"e_rate": 0.3}, "poisson", kernel="matern32"
    ),
    "t-vgp by minibatch": Case("t-vgp", {}, SitesOnData, MINIBATCH | {"e_rate": 0.2}),
    "q-vgp": Case("q-vgp", {}, natural("whitened"), FULL, kernel="matern32"),
    # coupled families
    "q-svgp unwhitened": Case("q-svgp", {"whiten": False}, natural("own"), MINIBATCH),
    "q-svgp by autodiff": Case(
        "q-svgp", {"gradient": "autodiff"}, natural("whitened"), MINIBATCH, "bernoulli-logit"
    ),
    "q-svgp adam": Case("q-svgp", {"optimiser": "adam"}, cholesky(True), ADAM),
    "q-svgp adam unwhitened": Case(
        "q-svgp", {"optimiser": "adam", "whiten": False}, cholesky(False), ADAM
    ),
    "t-svgp tied": Case("t-svgp", {"tying": "tied"}, natural("tied"), MINIBATCH),
    "t-svgp standard": Case("t-svgp", {"tying": "standard"}, natural("own"), MINIBATCH),
    "t-svgp whitened": Case("t-svgp", {"tying": "whitened"}, natural("whitened"), MINIBATCH),
    "t-svgp untied": Case("t-svgp", UNTIED, Sites, MINIBATCH),
    "t-svgp untied full batch": Case("t-svgp", UNTIED, Sites, FULL, "poisson"),
    # negative β, parts of θ, sparse traces, other kernels
    "student-t, damped": Case(
        "t-svgp", TIED, natural("projected"), MINIBATCH | {"e_rate": 1.0}, "student-t"
    ),
    "student-t, damped, q-svgp": Case(
        "q-svgp", {"whiten": False}, natural("own"), MINIBATCH | {"e_rate": 1.0}, "student-t"
    ),
    "student-t, clipped": Case(
        "t-svgp", TIED, natural("projected"), MINIBATCH, "student-t", "clip"
    ),
    "poisson": Case("q-svgp", {}, natural("whitened"), MINIBATCH | {"e_rate": 0.2}, "poisson"),
    "two latents": Case("t-svgp", TIED, natural("projected"), MINIBATCH, "heteroskedastic"),
    "two latents, q-svgp adam": Case(
        "q-svgp", {"optimiser": "adam"}, cholesky(whiten=True), ADAM, "heteroskedastic"
    ),
    "a sparse trace": Case(
        "t-svgp",
        TIED,
        natural("projected"),
        MINIBATCH | {"trace_every": 2, "em_iterations": 5},
        kernel="se",
        ard=False,
    ),
    "only the likelihood": Case(
        "t-svgp", TIED, natural("projected"), FULL | {"learn": ("likelihood",)}
    ),
    "inputs and kernel": Case(
        "t-svgp",
        TIED,
        natural("projected"),
        MINIBATCH | {"learn": ("inducing", "kernel")},
        kernel="matern32",
        ard=False,
    ),
    "kernel by l-bfgs": Case(
        "t-svgp", UNTIED, Sites, CLIMB | {"learn": ("kernel",)}, kernel="se", ard=False
    ),
    "nothing learned": Case("q-svgp", {}, natural("whitened"), MINIBATCH | {"m_steps": 0}),
}
