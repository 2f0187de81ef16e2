"""First program: compute every answer from its definition, in mpmath with 80 digits.

    python tests/reference/make_mpmath.py NAME …            add the answers to files that have none
    python tests/reference/make_mpmath.py --check NAME …    compute again, and compare 30 digits

Without a name, all files are meant. The program reads the `problem` part of a file, and imports no package
of this repository.

* Algebra is dense and in the coordinates of u: K⁻¹ is an inverse, A = K⁻¹ K(Z, X), and q(u) = N(m, S).
* Integrals without a closed form use the trapezoidal rule in f = μ + √v t. Its error falls exponentially in
  1/step if the integrand is analytic, so half of the step is a check of 35 digits.
* Derivatives of μ_i, v_i and KL are central differences with step 1e-28. The derivatives of
  E[log p(y_i | f)] in μ_i and v_i are E[∂log p/∂f] and ½ E[∂²log p/∂f²].
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
from mpmath import mp, mpf

PROBLEMS = Path(__file__).parents[2] / "reference" / "svgp_reference" / "problems"
WORKING_DIGITS, QUADRATURE_DIGITS, PRINTED_DIGITS = 80, 42, 30
STEPS = 50
REACH = 12.6  # exp(−12.6²/2) = 3e-35
DIFFERENCE = mpf(10) ** -28
"""Step of central differences: their error is about step² = 1e-56 times the third derivative."""

mp.dps = WORKING_DIGITS

Number = Any  # mpmath has no types
Vector = list[Number]
Matrix = list[Vector]


# --- dense algebra ------------------------------------------------------------------------------


def identity(n: int) -> Matrix:
    return [[mpf(int(i == j)) for j in range(n)] for i in range(n)]


def transpose(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def dot(a: Vector, b: Vector) -> Number:
    return mpmath.fdot(a, b)


def matvec(a: Matrix, x: Vector) -> Vector:
    return [dot(row, x) for row in a]


def matmul(a: Matrix, b: Matrix) -> Matrix:
    columns = transpose(b)
    return [[dot(row, column) for column in columns] for row in a]


def combine(x: Number, a: Matrix, y: Number, b: Matrix) -> Matrix:
    """Return xa + yb."""
    return [[x * p + y * q for p, q in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)]


def inverse_and_determinant(a: Matrix) -> tuple[Matrix, Number]:
    """Return a⁻¹ and |a| of a positive definite matrix, by Gauss–Jordan elimination."""
    n, determinant = len(a), mpf(1)
    rows = [row[:] + unit for row, unit in zip(a, identity(n), strict=True)]
    for k in range(n):
        pivot = rows[k][k]
        if not pivot > 0:
            raise ArithmeticError("the matrix is not positive definite")
        determinant *= pivot
        rows[k] = [x / pivot for x in rows[k]]
        for i in range(n):
            if i != k:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows], determinant


def cholesky(a: Matrix) -> Matrix:
    n = len(a)
    factor = [[mpf(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = a[i][j] - dot(factor[i][:j], factor[j][:j])
            factor[i][j] = mpmath.sqrt(rest) if i == j else rest / factor[j][j]
    return factor


# --- model ----------------------------------------------------------------------------------------


class Parameters(NamedTuple):
    """Everything in which the bound is differentiated, but the likelihood's parameter."""

    variance: Number
    lengthscales: Vector
    mean_constant: Number
    Z: Matrix
    q_mean: Vector
    q_factor: Matrix


class Gaussian(NamedTuple):
    """q(u) = N(mean, covariance), u without the constant mean."""

    mean: Vector
    covariance: Matrix


def exact(x: Any) -> Any:
    """Return a nested list of float64 numbers as the exact numbers that they are."""
    return [exact(entry) for entry in x] if isinstance(x, list) else mpf(x)


def kernel(name: str, p: Parameters, a: Vector, b: Vector) -> Number:
    scales = p.lengthscales * len(a) if len(p.lengthscales) == 1 else p.lengthscales
    d2 = sum((((x - y) / s) ** 2 for x, y, s in zip(a, b, scales, strict=True)), mpf(0))
    if name == "se":
        return p.variance * mpmath.exp(-d2 / 2)
    r = mpmath.sqrt({"matern32": 3, "matern52": 5}[name] * d2)
    polynomial = 1 + r if name == "matern32" else 1 + r + r * r / 3
    return p.variance * polynomial * mpmath.exp(-r)


def gram(problem: dict[str, Any], p: Parameters) -> Matrix:
    """Return K(Z, Z) with its jitter."""
    plain = [[kernel(problem["kernel"], p, a, b) for b in p.Z] for a in p.Z]
    return combine(mpf(1), plain, mpf(problem["jitter"]), identity(len(p.Z)))


