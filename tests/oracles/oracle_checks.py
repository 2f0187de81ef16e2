"""What is compared for each kind of reference file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from oracle_files import Oracle, OracleError, numbers
from oracle_problem import (
    DENSE_NODES,
    SERVED,
    Problem,
    build_likelihood,
    likelihood_word,
    mean_cholesky_state,
    oracle_model,
    problem,
    q_svgp,
    theta_of,
)

from svgpbench.bases import Decoupled
from svgpbench.gaussian import matvec
from svgpbench.kernels import KERNELS, KernelParameters, kernel
from svgpbench.likelihoods import GaussianLikelihood, GaussianParameters, NoParameters
from svgpbench.methods import Method, elbo
from svgpbench.methods.decoupled import DecoupledState, DecoupledSVGP, MeanPrecision
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.hybrid import HybridSVGP
from svgpbench.methods.mean_covariance import MeanCholesky, QState
from svgpbench.methods.orthogonal import OrthogonalSVGP, TwoPartState
from svgpbench.methods.tying import DualState, Sites
from svgpbench.model import Model, Theta
from svgpbench.ops import Array, Ops, Tree
from svgpbench.steps import factor_at, prior_at

Check = Callable[[Ops, Oracle], None]

TOLERANCE = 1e-11
"""Relative to the largest entry. The files are printed to 17 digits and every backend is within 3e-14
of them, trajectories included; the rest is room for other BLAS libraries and processors."""


def agree(actual: npt.ArrayLike, expected: npt.ArrayLike, what: str) -> None:
    """Compare with the largest expected entry as the unit."""
    a, e = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert a.shape == e.shape, f"{what}: shape {a.shape}, expected {e.shape}"
    error = float(np.max(np.abs(a - e)) / np.max(np.abs(e)))
    assert error <= TOLERANCE, f"{what}: relative error {error:.2e} above {TOLERANCE:.0e}"


# --- kernels ---------------------------------------------------------------------------------------


def check_kernel(ops: Ops, oracle: Oracle) -> None:
    """Blocks as GPflow has them, and the prior's K(Z, Z) with the jitter that they lack."""
    model, theta = oracle_model(oracle), theta_of(ops, oracle)
    X = ops.asarray(oracle.number("inputs", "X"))
    Kzz = oracle.number("expected", "Kzz")
    k, p, Z = model.kernel, theta.kernel, theta.inducing
    agree(ops.to_numpy(k.cross(ops, p, Z, Z))[0], Kzz, "Kzz")
    agree(ops.to_numpy(k.cross(ops, p, Z, X))[0], oracle.number("expected", "Kzx"), "Kzx")
    agree(ops.to_numpy(k.diagonal(ops, p, X))[0], oracle.number("expected", "Kdiag"), "Kdiag")
    jittered = Kzz + oracle.jitter * np.eye(len(Kzz))
    agree(ops.to_numpy(model.covariance(ops, theta).square(Z))[0], jittered, "Kzz + jitter")


# --- SVGP at a given q -----------------------------------------------------------------------------


def _svgp(ops: Ops, oracle: Oracle) -> tuple[Problem, Method, QState]:
    whiten = oracle.inputs.get("whiten", oracle.name.endswith("_white.json"))
    chol = oracle.number("inputs", "q_sqrt")
    if np.any(np.triu(chol, 1)):
        raise OracleError(f"{oracle.name}: inputs.q_sqrt is not lower triangular")
    state = mean_cholesky_state(ops, oracle.number("inputs", "q_mu"), chol)
    return problem(ops, oracle), q_svgp(whiten=bool(whiten)), state


def check_svgp_values(ops: Ops, oracle: Oracle) -> None:
    x, method, state = _svgp(ops, oracle)
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(method, state), expected("elbo"), "elbo")
    q = method.factorise(ops, x.prior, state)
    agree(ops.to_numpy(method.kl(ops, x.f, q)), expected("kl"), "kl")
    mean, var = x.marginals(method, state)
    agree(mean, expected("mean"), "mean")
    agree(var, expected("var"), "var")
    mu, v = method.marginals(ops, x.f, q)
    V = ops.to_numpy(x.likelihood.variational_expectations(ops, x.y, mu, v))
    agree(V, expected("variational_expectations"), "variational_expectations")


def check_svgp_minibatch(ops: Ops, oracle: Oracle) -> None:
    """The first 10 rows with scale n/10."""
    _, method, state = _svgp(ops, oracle)
    first = problem(ops, oracle, rows=10)
    scale = len(oracle.number("inputs", "y")) / 10
    agree(
        first.elbo(method, state, scale),
        oracle.number("expected", "elbo_first10_scaled"),
        "elbo_first10_scaled",
    )


