"""The conformance kit as a user runs it, from another folder: whom it passes, and what it finds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from svgpbench.backends import framework_missing, load_backend
from svgpbench.checks.kit import programs

sys.path.insert(0, str(Path(__file__).parents[1] / "strangers"))
from installed import HERE, Done, Place

SHIPPED_LIKELIHOODS = (
    *("gaussian", "bernoulli-probit", "bernoulli-logit", "softmax"),
    *("robust-max", "student-t", "poisson", "heteroskedastic"),
)

FAULTS = {
    "cholesky of a matrix that has none is zero": (
        "backend",
        "np.tril(np.full_like(factor, np.nan))",
        "np.zeros_like(factor)",
        "test_cholesky_of_a_matrix_that_is_not_positive_definite_is_nan",
    ),
    "a solve reads both triangles": (
        "backend",
        "scipy.linalg.lapack.dtrtrs(a[index], b[index], lower=lower, trans=int(transpose))",
        "np.linalg.solve(a[index].T if transpose else a[index], b[index]), 0",
        "test_solve_triangular_residual_and_triangle",
    ),
    "float32 where float64 was asked for": (
        "backend",
        "x.astype(self.dtype)",
        "x.astype('float32')",
        "test_asarray_gives_floats_the_dtype_and_keeps_integers",
    ),
    "each step another number": (
        "backend",
        "staticmethod(xp.sum)",
        "staticmethod(lambda x, **k: xp.sum(x, **k) * (1 + 1e-10 * np.random.random()))",
        "test_the_same_step_gives_the_same_bits",
    ),
    "autodiff is refused by another error": (
        "backend",
        "raise NoAutodiffError(self.name)",
        "raise NotImplementedError",
        "test_without_autodiff_value_and_grad_says_so",
    ),
    "the sign of α is flipped": (
        "likelihood",
        "value, self.rate * (1.0",
        "value, -self.rate * (1.0",
        "test_alpha_and_beta_are_slopes_of_the_expected_log_likelihood",
    ),
    "a density that does not add up to one": (
        "likelihood",
        "ops.log(self.rate + 0.0 * z)",
        "ops.log(1.0 + 0.0 * z)",
        "test_predictive_probabilities_add_up_to_one",
    ),
    "the mean of y is another": (
        "likelihood",
        "return mu[0, ...]",
        "return 1.1 * mu[0, ...]",
        "test_predictions_are_moments_of_the_predictive_distribution",
    ),
    "a KL of the wrong sign": (
        "method",
        "q.c * q.c - 1.0",
        "q.c * q.c + 1.0",
        "test_it_starts_at_the_prior_and_its_kl_is_positive",
    ),
    "a step that writes into its state": (
        "method",
        "        mu, v = self.marginals",
        "        state.c[...] = 0.5\n        mu, v = self.marginals",
        "test_a_step_keeps_the_state_s_form_and_leaves_its_arguments_alone",
    ),
    "a step without n/b": (
        "method",
        "data.scale * matvec(f.W, alpha)",
        "matvec(f.W, alpha)",
        "test_a_step_at_scale_2_is_a_step_on_the_same_data_twice",
    ),
    "a fixed point that is not stationary": (
        "method",
        "rate * (1.0 + curvature)",
        "rate * (1.0 + 0.8 * curvature)",
        "test_e_steps_end_where_the_bound_is_stationary",
    ),
}
"""Plugin of the stranger, its line, a wrong line in its place, and the test that finds it."""

CHOSEN = {
    "backend": ("--backend", "slate"),
    "likelihood": ("--likelihood", "logistic"),
    "method": ("--method", "mean-field", "--backend", "numpy"),
}


def kit(place: Place, *arguments: str) -> Done:
    plain = ("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider")
    return place.python(*plain, "--pyargs", "svgpbench.checks", *arguments)


def failed(done: Done) -> set[str]:
    return set(re.findall(r"^FAILED .*?::(\w+)", done.stdout, re.MULTILINE))


def replace(place: Place, plugin: str, *changes: tuple[str, str]) -> None:
    """Replace lines of the stranger's plugin, each of which stands there once."""
    file = place.folder / "slate" / "slate" / f"{plugin}.py"
    text = file.read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text)


