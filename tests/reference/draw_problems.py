"""Draw the inputs of every problem, and write them as files without answers.

    python tests/reference/draw_problems.py NAME …

A published name keeps its numbers, so a file that exists is left as it is. All numbers are rounded to a
few decimals, so that a reader can type them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PROBLEMS = Path(__file__).parents[2] / "reference" / "svgp_reference" / "problems"


class Design(NamedTuple):
    """Settings of one problem: sizes, hyperparameters, likelihood, and what makes it hard."""

    purpose: str
    seed: int
    M: int = 5
    n: int = 12
    D: int = 2
    kernel: str = "se"
    variance: float = 1.3
    lengthscales: tuple[float, ...] = (0.9,)
    mean_constant: float = 0.0
    jitter: float = 1e-6
    likelihood: str = "gaussian"
    parameters: tuple[tuple[str, float], ...] = (("noise_variance", 0.2),)
    whitened: bool = True
    batch: tuple[int, ...] = ()  # row numbers; all rows if empty
    gamma: float = 0.1
    scale_of_y: float = 1.0
    Z: tuple[float, ...] = ()  # inducing inputs of a problem with one input dimension
    outliers: tuple[tuple[int, float], ...] = ()  # row number and the y that replaces the drawn one


PROBIT: dict[str, Any] = {"likelihood": "bernoulli-probit", "parameters": ()}
POISSON: dict[str, Any] = {"likelihood": "poisson", "parameters": ()}
STUDENT_T: dict[str, Any] = {
    "likelihood": "student-t",
    "parameters": (("scale", 0.6), ("degrees_of_freedom", 4.0)),
}

DESIGNS = {
    "gaussian-se-whitened": Design("The simplest problem: start here.", 1),
    "gaussian-se-unwhitened": Design(
        "The same kind of model with q over u instead of the whitened variables.", 2, whitened=False
    ),
    "gaussian-matern32-ard": Design(
        "A Matérn-3/2 kernel with one lengthscale per dimension.",
        3,
        D=3,
        kernel="matern32",
        lengthscales=(0.8, 1.5, 2.2),
    ),
    "gaussian-matern52": Design(
        "A Matérn-5/2 kernel; one inducing input equals a row of the data, where a square root has no slope.",
        4,
        kernel="matern52",
        lengthscales=(1.1,),
    ),
    "bernoulli-probit": Design(
        "Binary labels with the exact probit p(y = 1 | f) = Φ(f), without squashing.", 5, **PROBIT
    ),
    "poisson-log-link": Design(
        "Counts with mean exp(f), whose expectations are known in closed form.", 6, **POISSON
    ),
    "student-t": Design("Noise with heavy tails: expectations need quadrature.", 7, **STUDENT_T),
    "gaussian-minibatch": Design(
        "A minibatch: the data term is multiplied by n/b, the KL divergence is not.",
        8,
        n=20,
        batch=(1, 4, 5, 11, 16),
    ),
    "gaussian-constant-mean": Design(
        "A prior mean that is not 0, which predictions and natural gradients must both include.",
        9,
        mean_constant=1.75,
    ),
    "gaussian-variance-1e4": Design(
        "A kernel variance of 1e4, beside which a jitter of 1e-6 is small.",
        10,
        M=6,
        D=1,
        variance=1e4,
        lengthscales=(1.6,),
        parameters=(("noise_variance", 25.0),),
        scale_of_y=100.0,
        Z=(-1.8, -1.1, -0.4, 0.3, 1.0, 1.7),
    ),
    "gaussian-near-duplicate-inducing": Design(
        "Two inducing inputs at a distance of 1e-6, with a jitter of 1e-6.",
        11,
        D=1,
        lengthscales=(0.7,),
        Z=(-1.5, -0.5, 0.25, 0.250001, 1.25),
    ),
    "student-t-outliers": Design(
        "Outliers give negative curvature, with which natural gradients must still take valid steps.",
        12,
        D=1,
        outliers=((2, 4.5), (7, -3.0)),
        **STUDENT_T,
    ),
    "bernoulli-one-class": Design("All labels are 1.", 13, **PROBIT),
    "poisson-batch-of-one": Design("A batch of one row, with n/b = 12.", 14, batch=(2,), **POISSON),
    "gaussian-condition-1e10": Design(
        "K(Z, Z) with a condition number of 1e10.",
        15,
        M=6,
        D=1,
        variance=1.0,
        lengthscales=(4.0,),
        jitter=5e-10,
        Z=(-1.0, -0.6, -0.2, 0.2, 0.6, 1.0),
    ),
}


def drawn_targets(design: Design, X: Floats, rng: np.random.Generator) -> Floats:
    """Return y [n] that suits the likelihood, from a sine of the inputs X [n, D]."""
    f = np.sin(1.7 * X.sum(axis=1)) + 0.3 * rng.standard_normal(len(X))
    if design.likelihood == "bernoulli-probit":
        return (f > (-9.0 if "All labels" in design.purpose else 0.0)).astype(np.float64)
    if design.likelihood == "poisson":
        return rng.poisson(np.exp(f)).astype(np.float64)
    y = np.round(design.scale_of_y * f + design.mean_constant, 3)
    for row, value in design.outliers:
        if row < len(y):
            y[row] = value
    return y


def drawn_problem(design: Design) -> dict[str, Any]:
    """Return the `problem` part of a file."""
    rng = np.random.default_rng(design.seed)
    M, n, D = design.M, design.n, design.D
    X = np.round(rng.uniform(-2.0, 2.0, (n, D)), 3)
    X_test = np.round(rng.uniform(-2.2, 2.2, (4, D)), 3)
    y, y_test = drawn_targets(design, X, rng), drawn_targets(design, X_test, rng)
    Z = np.asarray(design.Z)[:, None] if design.Z else np.round(rng.uniform(-1.8, 1.8, (M, D)), 3)
    if design.kernel == "matern52":
        Z[0] = X[0]
    q_mean = np.round(0.6 * rng.standard_normal(M), 3)
    q_factor = np.round(np.tril(0.15 * rng.standard_normal((M, M)), -1), 3)
    q_factor += np.diag(np.round(rng.uniform(0.4, 0.9, M), 3))
    return {
        "kernel": design.kernel,
        "variance": design.variance,
        "lengthscales": list(design.lengthscales),
        "mean_constant": design.mean_constant,
        "jitter": design.jitter,
        "likelihood": design.likelihood,
        "likelihood_parameters": dict(design.parameters),
        "n": n,
        "batch": list(design.batch) or list(range(n)),
        "X": X.tolist(),
        "y": y.tolist(),
        "X_test": X_test.tolist(),
        "y_test": y_test.tolist(),
        "Z": Z.tolist(),
        "whitened": design.whitened,
        "q_mean": q_mean.tolist(),
        "q_factor": q_factor.tolist(),
        "gamma": design.gamma,
    }


def main(names: list[str]) -> None:
    """Write the files of these names, of all if none is given, that do not exist."""
    for name in names or DESIGNS:
        path = PROBLEMS / f"{name}.json"
        if path.exists():
            print(f"{name}: exists, left as it is")
            continue
        info = {"name": name, "purpose": DESIGNS[name].purpose}
        file = {"info": info, "problem": drawn_problem(DESIGNS[name])}
        path.write_text(json.dumps(file, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: written")


if __name__ == "__main__":
    main(sys.argv[1:])
