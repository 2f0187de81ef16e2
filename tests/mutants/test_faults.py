"""Every declared fault fits the sources, so that a line that moves is noticed before `make mutants`."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from fault_files import ROOT, Fault, StaleError, read_faults

FAULTS = read_faults()


@cache
def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""


@cache
def tree(path: str) -> str:
    return ast.dump(ast.parse(text(path)))


def misfits(fault: Fault) -> list[str]:
    """Say why a fault changes nothing or names a test that is not there."""
    source = text(fault.file)
    try:
        changed = fault.applied(source)
    except StaleError as error:
        return [f"{fault.says}: {error}"]
    found = []
    python = fault.file.endswith(".py")
    if changed == source or (python and ast.dump(ast.parse(changed)) == tree(fault.file)):
        found.append(f"{fault.says}: nothing is changed")
    if not fault.tests:
        found.append(f"{fault.says}: no tests")
    for test in fault.tests:
        path, _, name = test.partition("::")
        if not (ROOT / path).exists() or (
            name and f"def {name.partition('[')[0]}(" not in text(path)
        ):
            found.append(f"{fault.says}: no test {test}")
    return found


@pytest.mark.parametrize("area", sorted({fault.area for fault in FAULTS}))
def test_faults_of_an_area_fit_their_functions_and_have_tests(area: str) -> None:
    assert not [why for fault in FAULTS if fault.area == area for why in misfits(fault)]


def test_faults_that_do_not_fit_are_found() -> None:
    good = next(fault for fault in FAULTS if fault.file.endswith(".py"))
    changed = {
        "old": replace(good, old="no such line"),
        "new": replace(good, new=good.old),
        "tests": replace(good, tests=("tests/nowhere.py",)),
        "name": replace(good, tests=("tests/conftest.py::test_of_no_name",)),
    }
    assert not misfits(good)
    assert {name: len(misfits(fault)) for name, fault in changed.items()} == dict.fromkeys(
        changed, 1
    )


def test_every_fault_says_something_of_its_own() -> None:
    said = Counter((fault.area, fault.says) for fault in FAULTS)
    assert not [sentence for sentence, times in said.items() if times > 1]