@pytest.fixture
def stranger(tmp_path: Path) -> Place:
    source = tmp_path / "slate"
    for path in HERE.joinpath("slate").rglob("*"):
        if path.suffix in (".py", ".toml"):
            copy = source / path.relative_to(HERE / "slate")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return Place(tmp_path, source)


def test_a_stranger_s_backend_and_method_pass(stranger: Place) -> None:
    done = kit(stranger, "--backend", "slate", "-rs")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "backend 'slate' has no autodiff" in done.stdout
    done = kit(stranger, "--method", "mean-field", "--backend", "numpy", "--backend", "slate")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


# tests/ops runs the same tests on every backend
@pytest.mark.parametrize(
    "backend",
    ["numpy", *(pytest.param(b, marks=pytest.mark.long) for b in ("jax", "torch", "tensorflow"))],
)
def test_the_backends_of_this_package_pass(tmp_path: Path, backend: str) -> None:
    if missing := framework_missing(backend):
        pytest.skip(missing)
    done = kit(Place(tmp_path), "--backend", backend)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_a_device_that_is_missing_is_refused_before_any_test(tmp_path: Path) -> None:
    done = kit(Place(tmp_path), "--backend", "numpy", "--device", "cuda")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "backend 'numpy' offers no device 'cuda' (it has: cpu)" in done.stderr


def test_two_modes_of_a_backend_are_two_backends(tmp_path: Path) -> None:
    if missing := framework_missing("torch"):
        pytest.skip(missing)
    both = ("--backend", "torch", "--backend", "torch:compile")
    done = kit(
        Place(tmp_path), *both, "--collect-only", "-k", "keeps_to_its_threads or inside_scan"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        len(re.findall(r"keeps_to_its_threads.*\[torch(?: compile)? float64\]", done.stdout)) == 2
    )
    assert len(re.findall(r"inside_scan.*\[torch-(?:compile)?-float64\]", done.stdout)) == 2


@pytest.mark.parametrize("says", FAULTS)
def test_it_finds(stranger: Place, says: str) -> None:
    plugin, old, new, test = FAULTS[says]
    replace(stranger, plugin, (old, new))
    assert test in failed(kit(stranger, *CHOSEN[plugin], "-k", test))


def test_a_method_whose_posterior_is_another_s_is_found(stranger: Place) -> None:
    replace(stranger, "method", ("matvec(blocks.L, q.c)", "2.0 * matvec(blocks.L, q.c)"))
    assert failed(kit(stranger, "--method", "mean-field", "--backend", "numpy")) == {
        "test_marginals_and_kl_are_those_of_its_posterior"
    }


def test_a_bound_that_falls_asks_whether_the_steps_are_of_first_order(stranger: Place) -> None:
    falls = ("state.d * state.c + rate * (", "state.d * state.c - rate * (")
    replace(stranger, "method", falls)
    only = ("--method", "mean-field", "--backend", "numpy", "-k", "raise_the_bound and gaussian")
    done = kit(stranger, *only)
    assert failed(done) == {"test_e_steps_on_all_data_raise_the_bound"}
    # with the numbers: pytest also shows the line of the source
    says = (
        r"at rate 0\.6 take the bound from \S+ to \S+; set first_order = True, if its E-step is a"
    )
    assert re.search(says, done.stdout), done.stdout[-3000:]


RECOMPILING = {
    "a state that grows": [
        ("    d: Any  # [P, M]\n", "    d: Any  # [P, M]\n    rates: Any = ()\n"),
        ("Independent(linear / d, d)", "Independent(linear / d, d, (*state.rates, rate))"),
    ],
    "a Python number that changes": [
        ("\n\n@dataclass", "\n\nturns = [0]\n\n\n@dataclass"),
        ("        mu, v = self.marginals", "        turns[0] += 1\n        mu, v = self.marginals"),
        ("(linear / d, d)", "(linear / d + 1e-3 * turns[0], d)"),
    ],
}
"""Changes of the stranger's method with which its step is compiled more than once."""


