"""The same runs on the other backends, as many as each compiles in reasonable time."""

from __future__ import annotations

import pytest
import test_online_runs as online
from both_sides import compare, package_run, program_of
from cases import CASES

from svgpbench.plugins import framework_missing, load_backend

EAGER = ("torch",)
COMPILED = ("jax", "tensorflow")

SOME = (
    "t-svgp untied by l-bfgs",
    "sgpr by l-bfgs",
    "softmax by minibatch",
    "orth natural, newton",
    "student-t, damped",
)
SOME_ONLINE = ("SVDGP",)


def on(backend: str, names: object) -> list[object]:
    """One (backend, name) each, skipped where the framework is missing."""
    missing = framework_missing(backend)
    marks = [pytest.mark.skip(reason=missing)] if missing else []
    assert isinstance(names, (tuple, dict))
    return [pytest.param(backend, name, marks=marks, id=f"{backend}-{name}") for name in names]


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        *(case for backend in EAGER for case in on(backend, CASES)),
        *(case for backend in COMPILED for case in on(backend, SOME)),
    ],
)
def test_another_backend_runs_as_the_second_program_does(backend: str, name: str) -> None:
    trainer = package_run(load_backend(backend), CASES[name])
    compare(trainer, program_of(name), CASES[name].tolerance)


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        *(case for backend in EAGER for case in on(backend, online.CASES)),
        *(case for backend in COMPILED for case in on(backend, SOME_ONLINE)),
    ],
)
def test_another_backend_learns_online_as_the_second_program_does(backend: str, name: str) -> None:
    trainer = online.package_run(load_backend(backend), online.CASES[name])
    compare(trainer, online.program_of(name))