def q_of_u(problem: dict[str, Any], p: Parameters, K: Matrix) -> Gaussian:
    """Return q(u); whitened, u = Lv with q(v) = N(q_mean, q_factor q_factorᵀ)."""
    if not problem["whitened"]:
        return Gaussian(p.q_mean, matmul(p.q_factor, transpose(p.q_factor)))
    L = cholesky(K)
    factor = matmul(L, p.q_factor)
    return Gaussian(matvec(L, p.q_mean), matmul(factor, transpose(factor)))


def projection(problem: dict[str, Any], p: Parameters, K_inverse: Matrix, X: Matrix) -> Matrix:
    """Return a_i = K⁻¹ k(Z, x_i), one row for each row of X."""
    return [matvec(K_inverse, [kernel(problem["kernel"], p, z, x) for z in p.Z]) for x in X]


def marginals(p: Parameters, K: Matrix, q: Gaussian, rows: Matrix) -> tuple[Vector, Vector]:
    """Return μ_i = c + a_iᵀm and v_i = k(x_i, x_i) − a_iᵀ(K − S)a_i."""
    excess = combine(mpf(1), K, mpf(-1), q.covariance)
    mu = [p.mean_constant + dot(a, q.mean) for a in rows]
    return mu, [p.variance - dot(a, matvec(excess, a)) for a in rows]


def kl(K_inverse: Matrix, K_determinant: Number, q: Gaussian) -> Number:
    """Return KL[q(u) ‖ N(0, K)] = ½(tr K⁻¹S + mᵀK⁻¹m − M + log|K| − log|S|)."""
    trace = sum((dot(a, b) for a, b in zip(K_inverse, q.covariance, strict=True)), mpf(0))
    quadratic = dot(q.mean, matvec(K_inverse, q.mean))
    _, S_determinant = inverse_and_determinant(q.covariance)
    logs = mpmath.log(K_determinant / S_determinant)
    return (trace + quadratic - len(q.mean) + logs) / 2


# --- likelihoods ----------------------------------------------------------------------------------


class Slopes(NamedTuple):
    """log p(y | f) and its derivatives: first and second in f, first in the likelihood's parameter."""

    value: Number
    first: Number
    second: Number
    parameter: Number


def log_density(name: str, values: dict[str, Number], y: Number, f: Number) -> Slopes:
    if name == "gaussian":
        s2, error = values["noise_variance"], y - f
        value = -(mpmath.log(2 * mp.pi * s2) + error**2 / s2) / 2
        return Slopes(value, error / s2, -1 / s2, (error**2 / s2 - 1) / (2 * s2))
    if name == "bernoulli-probit":
        sign = 2 * y - 1
        p = mpmath.ncdf(sign * f)
        ratio = mpmath.npdf(f) / p
        return Slopes(mpmath.log(p), sign * ratio, -ratio * (sign * f + ratio), mpf(0))
    if name == "poisson":
        rate = mpmath.exp(f)
        return Slopes(y * f - rate - mpmath.loggamma(y + 1), y - rate, -rate, mpf(0))
    scale, df, error = values["scale"], values["degrees_of_freedom"], y - f
    spread = df * scale**2
    total = spread + error**2
    value = student_t_constant(scale, df, mp.dps) - (df + 1) / 2 * mpmath.log(total / spread)
    second = (df + 1) * (error**2 - spread) / total**2
    # −(df + 1)/2 · ∂/∂scale log(1 + e²/(df·scale²)) = (df + 1) e²/(scale·total)
    parameter = -1 / scale + (df + 1) * error**2 / (scale * total)
    return Slopes(value, (df + 1) * error / total, second, parameter)


@functools.cache
def student_t_constant(scale: Number, df: Number, digits: int) -> Number:
    """Return log p(y | f) at y = f, with the working precision `digits`."""
    gammas = mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2)
    return gammas - mpmath.log(df * mp.pi) / 2 - mpmath.log(scale)


@functools.cache
def trapezoid(quarters: int, digits: int) -> list[tuple[Number, Number]]:
    """Return nodes t and weights of integrals under N(0, 1), with step 2^(−quarters/4)."""
    step = mpf(2) ** (-mpf(quarters) / 4)
    count = int(REACH / step) + 1
    return [(j * step, step * mpmath.npdf(j * step)) for j in range(-count, count + 1)]