@pytest.mark.parametrize(
    ("backend", "fault"),
    [
        *((backend, "a state that grows") for backend in ("jax", "tensorflow")),
        *(pytest.param("torch:compile", x, marks=pytest.mark.slow) for x in RECOMPILING),
    ],
)
def test_a_step_that_is_compiled_again_is_found(stranger: Place, backend: str, fault: str) -> None:
    """JAX and TensorFlow keep the Python number of the first call, and so compile nothing again."""
    if missing := framework_missing(backend.partition(":")[0]):
        pytest.skip(missing)
    only = ("--method", "mean-field", "--backend", backend)
    only = (*only, "-k", "compiled_once and float64- and gaussian and not hetero")
    done = kit(stranger, *only)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout
    replace(stranger, "method", *RECOMPILING[fault])
    done = kit(stranger, *only)
    assert failed(done) == {"test_a_step_is_compiled_once"}, done.stdout
    assert "programs compiled per call: [1, 1, " in done.stdout


def test_a_backend_that_reports_no_programs_is_asked_how_often_it_traces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if missing := framework_missing("jax"):
        pytest.skip(missing)
    monkeypatch.setattr(programs, "compilations", lambda ops, functions: 0)
    ops = load_backend("jax", "jit")
    for sizes, counts in (((3, 3, 3), [1, 0, 0]), ((3, 3, 4), [1, 0, 1])):
        doubled = programs.CountedPrograms(ops, lambda x: 2.0 * x)
        for size in sizes:
            np.testing.assert_array_equal(ops.to_numpy(doubled(ops.zeros(size) + 1.0)), 2.0)
        assert doubled.per_call == counts
    with pytest.raises(AssertionError, match=r"reports no programs.* give it `compilations`"):
        doubled.assert_compiled_once()


def test_a_stranger_s_likelihood_and_those_of_this_package_pass(stranger: Place) -> None:
    names = ("logistic", *SHIPPED_LIKELIHOODS)
    chosen = [word for name in names for word in ("--likelihood", name)]
    done = kit(stranger, *chosen, "--backend", "numpy", "--backend", "slate")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_known_failures_are_expected_and_one_that_passes_is_said(stranger: Place) -> None:
    replace(stranger, "backend", ("np.logaddexp(x, 0.0)", "np.log(1.0 + np.exp(x))"))
    test = "test_softplus_and_log1p_are_accurate_where_they_are_small"
    only = ("--backend", "slate", "-k", "softplus or zeros_and_eye")
    done = kit(stranger, *only)
    assert done.returncode == 1 and failed(done) == {test}
    known = stranger.folder / "known.txt"
    known.write_text(
        f"# upstream issue 7\n{test}[*]\ntest_zeros_and_eye*  # mended\nno_such_test\n"
    )
    done = kit(stranger, *only, "--known-failures", str(known))
    assert done.returncode == 0, done.stdout
    assert "known failure that passes: test_zeros_and_eye[slate float64]" in done.stdout
    assert "known failure that fits no test: no_such_test" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "say what to test: --backend NAME, --method NAME or --likelihood NAME"),
        (["--backend", "slat"], "unknown backend 'slat'; did you mean 'slate'?"),
        (["--method", "mean-feeld"], "unknown method 'mean-feeld'; did you mean 'mean-field'?"),
        (["--likelihood", "logistics"], "unknown likelihood 'logistics'; did you mean 'logistic'?"),
        (["--backend", "slate", "--known-failures", "none.txt"], "none.txt cannot be read"),
    ],
)
def test_a_mistake_is_one_line(stranger: Place, arguments: list[str], says: str) -> None:
    done = kit(stranger, *arguments)
    assert done.returncode == 4
    assert says in done.stderr and done.stderr.count("\n") <= 2, done.stderr


def test_the_options_are_there_for_the_kit_alone(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--backend')\n"
    )
    (tmp_path / "test_theirs.py").write_text("def test_it(): pass\n")
    done = Place(tmp_path).python("-m", "pytest", "-q", "--backend", "theirs")
    assert done.returncode == 0, done.stdout + done.stderr
