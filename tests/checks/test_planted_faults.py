"""The matrix must go red when a method is broken, on every backend alike or on one alone."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.cases import MatrixCase, build_model, small_problem
from svgpbench.checks.dense import dense_arrays
from svgpbench.checks.evaluate import evaluate
from svgpbench.checks.matrix import MatrixEntry, compare
from svgpbench.kernels import Model
from svgpbench.likelihoods import poisson, robust_max, softmax, student_t
from svgpbench.methods import (
    AnyMethod,
    build_method,
    collapsed,
    decoupled,
    diagonal_precision,
    dual,
    exact,
    full,
    hybrid,
    mean_covariance,
    orthogonal,
    tying,
)

PROBLEM = small_problem()


def copy_of(module: ModuleType, folder: Path, old: str, new: str) -> ModuleType:
    """A module made from a changed copy of another's source."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times"
    path = folder / f"faulty_{Path(str(module.__file__)).stem}.py"
    path.write_text(source.replace(old, new))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    return made


def matrix(
    case: MatrixCase, methods: dict[str, AnyMethod], model: Model | None = None
) -> list[MatrixEntry]:
    """Entries of a case whose method is given for each backend."""
    model = model or build_model(case.likelihood, case.kernel)
    numbers = {b: evaluate(load_backend(b), model, m, PROBLEM) for b, m in methods.items()}
    return compare(case, numbers, dense_arrays(case, PROBLEM, numbers["numpy"]))


def red(entries: list[MatrixEntry]) -> set[str]:
    """The groups that failed."""
    return {e.group for e in entries if not e.ok}


FAULTS = {
    "flipped sign of α": (
        dual,
        "lambda1 = beta * mu + alpha",
        "lambda1 = beta * mu - alpha",
        "t-svgp tied-projected",
    ),
    "missing minibatch scale": (
        dual,
        "step = rate * data.scale",
        "step = rate * 1.0",
        "t-svgp tied-projected",
    ),
    "transposed solve in the marginals": (
        dual,
        "half = ops.solve_triangular(q.L_B, f.W)  # [P, M, b]",
        "half = ops.solve_triangular(q.L_B, f.W, lower=True, transpose=True)",
        "t-svgp tied-projected",
    ),
    "dimension missing from the KL": (
        dual,
        "            - q.L_B.shape[-1]\n",
        "",
        "t-svgp tied-projected",
    ),
    "sites that do not decay": (
        dual,
        "step_sites(ops, state.sites,",
        "step_sites(ops, Sites(state.sites.lambda1 / (1.0 - rate), state.sites.beta),",
        "t-svgp untied",
    ),
    "sign of the prior's pull on the mean": (
        mean_covariance,
        "g_mean = data.scale * matvec(A, alpha) - matvec(P0, state.q.mean)",
        "g_mean = data.scale * matvec(A, alpha) + matvec(P0, state.q.mean)",
        "q-svgp natgrad",
    ),
    "half a natural step in the covariance": (
        mean_covariance,
        "precision - 2.0 * rate * g_cov)",
        "precision - 1.0 * rate * g_cov)",
        "q-svgp natgrad",
    ),
    "sign of the prior's pull on B": (
        decoupled,
        "ops.tril(by_data - SL @",
        "ops.tril(by_data + SL @",
        "decoupled adam",
    ),
    "a coupled part that does not see γ's mean": (
        orthogonal,
        "return f.coupled, shifted(data, self._mean(f, a, explained(ops, f, a)))",
        "return f.coupled, data",
        "orth dual newton",
    ),
    "marginals without γ's mean": (
        orthogonal,
        "return mu + self._mean(f, q.a, q.explained), v",
        "return mu, v",
        "orth natgrad newton",
    ),
    "γ's pull on β not divided by the minibatch scale": (
        hybrid,
        "-explained(ops, f, a) / data.scale)",
        "-explained(ops, f, a))",
        "hybrid natgrad newton",
    ),
    "KL of an unwhitened state taken as whitened": (
        mean_covariance,
        "return MeanCholesky(mean, ops.solve_triangular(blocks.L, state.q.chol))",
        "return MeanCholesky(mean, state.q.chol)",
        "q-svgp natgrad unwhitened",
    ),
    "S for S∘S in the Fisher information": (
        diagonal_precision,
        "chol = ops.cholesky(S * S)",
        "chol = ops.cholesky(S)",
        "diagonal-precision exact",
    ),
    "a mean that moves with the old covariance": (
        diagonal_precision,
        "half = ops.solve_triangular(L_B, rate * pull[..., None])",
        "L_B = ops.cholesky(_whitened_precision(ops, f.L, state.g))\n"
        "        half = ops.solve_triangular(L_B, rate * pull[..., None])",
        "diagonal-precision projected-b",
    ),
    "a mean without what the kept precision takes up": (
        diagonal_precision,
        "pull = pull + matvec(f.W, beta_mean) - diagonal_part",
        "pull = pull + matvec(f.W, beta_mean)",
        "diagonal-precision projected-a",
    ),
    "weights held for tied-projected": (
        diagonal_precision,
        "return state._replace(mu=state.mu + state.g * m)",
        "return state._replace(mu=state.mu + 0.0 * m)",
        "diagonal-precision exact tied-projected",
    ),
    "slope of softplus left out": (
        diagonal_precision,
        "slope = slope._replace(g=slope.g * (1.0 - ops.exp(-state.g)))",
        "slope = slope._replace(g=slope.g)",
        "diagonal-precision adam",
    ),
    "root of the precision missing from the marginals": (
        full,
        "half = ops.solve_triangular(q.L_B, q.root[..., None] * f.Kfb)  # [P, n, b]",
        "half = ops.solve_triangular(q.L_B, f.Kfb)  # [P, n, b]",
        "t-vgp",
    ),
    "sites held without their precision's unit": (
        full,
        "return at_precision(ops, likelihood, invariant)",
        "return invariant",
        "t-vgp",
    ),
    "prior's pull missing from the weights": (
        full,
        "return x - root * cholesky_solve",
        "return x - 0.5 * root * cholesky_solve",
        "t-vgp negative sites",
    ),
    "residual variance missing from the collapsed bound": (
        collapsed,
        "            + precision * residual\n",
        "",
        "sgpr",
    ),
    "best q without its precision": (
        collapsed,
        "return DualState(sums.Wy * precision, sums.WW * precision, (), ops.zeros(()))",
        "return DualState(sums.Wy * precision, sums.WW, (), ops.zeros(()))",
        "sgpr",
    ),
    "noise added twice": (
        exact,
        "ops.eye(n) / data.likelihood.site_precision(ops)",
        "2.0 * ops.eye(n) / data.likelihood.site_precision(ops)",
        "gpr",
    ),
}


