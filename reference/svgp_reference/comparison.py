"""Comparison of a library's results with the answers of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from svgp_reference.adapter import Adapter
from svgp_reference.problem import Floats, Problem

STEPS = 50
"""Natural-gradient steps of the answer `steps`."""


def relative_difference(got: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """Return max|got − expected| / max|expected|; infinite if a number is not finite.

    Raises:
        ValueError: if the shapes differ.

    Example:
        >>> relative_difference([1.0, 2.5], [1.0, 2.0])
        0.25
    """
    a, e = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if a.shape != e.shape:
        raise ValueError(f"shape {a.shape}, expected {e.shape}")
    if not np.all(np.isfinite(a)):
        return float("inf")
    return float(np.max(np.abs(a - e)) / np.max(np.abs(e)))


class Results:
    """Results of one adapter, each of whose functions is called once per problem.

    `result` raises `NotImplementedError`, with the reason, for a result that the adapter does not have.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.outcomes: dict[tuple[str, str], Any] = {}
        self._errors: dict[str, str] = {}  # test that met an error first

    def result(self, problem: Problem, answer: str) -> Any:
        """Return the adapter's result for an answer."""
        if answer == "steps":
            return self._once(problem, "steps", self._steps)
        if answer == "optimum":
            return self._once(problem, "optimum", self._optimum)
        function, _, key = answer.partition("_")
        if function == "gradient":
            value = self._once(problem, "gradient", self._gradient)[key]
            return np.tril(value) if key == "q_factor" else value
        if function == "predict":
            return self._once(problem, "predict", self._predict)[key]
        return self._once(problem, "bound", self._bound)[answer]

    def seen_before(self, error: Exception, test: str) -> str:
        """Return the test that met such an error before `test` did; empty if none has."""
        first = self._errors.setdefault(repr(error), test)
        return "" if first == test else first

    def _once(self, problem: Problem, what: str, compute: Callable[[Problem], Any]) -> Any:
        """Return what `compute` returns for a problem, or raise again what it raised."""
        place = (problem.name, what)
        if place not in self.outcomes:
            try:
                self.outcomes[place] = compute(problem)
            except Exception as error:
                self.outcomes[place] = error
        outcome = self.outcomes[place]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _bound(self, problem: Problem) -> Mapping[str, Any]:
        bound = self.adapter.function("bound")
        return _Returned("bound", _parts(bound(self.adapter.build(problem))))

    def _predict(self, problem: Problem) -> Mapping[str, Any]:
        predict = self.adapter.function("predict")
        return _Returned("predict", predict(self.adapter.build(problem), problem.X_test))

    def _gradient(self, problem: Problem) -> Mapping[str, Any]:
        gradient = self.adapter.function("gradient")
        return _Returned("gradient", gradient(self.adapter.build(problem)))

    def _steps(self, problem: Problem) -> list[Any]:
        """Return the bound after each step."""
        step, bound = self.adapter.function("step"), self.adapter.function("bound")
        model, bounds = self.adapter.build(problem), []
        for _ in range(STEPS):
            model = _moved(model, step(model, problem.gamma))
            bounds.append(_parts(bound(model))["bound"])
        return bounds

    def _optimum(self, problem: Problem) -> Any:
        """Return the bound after one step of size 1: with Gaussian noise it is the largest."""
        step, bound = self.adapter.function("step"), self.adapter.function("bound")
        model = self.adapter.build(problem)
        return _parts(bound(_moved(model, step(model, 1.0))))["bound"]


class _Returned(dict[str, Any]):
    """The dict that an adapter's function returned; reading a missing key raises `NotImplementedError`."""

    def __init__(self, function: str, values: Any) -> None:
        if not isinstance(values, Mapping):
            raise TypeError(f"{function} must return a dict, not {type(values).__name__}")
        super().__init__(values)
        self.function = function

    def __missing__(self, key: str) -> Any:
        raise NotImplementedError(f"{self.function} of the adapter returns no {key!r}")


def _parts(result: Any) -> Mapping[str, Any]:
    """Return what `bound` returned, a number or a dict, as a dict."""
    return result if isinstance(result, Mapping) else {"bound": result}


def _moved(model: Any, stepped: Any) -> Any:
    """Return the model after a step, which an adapter may take in place."""
    return model if stepped is None else stepped


def failure(
    problem: Problem, answer: str, got: npt.ArrayLike, precision: str, tolerance: float
) -> str:
    """Return why a result is no answer, in one paragraph; an empty string if it is one."""
    expected, test = problem.answers[answer], f"{problem.name}.{answer}"
    try:
        difference = relative_difference(got, expected)
    except ValueError as error:
        return f"{test}: {error}. {problem.info['purpose']}"
    if difference <= tolerance:
        return ""
    entry = _worst_entry(np.asarray(got, dtype=np.float64), expected)
    where = f" at {list(map(int, entry))}, where the difference is largest," if entry else ""
    a, e = (float(np.asarray(x, dtype=np.float64)[entry]) for x in (got, expected))
    return (
        f"{test}:{where} expected {e!r}, got {a!r}. The relative difference {difference:.1e} is above the "
        f"tolerance {tolerance:.0e} for {precision}. About the problem: {problem.info['purpose']}"
    )


def _worst_entry(got: Floats, expected: Floats) -> tuple[Any, ...]:
    """Return the index of the largest difference; a number that is not finite counts as the largest."""
    apart = np.where(np.isfinite(got), np.abs(got - expected), np.inf)
    return np.unravel_index(int(np.argmax(apart)), apart.shape)