def distance_to_singularity(name: str, values: dict[str, Number]) -> Number:
    """Return how far from the real line log p(y | f), or p for Poisson, is analytic or bounded in f."""
    if name == "student-t":
        return values["scale"] * mpmath.sqrt(values["degrees_of_freedom"])
    return (
        mpf("2.8") if name == "bernoulli-probit" else mp.pi / 2
    )  # the first zero of Φ; exp(−exp(f))


class Likelihood:
    """Expectations of one likelihood under N(μ, v)."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.name = problem["likelihood"]
        self.values = {k: mpf(v) for k, v in problem["likelihood_parameters"].items()}

    def nodes(self, v: Number, refinement: int = 0) -> list[tuple[Number, Number]]:
        """Return nodes t and weights; the error is at most exp(−2π distance/(√v step)) = exp(−86)."""
        distance = distance_to_singularity(self.name, self.values) / mpmath.sqrt(v)
        largest = min(2 * mp.pi * distance / 86, mpf("0.4"))
        return trapezoid(int(mpmath.ceil(-4 * mpmath.log(largest, 2))) + 4 * refinement, mp.dps)

    def expectations(self, y: Number, mu: Number, v: Number, refinement: int = 0) -> Slopes:
        """Return E of log p(y | f) and of its derivatives."""
        if self.name == "gaussian":
            at_mean = log_density("gaussian", self.values, y, mu)
            s2 = self.values["noise_variance"]
            return at_mean._replace(
                value=at_mean.value - v / (2 * s2), parameter=at_mean.parameter + v / (2 * s2**2)
            )
        if self.name == "poisson":
            rate = mpmath.exp(mu + v / 2)
            return Slopes(y * mu - rate - mpmath.loggamma(y + 1), y - rate, -rate, mpf(0))
        with mp.workdps(QUADRATURE_DIGITS):
            sd = mpmath.sqrt(v)
            terms = [
                [w * x for x in log_density(self.name, self.values, y, mu + sd * t)]
                for t, w in self.nodes(v, refinement)
            ]
            return Slopes(*(mpmath.fsum(column) for column in zip(*terms, strict=True)))

    def log_predictive_density(
        self, y: Number, mu: Number, v: Number, refinement: int = 0
    ) -> Number:
        """Return log E p(y | f)."""
        if self.name == "gaussian":
            total = v + self.values["noise_variance"]
            return -(mpmath.log(2 * mp.pi * total) + (y - mu) ** 2 / total) / 2
        if self.name == "bernoulli-probit":
            return mpmath.log(mpmath.ncdf((2 * y - 1) * mu / mpmath.sqrt(1 + v)))
        with mp.workdps(QUADRATURE_DIGITS):
            sd = mpmath.sqrt(v)
            return mpmath.log(
                mpmath.fsum(
                    w * mpmath.exp(log_density(self.name, self.values, y, mu + sd * t).value)
                    for t, w in self.nodes(v, refinement)
                )
            )


# --- answers --------------------------------------------------------------------------------------


class Setting:
    """One problem with its exact numbers."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.problem, self.likelihood = problem, Likelihood(problem)
        self.parameters = Parameters(*(exact(problem[name]) for name in Parameters._fields))
        self.X = [exact(problem["X"][i]) for i in problem["batch"]]
        self.y = [mpf(problem["y"][i]) for i in problem["batch"]]
        self.X_test, self.y_test = exact(problem["X_test"]), exact(problem["y_test"])
        self.scale = mpf(problem["n"]) / len(self.y)

    def moments(self, p: Parameters) -> tuple[Vector, Vector, Number]:
        """Return μ and v at the batch, and KL."""
        K = gram(self.problem, p)
        K_inverse, determinant = inverse_and_determinant(K)
        q = q_of_u(self.problem, p, K)
        mu, v = marginals(p, K, q, projection(self.problem, p, K_inverse, self.X))
        return mu, v, kl(K_inverse, determinant, q)

    def expectations(self, mu: Vector, v: Vector) -> list[Slopes]:
        """Return the expectations of every row of the batch."""
        rows = zip(self.y, mu, v, strict=True)
        return [self.likelihood.expectations(*row) for row in rows]

    def check_quadrature(self, mu: Vector, v: Vector) -> None:
        """Raise `ArithmeticError` if half of the step changes the 33rd digit of a row."""
        for row in zip(self.y, mu, v, strict=True):
            coarse, fine = (self.likelihood.expectations(*row, refinement=r) for r in (0, 1))
            if any(
                abs(a - b) > mpf(10) ** -33 * (1 + abs(b))
                for a, b in zip(coarse, fine, strict=True)
            ):
                raise ArithmeticError(f"quadrature: {coarse} and {fine} differ")

    def values(self) -> dict[str, Any]:
        """Return the bound and its parts, and the predictions."""
        p = self.parameters
        mu, v, divergence = self.moments(p)
        self.check_quadrature(mu, v)
        V = [row.value for row in self.expectations(mu, v)]
        K = gram(self.problem, p)
        K_inverse, _ = inverse_and_determinant(K)
        rows = projection(self.problem, p, K_inverse, self.X_test)
        mean, variance = marginals(p, K, q_of_u(self.problem, p, K), rows)
        test = list(zip(self.y_test, mean, variance, strict=True))
        densities = [self.likelihood.log_predictive_density(*row) for row in test]
        for row, density in zip(test, densities, strict=True):
            if (
                abs(self.likelihood.log_predictive_density(*row, refinement=1) - density)
                > mpf(10) ** -33
            ):
                raise ArithmeticError(f"quadrature of the predictive density: {density}")
        return {
            "bound": self.scale * mpmath.fsum(V) - divergence,
            "kl": divergence,
            "expected_log_likelihood": V,
            "predict_mean": mean,
            "predict_variance": variance,
            "predict_log_density": densities,
        }

    def gradients(self) -> dict[str, Any]:
        """Return the gradient of the bound in every parameter."""
        p = self.parameters
        slopes = self.expectations(*self.moments(p)[:2])

        def slope(moved: Callable[[Number], Parameters]) -> Number:
            """Return the derivative of the bound along a change of the parameters."""
            mu1, v1, kl1 = self.moments(moved(DIFFERENCE))
            mu0, v0, kl0 = self.moments(moved(-DIFFERENCE))
            data = mpmath.fsum(
                row.first * (a1 - a0) + row.second * (b1 - b0) / 2
                for row, a1, a0, b1, b0 in zip(slopes, mu1, mu0, v1, v0, strict=True)
            )
            return (self.scale * data - (kl1 - kl0)) / (2 * DIFFERENCE)

        def in_matrix(name: str, entries: Iterable[tuple[int, int]]) -> Matrix:
            matrix = getattr(p, name)
            gradient = [[mpf(0)] * len(row) for row in matrix]
            for i, j in entries:

                def moved(h: Number, i: int = i, j: int = j) -> Parameters:
                    changed = [row[:] for row in matrix]
                    changed[i][j] += h
                    return p._replace(**{name: changed})

                gradient[i][j] = slope(moved)
            return gradient

        def in_vector(name: str) -> Vector:
            vector = getattr(p, name)

            def along(i: int) -> Callable[[Number], Parameters]:
                return lambda h: p._replace(
                    **{name: [x + h * int(i == j) for j, x in enumerate(vector)]}
                )

            return [slope(along(i)) for i in range(len(vector))]

        M, D = len(p.Z), len(p.Z[0])
        gradients: dict[str, Any] = {
            "variance": slope(lambda h: p._replace(variance=p.variance + h)),
            "lengthscales": in_vector("lengthscales"),
            "mean_constant": slope(lambda h: p._replace(mean_constant=p.mean_constant + h)),
            "Z": in_matrix("Z", [(i, j) for i in range(M) for j in range(D)]),
            "q_mean": in_vector("q_mean"),
            "q_factor": in_matrix("q_factor", [(i, j) for i in range(M) for j in range(i + 1)]),
        }
        for name in ("noise_variance", "scale"):
            if name in self.problem["likelihood_parameters"]:
                gradients[name] = self.scale * mpmath.fsum(row.parameter for row in slopes)
        return {f"gradient_{name}": value for name, value in gradients.items()}

    def steps(self) -> dict[str, Any]:
        """Return the bound after each of 50 natural-gradient steps, and the smallest −E[∂²log p/∂f²].

        With β_i = −E[∂²log p(y_i | f)/∂f²] and α_i = E[∂log p(y_i | f)/∂f], a step of size γ is
        S⁻¹ ← (1 − γ)S⁻¹ + γ(K⁻¹ + s Σ β_i a_i a_iᵀ) and S⁻¹m ← (1 − γ)S⁻¹m + γ s Σ (α_i + β_i a_iᵀm) a_i.
        """
        p, gamma = self.parameters, mpf(self.problem["gamma"])
        K = gram(self.problem, p)
        K_inverse, determinant = inverse_and_determinant(K)
        q, rows = q_of_u(self.problem, p, K), projection(self.problem, p, K_inverse, self.X)
        precision, _ = inverse_and_determinant(q.covariance)
        shift = matvec(precision, q.mean)
        mu, v = marginals(p, K, q, rows)
        slopes, bounds, least = self.expectations(mu, v), [], mpf("inf")
        for _ in range(STEPS):
            betas = [-row.second for row in slopes]
            least = min(least, *betas)
            weights = [
                row.first + beta * (m - p.mean_constant)
                for row, beta, m in zip(slopes, betas, mu, strict=True)
            ]
            size = gamma * self.scale
            shift = [
                (1 - gamma) * x + size * dot(weights, column)
                for x, column in zip(shift, transpose(rows), strict=True)
            ]
            data = matmul(
                transpose(rows), [[b * x for x in a] for b, a in zip(betas, rows, strict=True)]
            )
            target = combine(mpf(1), K_inverse, self.scale, data)
            precision = combine(1 - gamma, precision, gamma, target)
            covariance, _ = inverse_and_determinant(precision)
            q = Gaussian(matvec(covariance, shift), covariance)
            mu, v = marginals(p, K, q, rows)
            slopes = self.expectations(mu, v)
            V = mpmath.fsum(row.value for row in slopes)
            bounds.append(self.scale * V - kl(K_inverse, determinant, q))
        return {"steps": bounds, "smallest_beta": least}

    def optimum(self) -> Number:
        """Return the largest bound over q(u) with Gaussian noise, from Titsias's collapsed bound.

        With τ = σ²/s and Q = K(X, Z)K⁻¹K(Z, X) it is −½sb log 2πσ² + ½b log 2πτ + log N(y; c, Q + τI)
        − s Σ(k(x_i, x_i) − Q_ii)/(2σ²).
        """
        p, s2 = self.parameters, self.likelihood.values["noise_variance"]
        K = gram(self.problem, p)
        rows = projection(self.problem, p, inverse_and_determinant(K)[0], self.X)
        Q = matmul(matmul(rows, K), transpose(rows))
        b, tau = len(rows), s2 / self.scale
        precision, determinant = inverse_and_determinant(combine(mpf(1), Q, tau, identity(b)))
        error = [y - p.mean_constant for y in self.y]
        density = -(dot(error, matvec(precision, error)) + mpmath.log(determinant)) / 2
        density -= b * mpmath.log(2 * mp.pi) / 2
        constants = b * mpmath.log(2 * mp.pi * tau) / 2
        constants -= self.scale * b * mpmath.log(2 * mp.pi * s2) / 2
        residual = mpmath.fsum(p.variance - Q[i][i] for i in range(b))
        return constants + density - self.scale * residual / (2 * s2)

    def condition_number(self) -> Number:
        """Return the condition number of K(Z, Z) with its jitter."""
        eigenvalues = mpmath.eigsy(
            mpmath.matrix(gram(self.problem, self.parameters)), eigvals_only=True
        )
        return max(eigenvalues) / min(eigenvalues)