LIKELIHOOD_FAULTS = {
    "own latent left out of robust-max's α": (
        robust_max,
        "alpha = one_hot * ops.sum(label_slope, axis=-1) - ops.sum(competitors, axis=-1)",
        "alpha = -ops.sum(competitors, axis=-1)",
        "robust-max",
    ),
    "a competitor's β not scaled by z": (
        robust_max,
        "ops.sum(competitors * nodes.z, axis=-1) - beta_own",
        "ops.sum(competitors, axis=-1) - beta_own",
        "robust-max",
    ),
    "robust-max's gain without the number of classes": (
        robust_max,
        "math.log(self.epsilon / (self.classes - 1))",
        "math.log(self.epsilon)",
        "robust-max",
    ),
    "softmax's β without 1 − p": (
        softmax,
        "matvec(probabilities * (1.0 - probabilities), p.weights)",
        "matvec(probabilities, p.weights)",
        "softmax",
    ),
    "the draws of softmax in the wrong latents": (
        softmax,
        "ops.sqrt(v)[..., None] * noise",
        "ops.sqrt(v)[..., None] * ops.flip(noise, axis=(0,))",
        "softmax",
    ),
    "degrees of freedom short by one": (
        student_t,
        "half = 0.5 * (self.df + 1.0)",
        "half = 0.5 * self.df",
        "student-t",
    ),
    "Poisson's log y! forgotten": (
        poisson,
        " - rate - ops.lgamma(y + 1.0), y - rate",
        " - rate, y - rate",
        "poisson",
    ),
    "the step that should have been halved taken whole": (
        dual,
        "return stepped._replace(halvings=state.halvings + halvings)",
        "return step(rate)._replace(halvings=state.halvings + halvings)",
        "robust-max",
    ),
}
"""Module, what is changed and to what, and the likelihood whose case must show it."""


