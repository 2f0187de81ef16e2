"""Examples in docstrings run, and print what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["svgpbench.posterior.fit", "svgpbench.sklearn"])
def test_examples_of_a_module_run(name: str) -> None:
    failed, run = doctest.testmod(importlib.import_module(name))
    assert (failed, run > 0) == (0, True)