def check_svgp_gradients(ops: Ops, oracle: Oracle) -> None:
    """With respect to constrained variance, lengthscales, Z and the mean of q."""
    x, method, state = _svgp(ops, oracle)
    one = x.scalar(1.0)

    def bound(tree: Tree) -> Array:
        kernel_parameters, Z, mean = tree
        theta = x.theta._replace(kernel=kernel_parameters, inducing=Z)
        f = factor_at(ops, x.model, method, theta, prior_at(ops, x.model, method, theta), x.X)
        q = QState(MeanCholesky(mean, state.q.chol), ())
        return elbo(ops, method, f, x.model.conditional(theta), x.y, q, one)

    gradient = ops.jit(ops.value_and_grad(bound))
    _, (g_kernel, g_Z, g_mean) = gradient((x.theta.kernel, x.theta.inducing, state.q.mean))
    expected = functools.partial(oracle.number, "expected")
    for what, got in (
        ("grad_variance", ops.to_numpy(g_kernel.variance)[0]),
        ("grad_lengthscales", ops.to_numpy(g_kernel.lengthscales)[0]),
        ("grad_Z", ops.to_numpy(g_Z)),
        ("grad_q_mu", ops.to_numpy(g_mean)[0]),
    ):
        agree(got, expected(what), what)


def check_svgp_dual(ops: Ops, oracle: Oracle) -> None:
    """The same q in t-SVGP's parameters has the same bound, KL and predictions."""
    x, method, state = _svgp(ops, oracle)
    mean, cov = x.whitened(method, state)
    precision = np.linalg.inv(cov)
    dual = DualState(
        ops.asarray((precision @ mean)[None]),
        ops.asarray((precision - np.eye(len(mean)))[None]),
        (),
    )
    t_svgp = DualSVGP()
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(t_svgp, dual), expected("elbo"), "elbo")
    kl = t_svgp.kl(ops, x.f, t_svgp.factorise(ops, x.prior, dual))
    agree(ops.to_numpy(kl), expected("kl"), "kl")
    got = x.marginals(t_svgp, dual)
    agree(got[0], expected("mean"), "mean")
    agree(got[1], expected("var"), "var")


# --- natural gradients -----------------------------------------------------------------------------


def check_natgrad(method: Method, ops: Ops, oracle: Oracle) -> None:
    """The bound after every step, and the last q and its predictions."""
    x = problem(ops, oracle)
    expected = functools.partial(oracle.number, "expected")
    trace = expected("elbo_trace")
    step, rate, state = x.stepper(method), x.scalar(float(oracle.number("inputs", "gamma"))), None
    bounds = []
    for _ in trace:
        state = x.start(method) if state is None else step(state, rate)
        bounds.append(x.elbo(method, state))
    agree(bounds, trace, "elbo_trace")
    mean, cov = x.whitened(method, state)
    agree(mean, expected("whitened_q_mu"), "whitened_q_mu")
    agree(cov, expected("whitened_q_cov"), "whitened_q_cov")
    mu, var = x.marginals(method, state)
    agree(mu, expected("mean"), "mean")
    agree(var, expected("var"), "var")


def check_sgpr(method: Method, ops: Ops, oracle: Oracle) -> None:
    """One natural-gradient step of rate 1 from the prior gives Titsias's optimal q and bound.

    The data come twice with scale ½, which changes nothing but tells whether the scale is applied.
    """
    x = problem(ops, oracle, copies=2)
    state = x.stepper(method, 0.5)(x.start(method), x.scalar(1.0))
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(method, state, 0.5), expected("bound"), "bound")
    mu, var = x.marginals(method, state)
    agree(mu, expected("mean"), "mean")
    agree(var, expected("var"), "var")
    mean, cov = x.posterior(method, state)
    agree(mean, expected("q_mean"), "q_mean")
    agree(cov, expected("q_cov"), "q_cov")


# --- M-step objectives -----------------------------------------------------------------------------


def _from_sites(x: Problem, oracle: Oracle, *, keep: bool) -> DualState:
    sites = Sites(
        x.ops.asarray(oracle.number("expected", "site_lambda1")[None]),
        x.ops.asarray(oracle.number("expected", "site_beta")[None]),
    )
    C = (x.f.W * sites.beta[..., None, :]) @ x.ops.matrix_transpose(x.f.W)
    return DualState(matvec(x.f.W, sites.lambda1), C, sites if keep else ())


