"""The same runs on the other backends, as many as each compiles in reasonable time."""

from __future__ import annotations

import pytest
import test_online_runs as online
from both_sides import compare, package_run, program_of
from cases import CASES

from svgpbench.backends import framework_missing, load_backend

EAGER = "torch"

FEW = ("t-svgp untied by l-bfgs", "sgpr by l-bfgs", "student-t, damped")
SOME = {"jax": FEW, "tensorflow": (*FEW, "softmax by minibatch", "orth natural, newton")}
TRACED_LONG = ("SVDGP",)
"""Online runs that TensorFlow traces anew at every growth of the basis."""


def on(backend: str, names: tuple[str, ...], *more: pytest.MarkDecorator) -> list[object]:
    """One (backend, name) each, skipped where the framework is missing."""
    missing = framework_missing(backend)
    marks = [pytest.mark.skip(reason=missing), *more] if missing else more
    return [pytest.param(backend, name, marks=marks, id=f"{backend}-{name}") for name in names]


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        *on(EAGER, tuple(CASES)),
        *(case for backend, names in SOME.items() for case in on(backend, names)),
    ],
)
def test_another_backend_runs_as_the_second_program_does(backend: str, name: str) -> None:
    trainer = package_run(load_backend(backend), CASES[name])
    compare(trainer, program_of(name), CASES[name].tolerance)


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        *on(EAGER, tuple(online.CASES)),
        *on("tensorflow", TRACED_LONG, pytest.mark.long),
    ],
)
def test_another_backend_learns_online_as_the_second_program_does(backend: str, name: str) -> None:
    trainer = online.package_run(load_backend(backend), online.CASES[name])
    compare(trainer, online.program_of(name))