def answers(problem: dict[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the answers, and figures about the problem that are no answers."""
    setting = Setting(problem)
    found = setting.values() | setting.gradients() | setting.steps()
    figures = {
        "condition_number": float(f"{float(setting.condition_number()):.3g}"),
        "smallest_beta": float(f"{float(found.pop('smallest_beta')):.3g}"),
    }
    if problem["likelihood"] == "gaussian":
        found["optimum"] = setting.optimum()
    return found, figures


def printed(x: Any) -> Any:
    """Return a nested list of numbers as strings of 30 digits."""
    return (
        [printed(entry) for entry in x] if isinstance(x, list) else mpmath.nstr(x, PRINTED_DIGITS)
    )


def nearest(x: Any) -> Any:
    """Return a nested list of numbers as the nearest float64."""
    return [nearest(entry) for entry in x] if isinstance(x, list) else float(x)


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [x for x in arguments if x != "--check"]
    wrong = 0
    for name in names or sorted(path.stem for path in PROBLEMS.glob("*.json")):
        path = PROBLEMS / f"{name}.json"
        file = json.loads(path.read_text(encoding="utf-8"))
        if "answers" in file and not check:
            print(f"{name}: has answers, left as it is", flush=True)
            continue
        found, figures = answers(file["problem"])
        made = {k: {"float64": nearest(x), "digits": printed(x)} for k, x in found.items()}
        if check:
            different = sorted(
                k for k in made | file["answers"] if made.get(k) != file["answers"].get(k)
            )
            wrong += len(different)
            print(
                f"{name}: {'differs in ' + ', '.join(different) if different else 'the same'}",
                flush=True,
            )
            continue
        file["info"] |= figures
        file["answers"] = made
        path.write_text(json.dumps(file, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {figures}, bound {made['bound']['float64']}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