def check_e_step_sites(ops: Ops, oracle: Oracle) -> None:
    """E-steps of rate ½ from the prior reach the file's sites, and their sums."""
    x, method = problem(ops, oracle), DualSVGP(tying="untied")

    def run(state: Tree, rate: Array) -> Tree:
        one = ops.zeros(()) + 1.0

        def step(s: Tree, _: Tree) -> Tree:
            return method.e_step(ops, x.f, x.likelihood, x.y, x.index, s, rate, one)

        return ops.scan(step, state, (), length=300)

    state = ops.jit(run)(x.start(method), x.scalar(0.5))
    agree(
        ops.to_numpy(state.sites.lambda1)[0],
        oracle.number("expected", "site_lambda1"),
        "site_lambda1",
    )
    agree(ops.to_numpy(state.sites.beta)[0], oracle.number("expected", "site_beta"), "site_beta")
    wanted = _from_sites(x, oracle, keep=True)
    agree(ops.to_numpy(state.c), ops.to_numpy(wanted.c), "c")
    agree(ops.to_numpy(state.C), ops.to_numpy(wanted.C), "C")


def _objectives(x: Problem, method: Method, state: Tree, oracle: Oracle, key: str) -> None:
    """The bound at every listed θ, q moving as the method says from the file's θ."""
    ops = x.ops
    held = method.hold(ops, x.prior, x.likelihood, state)
    one = x.scalar(1.0)

    def objective(kernel_parameters: Tree) -> Array:
        theta = x.theta._replace(kernel=kernel_parameters)
        f = factor_at(ops, x.model, method, theta, prior_at(ops, x.model, method, theta), x.X)
        likelihood = x.model.conditional(theta)
        tied = method.tie(ops, f, likelihood, held)
        return elbo(ops, method, f, likelihood, x.y, tied, one)

    compiled = ops.jit(objective)
    rows: list[Mapping[str, object]] = oracle.expected["objectives"]
    for i, row in enumerate(rows):
        where = f"{oracle.name}: objectives[{i}]"
        changes = {k: numbers(row, k, where) for k in ("variance", "lengthscales")}
        value = compiled(theta_of(ops, oracle, **changes).kernel)
        what = f"{key} at variance {row['variance']}, lengthscales {row['lengthscales']}"
        agree(ops.to_numpy(value), numbers(row, key, where), what)


def check_m_step_dual(tying: str, ops: Ops, oracle: Oracle) -> None:
    x, method = problem(ops, oracle), DualSVGP(tying=tying)
    state = _from_sites(x, oracle, keep=tying == "untied")
    _objectives(x, method, state, oracle, tying.replace("-", "_"))


def check_m_step_mean_cholesky(whiten: bool, ops: Ops, oracle: Oracle) -> None:
    """Holding (m, S) is the standard objective, holding the whitened (m_v, S_v) the whitened one."""
    x, dual = problem(ops, oracle), DualSVGP()
    read = x.whitened if whiten else x.posterior
    mean, cov = read(dual, _from_sites(x, oracle, keep=False))
    state = mean_cholesky_state(ops, mean, np.linalg.cholesky(cov))
    _objectives(x, q_svgp(whiten=whiten), state, oracle, "whitened" if whiten else "standard")


# --- decoupled bases -------------------------------------------------------------------------------

UNWHITENED = "q-svgp natgrad unwhitened"
DENSE_JITTER = 1e-6
"""The file's KLs have 1e-10 added to both dense covariances, which moves them by so much."""


def check_decoupled(ops: Ops, oracle: Oracle) -> None:
    """DECOUPLED: KL and marginals at the test inputs."""
    given = functools.partial(oracle.number, "inputs")
    q = MeanPrecision(ops.asarray(given("a")[None]), ops.asarray(given("B_cholesky")[None]))
    _decoupled(ops, oracle, "decoupled", DecoupledSVGP(), DecoupledState(q, ()))


def check_two_part(key: str, method: Method, ops: Ops, oracle: Oracle) -> None:
    """ORTH and HYBRID: KL and marginals at the test inputs."""
    given = functools.partial(oracle.number, "inputs")
    q = mean_cholesky_state(ops, given("m_beta"), given("S_cholesky"))
    _decoupled(ops, oracle, key, method, TwoPartState(q, ops.asarray(given("a")[None]), ()))


def _decoupled(ops: Ops, oracle: Oracle, key: str, method: Method, state: Tree) -> None:
    given = functools.partial(oracle.number, "inputs")
    bases = Decoupled(ops.asarray(given("gamma_or_alpha")), ops.asarray(given("beta")))
    parameters = KernelParameters(
        ops.asarray(given("variance").reshape(1)), ops.asarray(given("lengthscales")[None])
    )
    model = Model(kernel(oracle.word("kernel", list(KERNELS))), GaussianLikelihood(), oracle.jitter)
    theta = Theta(parameters, NoParameters(), bases)
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, ops.asarray(given("Xtest")))
    q = method.factorise(ops, f, state)
    mean, var = method.marginals(ops, f, q)
    expected, where = oracle.expected[key], f"{oracle.name}: expected.{key}"
    agree(ops.to_numpy(mean)[0], numbers(expected, "mean", where), f"{key} mean")
    agree(ops.to_numpy(var)[0], numbers(expected, "var", where), f"{key} var")
    kl = float(ops.to_numpy(method.kl(ops, f, q)))
    assert abs(kl / float(numbers(expected, "kl", where)) - 1.0) < DENSE_JITTER, f"{key} kl: {kl}"


