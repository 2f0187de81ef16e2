"""Adapters and lists of known failures: the two files that a library keeps in its own repository.

An adapter is a Python file with up to five functions:

    build(problem)        → model, at the problem's θ and q(u); the only one that is required
    bound(model)          → the bound of the batch, or a dict with `bound`, `kl`, `expected_log_likelihood`
    predict(model, X)     → a dict with `mean`, `variance` of q(f) and `log_density` of the problem's y_test
    step(model, gamma)    → the model after a natural-gradient step of size γ, or None (changed in place)
    gradient(model)       → a dict of the gradient of the bound in constrained parameters: `variance`,
                            `lengthscales`, `noise_variance` or `scale`, `mean_constant`, `Z`, `q_mean`,
                            `q_factor`

A function or key that is left out, or that raises `NotImplementedError`, skips its tests. A line
`precision = "float32"` asks for the tolerances of float32; a line `library = "NAME VERSION"` names the
library in reports.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from svgp_reference.problem import Precision, Problem

FUNCTIONS = ("build", "bound", "predict", "step", "gradient")


class AdapterError(Exception):
    """A file of the user that cannot be used: what is wrong, where, and what to do, in one line."""


@dataclass(frozen=True)
class Adapter:
    """The functions of an adapter file, by name."""

    functions: dict[str, Callable[..., Any]]
    precision: Precision = "float64"
    library: str = ""
    """Name and version of the library, for reports."""

    def build(self, problem: Problem) -> Any:
        """Return the library's model of a problem."""
        return self.functions["build"](problem)

    def function(self, name: str) -> Callable[..., Any]:
        """Return a function; raise `NotImplementedError` if the adapter does not have it."""
        if name not in self.functions:
            raise NotImplementedError(f"the adapter has no function {name!r}")
        return self.functions[name]


def load_adapter(path: str | Path) -> Adapter:
    """Run an adapter file and return its functions. Raises `AdapterError`."""
    path = Path(path)
    if not path.is_file():
        raise AdapterError(f"--adapter {path}: no such file")
    spec = importlib.util.spec_from_file_location("svgp_reference_adapter", path)
    if spec is None or spec.loader is None:
        raise AdapterError(f"--adapter {path}: not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise AdapterError(f"--adapter {path}: the file cannot be loaded. {why}") from error
    return adapter_of(module, str(path))


def adapter_of(module: ModuleType, where: str) -> Adapter:
    """Return the functions of a module; `where` names it in messages. Raises `AdapterError`."""
    found = {name: getattr(module, name) for name in FUNCTIONS if hasattr(module, name)}
    for name, function in found.items():
        if not callable(function):
            raise AdapterError(f"--adapter {where}: {name!r} must be a function")
    if "build" not in found:
        raise AdapterError(f"--adapter {where}: no function 'build'; define build(problem) → model")
    precision: Any = getattr(module, "precision", "float64")
    if precision not in get_args(Precision):
        raise AdapterError(
            f"--adapter {where}: precision must be 'float64' or 'float32', not {precision!r}"
        )
    return Adapter(found, precision, str(getattr(module, "library", "")))


def load_known_failures(path: str | Path, tests: Collection[str]) -> dict[str, str]:
    """Return the reason of every known failure, by test; a line of the file is `TEST  # reason or link`.

    A line may have `*` for any text, as `gaussian-*.bound`; it then lists the tests of its pattern that no
    line names alone. Raises `AdapterError` for a line that names no test of `tests`, or a test twice.
    """
    path = Path(path)
    if not path.is_file():
        raise AdapterError(f"--known-failures {path}: no such file")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise AdapterError(f"--known-failures {path}: it is not UTF-8 text; save it so") from error
    reasons: dict[str, str] = {}
    patterns: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        test, _, reason = (part.strip() for part in line.partition("#"))
        if not test:
            continue
        named = fnmatch.filter(tests, test)
        if not named:
            near = get_close_matches(test, tests, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "; tests are named PROBLEM.ANSWER"
            raise AdapterError(f"--known-failures {path}, line {number}: no test {test!r}{hint}")
        if test in reasons or patterns.keys() & set(named) - {test}:
            raise AdapterError(f"--known-failures {path}, line {number}: {test!r} is listed twice")
        into = reasons if named == [test] else patterns
        into |= dict.fromkeys(named, reason or f"listed in {path}")
    return patterns | reasons
