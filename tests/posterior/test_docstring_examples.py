"""Examples in docstrings run, and print what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("fit", "posterior", "saved", "exchanged", "evidence_bounds", "inducing_counts")


@pytest.mark.parametrize(
    "name",
    ["svgpbench.api", "svgpbench.sklearn", *(f"svgpbench.posterior.{name}" for name in MODULES)],
)
def test_examples_of_a_module_run(name: str) -> None:
    failed, run = doctest.testmod(importlib.import_module(name))
    assert (failed, run > 0) == (0, True)