# --- scalar expectations ---------------------------------------------------------------------------


def row_likelihood(row: Mapping[str, object]) -> str:
    """`bernoulli-probit (exact, no squash)` is `bernoulli-probit`."""
    return str(row.get("likelihood", "")).partition(" ")[0]


def check_scalar(name: str, ops: Ops, oracle: Oracle) -> None:
    """V, α and β of every row of one likelihood, as one batch."""
    rows = [row for row in oracle.expected["rows"] if row_likelihood(row) == name]

    def column(key: str) -> npt.NDArray[np.float64]:
        return np.array([numbers(row, key, f"{oracle.name}: rows") for row in rows])

    likelihood = build_likelihood(name, nodes=DENSE_NODES, squash=0.0)
    p = (
        GaussianParameters(ops.asarray(np.float64(oracle.settings.get("noise_variance", 0.3))))
        if name == "gaussian"
        else NoParameters()
    )
    y = ops.asarray(column("y"))
    mu, v = (ops.asarray(column(key)[None]) for key in ("mean", "var"))
    V = likelihood.variational_expectations(ops, p, y, mu, v)
    alpha, beta = likelihood.gradients(ops, p, y, mu, v)
    agree(ops.to_numpy(V), column("V"), f"V of {name}")
    agree(ops.to_numpy(alpha)[0], column("alpha"), f"alpha of {name}")
    agree(ops.to_numpy(beta)[0], column("beta"), f"beta of {name}")


# --- which checks a file gets ----------------------------------------------------------------------

NATURAL_GRADIENTS: dict[str, Method] = {
    "q-svgp closed-form whitened": q_svgp(whiten=True),
    "q-svgp autodiff whitened": q_svgp(whiten=True, gradient="autodiff"),
    "q-svgp closed-form unwhitened": q_svgp(whiten=False),
    "q-svgp autodiff unwhitened": q_svgp(whiten=False, gradient="autodiff"),
    "t-svgp": DualSVGP(),
}

NOT_SERVED = {
    "gpr": "no exact GP regression yet",
    "vgp": "no VGP yet",
    "softmax": "no softmax likelihood yet",
    "robustmax": "no robust-max likelihood yet",
}


def checks_of(oracle: Oracle) -> dict[str, Check | str]:
    """Named checks of a file, or the reason (a string) why one is skipped."""
    kind = oracle.kind
    if not kind:
        return {"": f"{oracle.name}: unknown kind of reference file"}
    if kind in NOT_SERVED:
        return {kind: f"{oracle.name}: {NOT_SERVED[kind]}"}
    if kind == "scalar":
        return _scalar_checks(oracle)
    if kind not in ("kernel", "decoupled") and (name := likelihood_word(oracle)) not in SERVED:
        return {kind: f"{oracle.name}: no likelihood {name!r} yet"}
    return dict(CHECKS[kind])


def _scalar_checks(oracle: Oracle) -> dict[str, Check | str]:
    names = dict.fromkeys(row_likelihood(row) for row in oracle.expected["rows"])
    return {
        name: functools.partial(check_scalar, name)
        if name in SERVED
        else f"{oracle.name}: no likelihood {name!r} yet"
        for name in names
    }


CHECKS: dict[str, dict[str, Check]] = {
    "decoupled": {
        "decoupled": check_decoupled,
        **{
            method.name: functools.partial(check_two_part, method.name, method)
            for method in (OrthogonalSVGP(coupled=UNWHITENED), HybridSVGP(coupled=UNWHITENED))
        },
    },
    "kernel": {"kernel": check_kernel},
    "svgp": {
        "values": check_svgp_values,
        "minibatch": check_svgp_minibatch,
        "gradients": check_svgp_gradients,
        "same q by t-svgp": check_svgp_dual,
    },
    "natgrad": {
        key: functools.partial(check_natgrad, method) for key, method in NATURAL_GRADIENTS.items()
    },
    "sgpr": {
        key: functools.partial(check_sgpr, method) for key, method in NATURAL_GRADIENTS.items()
    },
    "m_step": {
        "sites by E-steps": check_e_step_sites,
        **{
            f"t-svgp {tying}": functools.partial(check_m_step_dual, tying)
            for tying in ("standard", "whitened", "tied", "tied-projected", "untied")
        },
        "q-svgp standard": functools.partial(check_m_step_mean_cholesky, False),
        "q-svgp whitened": functools.partial(check_m_step_mean_cholesky, True),
    },
}
