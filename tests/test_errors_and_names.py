"""A wrong name is one line with the nearest right one; so is a missing framework."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from svgpbench.backends import framework_missing, known_backends, load_backend
from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError
from svgpbench.kernels import Theta, unconstrain
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import GaussianParameters, NoParameters, build_likelihood
from svgpbench.methods import build_method
from svgpbench.plugins import frameworks


def likelihood(name: str, **options: Any) -> Any:
    return build_likelihood(LikelihoodConfig(name=name, **options))


MISNAMED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "kernel": (lambda: kernel("matern5"), "matern5", "matern52"),
    "likelihood": (lambda: likelihood("gausian"), "gausian", "gaussian"),
    "method": (lambda: build_method("tsvgp", {}), "tsvgp", "t-svgp"),
    "option": (lambda: build_method("q-svgp", {"whitened": True}), "whitened", "whiten"),
    "tying": (
        lambda: build_method("t-svgp", {"tying": "tied-project"}),
        "tied-project",
        "tied-projected",
    ),
    "E-step": (lambda: build_method("q-svgp", {"optimiser": "natgrd"}), "natgrd", "natgrad"),
    "gradient": (
        lambda: build_method("q-svgp", {"gradient": "closed form"}),
        "closed form",
        "closed-form",
    ),
    "backend": (lambda: load_backend("tensorflw"), "tensorflw", "tensorflow"),
}


@pytest.mark.parametrize("what", MISNAMED)
def test_unknown_name_is_a_user_error_with_the_nearest_one(what: str) -> None:
    call, given, nearest = MISNAMED[what]
    with pytest.raises(UserError) as caught:
        call()
    message = str(caught.value)
    assert repr(given) in message
    assert f"did you mean {nearest!r}?" in message
    assert "\n" not in message


def test_a_mode_that_a_backend_lacks_is_refused_before_its_framework_is_imported() -> None:
    assert known_backends(["numpy", "numpy:eager"]) == ["numpy", "numpy:eager"]
    with pytest.raises(UserError, match=r"'numpy' offers no mode 'fast' \(it has: eager\)"):
        known_backends(["numpy:fast"])
    with pytest.raises(UserError, match=r"^backends are one text 'numpy'; give a list of names$"):
        known_backends("numpy")


def test_name_that_nothing_is_near_to_lists_what_there_is() -> None:
    with pytest.raises(UserError, match=r"known: matern32, matern52, se") as caught:
        kernel("zzz")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("q-svgp", {"whiten": 1}),
        ("q-svgp", {"whiten": "yes"}),
        ("q-svgp", {"gradient": True}),
        ("t-svgp", {"tying": 2}),
        ("t-svgp", {"tying": False}),
    ],
)
def test_option_of_another_type_is_a_user_error(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"must be (bool|str)") as caught:
        build_method(method, options)
    assert repr(next(iter(options))) in str(caught.value)


def test_options_that_are_right_are_kept() -> None:
    method = build_method("q-svgp", {"whiten": False, "gradient": "autodiff"})
    assert (method.whiten, method.gradient, method.optimiser) == (False, "autodiff", "natgrad")
    assert build_method("t-svgp", {"tying": "untied"}).needs_all_data
    assert not build_method("t-svgp", {}).needs_all_data


def test_likelihood_options_reach_the_likelihood_or_are_refused() -> None:
    probit = likelihood("bernoulli-probit", nodes=30, squash=1e-3)
    assert (probit.nodes, probit.squash) == (30, 1e-3)
    assert likelihood("gaussian", noise_variance=0.2).noise_variance == 0.2
    t = likelihood("student-t", scale=0.5, df=4.0, negative_beta="clip")
    assert (t.scale, t.df, t.clips, t.nodes) == (0.5, 4.0, True, 20)
    softmax = likelihood("softmax", classes=5, samples=30)
    assert (softmax.latents, softmax.samples) == (5, 30)
    robust = likelihood("robust-max", epsilon=0.01)
    assert (robust.epsilon, robust.nodes, robust.latents) == (0.01, 100, 0)  # classes from the data


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "bernoulli-logit",
            {"squash": 1e-3},
            r"likelihood 'bernoulli-logit': 'squash' \(known: integrals, negative_beta, nodes\)",
        ),
        ("bernoulli-logit", {"noise_variance": 0.2}, "option of .*'noise_variance'"),
        ("bernoulli-probit", {"classes": 2}, "'classes'"),
        ("gaussian", {"nodes": 20}, "'nodes'"),
        ("poisson", {"scale": 1.0}, "'scale'"),
        ("softmax", {"epsilon": 0.1, "classes": 3}, "'epsilon'"),
        ("robust-max", {"samples": 10}, "'samples' .known: classes"),
        ("poisson", {"negative_beta": "clip"}, "is log-concave, its β is never negative"),
        ("bernoulli-probit", {"negative_beta": "raw"}, "is log-concave"),
    ],
)
def test_a_key_that_the_likelihood_does_not_have_is_refused_in_one_line(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        likelihood(name, **options)
    assert "\n" not in str(caught.value)


def test_the_squashed_probit_alone_takes_a_treatment_of_negative_beta() -> None:
    assert likelihood("bernoulli-probit", squash=1e-3, negative_beta="clip").clips


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("softmax", {"classes": 1}),
        ("softmax", {"samples": 0}),
        ("robust-max", {"epsilon": 0.0}),
        ("student-t", {"df": 1.0}),
        ("student-t", {"scale": -1.0}),
        ("student-t", {"scale": float("inf")}),
        ("gaussian", {"noise_variance": 0.0}),
        ("poisson", {"nodes": 1}),
        ("bernoulli-probit", {"squash": 0.5}),
        ("student-t", {"negative_beta": "damped"}),
    ],
)
def test_settings_out_of_range_are_refused(name: str, options: dict[str, Any]) -> None:
    ((key, value),) = options.items()
    with pytest.raises(
        UserError, match=f"option {key!r} of likelihood {name!r} must be .* got"
    ) as e:
        likelihood(name, **options)
    assert str(e.value).endswith(repr(value))


@pytest.mark.parametrize("name", frameworks())
def test_missing_framework_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *rest: None if n == name else found(n, *rest)
    )
    assert framework_missing(name) is not None
    with pytest.raises(UserError, match=rf"pip install 'svgpbench\[{name}\]'"):
        load_backend.__wrapped__(name)  # past the cache
    assert framework_missing("numpy") is None


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"mode": "turbo"}, "mode 'turbo'"),
        ({"dtype": "float16"}, "dtype 'float16'"),
        ({"device": "tpu"}, "device 'tpu'"),
    ],
)
@pytest.mark.parametrize("backend", ["numpy", *frameworks()])
def test_mode_dtype_or_device_that_a_backend_lacks(
    backend: str, options: dict[str, str], what: str
) -> None:
    if missing := framework_missing(backend):
        pytest.skip(missing)
    with pytest.raises(UserError, match=what) as caught:
        load_backend(backend, **options)
    assert repr(backend) in str(caught.value)
    assert "it has: " in str(caught.value)


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"device": "cuda"}, {"mode": "jit"}])
def test_numpy_is_float64_on_the_cpu_and_eager(options: dict[str, str]) -> None:
    with pytest.raises(UserError):
        load_backend("numpy", **options)


def test_parameter_at_its_floor_is_a_user_error() -> None:
    parameters = KernelParameters(np.array([0.0]), np.ones((1, 2)))
    for theta in (
        Theta(parameters, NoParameters(), np.zeros((1, 2))),
        Theta(parameters._replace(variance=np.ones(1)), GaussianParameters(-1.0), np.zeros((1, 2))),
    ):
        with pytest.raises(UserError, match="must be above"):
            unconstrain(theta)
