"""One test per problem and answer: `pytest --pyargs svgp_reference --adapter FILE`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svgp_reference
from svgp_reference.comparison import Results, failure, relative_difference
from svgp_reference.options import KNOWN_FAILURES, RESULTS, all_tests

NO_ADAPTER = (
    "no adapter: run `pytest --pyargs svgp_reference --adapter FILE`; "
    "FILE is a Python file with a function build(problem)"
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every answer; a known failure must fail."""
    stash = metafunc.config.stash
    if stash.get(RESULTS, None) is None:
        nothing = pytest.param(
            None, "", "", marks=pytest.mark.skip(reason=NO_ADAPTER), id="no-adapter"
        )
        metafunc.parametrize(("results", "name", "answer"), [nothing])
        return
    known = stash[KNOWN_FAILURES]
    cases = [
        pytest.param(
            stash[RESULTS],
            name,
            answer,
            id=test,
            marks=[pytest.mark.xfail(reason=known[test], strict=True)] if test in known else [],
        )
        for test, (name, answer) in all_tests().items()
    ]
    metafunc.parametrize(("results", "name", "answer"), cases)


def test_answer(
    results: Results,
    name: str,
    answer: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Compare one result of the adapter with the answer, and record how far they are apart."""
    problem, precision = svgp_reference.load(name), results.adapter.precision
    tolerance = problem.tolerance(answer, precision)
    if tolerance is None:
        pytest.skip(f"the condition number of K(Z, Z) is too large for {precision}")
    try:
        got = results.result(problem, answer)
    except NotImplementedError as error:
        pytest.skip(str(error) or "NotImplementedError")
    if np.shape(got) == problem.answers[answer].shape:
        difference = relative_difference(got, problem.answers[answer])
        record_property("relative_difference", difference)
    if why := failure(problem, answer, got, precision, tolerance):
        pytest.fail(why, pytrace=False)