@pytest.mark.parametrize("fault", LIKELIHOOD_FAULTS)
def test_a_fault_in_a_likelihood_turns_the_matrix_red(fault: str, tmp_path: Path) -> None:
    module, old, new, likelihood = LIKELIHOOD_FAULTS[fault]
    case = MatrixCase("t-svgp tied-projected", likelihood, "se")
    model, method = case.build()
    faulty = copy_of(module, tmp_path, old, new)
    if module is dual:
        method = build(faulty, case)
    else:
        cls = getattr(faulty, type(model.likelihood).__name__)
        made = cls(**dataclasses.asdict(model.likelihood))
        model = dataclasses.replace(model, likelihood=made)
    assert red(matrix(case, dict.fromkeys(("numpy", "torch"), method), model))


@pytest.mark.parametrize("likelihood", sorted({f[3] for f in LIKELIHOOD_FAULTS.values()}))
def test_a_sound_likelihood_stays_green(likelihood: str) -> None:
    case = MatrixCase("t-svgp tied-projected", likelihood, "se")
    _, method = case.build()
    assert not red(matrix(case, dict.fromkeys(("numpy", "torch"), method)))


def case_of(name: str) -> MatrixCase:
    """A case of a method; Gaussian where the fault is in its noise, or where it takes nothing else."""
    gaussian = name in ("sgpr", "gpr", "t-vgp")
    return MatrixCase(name, "gaussian" if gaussian else "bernoulli-logit", "matern52")


def build(module: ModuleType, case: MatrixCase) -> AnyMethod:
    """The case's method, its class taken from a module."""
    _, method = case.build()
    cls = getattr(module, type(method).__name__)
    made: AnyMethod = cls(**dataclasses.asdict(method))
    return made


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_every_backend_repeats_turns_the_matrix_red(
    fault: str, tmp_path: Path
) -> None:
    module, old, new, name = FAULTS[fault]
    case = case_of(name)
    faulty = build(copy_of(module, tmp_path, old, new), case)
    assert red(matrix(case, dict.fromkeys(("numpy", "torch"), faulty)))


@pytest.mark.parametrize("name", sorted({f[3] for f in FAULTS.values()}))
def test_an_unchanged_copy_stays_green(name: str, tmp_path: Path) -> None:
    case = case_of(name)
    module = next(f[0] for f in FAULTS.values() if f[3] == name)
    old = "from __future__ import annotations"
    same = build(copy_of(module, tmp_path, old, old), case)
    assert not red(matrix(case, dict.fromkeys(("numpy", "torch"), same)))


def test_a_fault_of_one_backend_alone_turns_every_group_red(tmp_path: Path) -> None:
    case = MatrixCase("t-svgp tied-projected", "gaussian", "se")
    module, old, new, _ = FAULTS["flipped sign of α"]
    _, sound = case.build()
    faulty = build(copy_of(module, tmp_path, old, new), case)
    groups = red(matrix(case, {"numpy": sound, "torch": faulty}))
    assert groups == {"values", "gradients", "e_step", "e_trajectory", "m_trajectory"}


@pytest.mark.parametrize(("named", "does"), [("tied", "tied-projected"), ("untied", "tied")])
def test_a_tying_that_holds_the_wrong_thing_is_seen(named: str, does: str) -> None:
    case = MatrixCase(f"t-svgp {named}", "gaussian", "matern32")
    wrong = build_method("t-svgp", {"tying": does})
    sound = build_method("t-svgp", {"tying": named})
    model = build_model(case.likelihood, case.kernel)
    ops = load_backend("numpy")
    numbers = evaluate(ops, model, wrong, PROBLEM)
    if named == "untied":  # the dense column reads the sites that only `untied` keeps
        state = evaluate(ops, model, sound, PROBLEM)
        numbers |= {k: x for k, x in state.items() if k.startswith("state/sites")}
    assert "dense" in red(compare(case, {"numpy": numbers}, dense_arrays(case, PROBLEM, numbers)))


def test_every_tying_has_a_case() -> None:
    from svgpbench.checks.cases import VARIANTS

    tyings = {o["tying"] for n, o in VARIANTS.values() if n == "t-svgp" and "tying" in o}
    assert tyings == set(tying.TYINGS)
