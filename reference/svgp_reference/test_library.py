"""One test per problem and answer: `pytest --pyargs svgp_reference --adapter FILE`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svgp_reference
from svgp_reference.comparison import failure, relative_difference
from svgp_reference.options import KNOWN_FAILURES, RESULTS, all_tests


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every answer."""
    cases = [pytest.param(name, answer, id=test) for test, (name, answer) in all_tests().items()]
    metafunc.parametrize(("name", "answer"), cases)


def test_answer(
    name: str,
    answer: str,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    """Compare one result of the adapter with the answer, and record how far they are apart."""
    results, test = pytestconfig.stash[RESULTS], f"{name}.{answer}"
    known = pytestconfig.stash[KNOWN_FAILURES].get(test)
    problem, precision = svgp_reference.load(name), results.adapter.precision
    tolerance = problem.tolerance(answer, precision)
    if tolerance is None:
        pytest.skip(f"the condition number of K(Z, Z) is too large for {precision}")
    try:
        # here, as what cannot be an array of numbers is an error of the adapter
        got = np.asarray(results.result(problem, answer), dtype=np.float64)
    except NotImplementedError as error:
        pytest.skip(str(error) or "NotImplementedError")
    except Exception as error:
        if known is not None:
            pytest.xfail(known)
        if seen := results.seen_before(error, test):
            pytest.fail(f"{type(error).__name__} as in {seen}: {error}", pytrace=False)
        raise
    if got.shape == problem.answers[answer].shape:
        difference = relative_difference(got, problem.answers[answer])
        record_property("relative_difference", difference)
    why = failure(problem, answer, got, precision, tolerance)
    if known is not None:
        if why:
            pytest.xfail(known)
        why = f"{test} agrees now: take it off the list of known failures ({known})"
    if why:
        pytest.fail(why, pytrace=False)
