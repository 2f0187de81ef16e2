"""The arrays of the numerical core have the shapes that its annotations say.

jaxtyping and beartype check them at every call. They are installed at import, so a test has its own process.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from operator import or_
from typing import Any, get_type_hints

import numpy as np
from beartype import beartype
from jaxtyping import TypeCheckError, install_import_hook, jaxtyped

CORE = [f"svgpbench.{room}" for room in ("numerics", "kernels", "likelihoods", "methods")]


def test_every_case_of_the_check_has_these_shapes() -> None:
    done = in_own_process("every_case")
    assert done.returncode == 0, done.stderr


def test_a_wrong_shape_raises() -> None:
    done = in_own_process("wrong_shapes")
    assert done.stdout.splitlines() == ["argument", "field", "override"], done.stderr


def in_own_process(function: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, function]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def every_case() -> None:
    """Run every case on the NumPy backend, with short trajectories: they use the same functions."""
    from svgpbench.backends import load_backend
    from svgpbench.checks import evaluate
    from svgpbench.checks.cases import cases, small_problem

    evaluate.STEPS = 2
    ops = load_backend("numpy")
    problem = replace(small_problem(), batches=small_problem().batches[:3])
    for case in dict.fromkeys(replace(case, dtype="float64") for case in cases(full=False)):
        evaluate.evaluate(ops, *case.build(), problem, "compiled")


def wrong_shapes() -> None:
    """Print the name of every call below that raises."""
    from svgpbench.backends import load_backend
    from svgpbench.likelihoods import Poisson
    from svgpbench.methods.tying import Sites
    from svgpbench.numerics.gaussian import matvec

    ops, two, three = load_backend("numpy"), np.ones((1, 2)), np.ones((1, 3))
    for name, call in {
        "argument": lambda: matvec(two, three),
        "field": lambda: Sites(two, three),
        "override": lambda: Poisson().predict(ops, (), two, three),
    }.items():
        try:
            call()
        except TypeCheckError:
            print(name)


def check_core() -> None:
    """Check the calls of the core's functions, its NamedTuples' fields, and overrides."""
    install_import_hook(CORE, "beartype.beartype")
    for room in CORE:
        for found in pkgutil.iter_modules(import_module(room).__path__, f"{room}."):
            for cls in vars(import_module(found.name)).values():
                if inspect.isclass(cls) and cls.__module__ == found.name:
                    check_fields(cls) if hasattr(cls, "_fields") else check_overrides(cls)


def check_fields(cls: Any) -> None:
    """Check the fields of a NamedTuple when it is made, unless `tree_map` copies its structure."""
    plain = cls.__new__
    plain.__annotations__ = get_type_hints(cls)
    checked = jaxtyped(plain, typechecker=beartype)

    def new(of: type, *values: Any, **named: Any) -> Any:
        copied = sys._getframe(1).f_globals["__name__"] == "svgpbench.tree"
        return (plain if copied else checked)(of, *values, **named)

    cls.__new__ = new
    cls._make = classmethod(lambda of, values: of(*values))


def check_overrides(cls: Any) -> None:
    """Give overrides the shapes of what they implement, where they name no other."""
    for name, method in list(vars(cls).items()):
        bases = [vars(base)[name] for base in cls.__mro__[:0:-1] if name in vars(base)]
        if bases and all(map(inspect.isfunction, [method, *bases])):
            shapes = [shapes_of(function) for function in (*bases, method)]
            plain = inspect.unwrap(method)
            plain.__annotations__ = plain.__annotations__ | functools.reduce(or_, shapes)
            setattr(cls, name, jaxtyped(plain, typechecker=beartype))


def shapes_of(function: Any) -> dict[str, Any]:
    return {k: x for k, x in get_type_hints(function).items() if "Float[" in repr(x)}


if __name__ == "__main__":
    check_core()
    globals()[sys.argv[1]]()
