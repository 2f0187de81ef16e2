"""The EM loop against the second program, number by number."""

from __future__ import annotations

import pytest
from both_sides import compare, package_run, program_run
from cases import CASES

from svgpbench.ops import Ops
from svgpbench.plugins import load_backend


@pytest.fixture(scope="module")
def numpy() -> Ops:
    return load_backend("numpy")


@pytest.mark.parametrize("name", CASES)
def test_numpy_runs_as_the_second_program_does(numpy: Ops, name: str) -> None:
    case = CASES[name]
    compare(package_run(numpy, case), program_run(case).run())
