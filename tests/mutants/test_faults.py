"""Every declared fault fits the sources, so that a line that moves is noticed before `make mutants`."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from fault_files import ROOT, Fault, read_faults

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{x.area}-{at}" for at, x in enumerate(FAULTS)])
def test_a_fault_fits_its_function_and_has_tests(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    changed = fault.applied(source)
    assert changed != source, "nothing is changed"
    if fault.file.endswith(".py"):
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), "nothing is changed"
    assert fault.tests
    for test in fault.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), test
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), test


def test_every_fault_says_something_of_its_own() -> None:
    said = Counter((fault.area, fault.says) for fault in FAULTS)
    assert not [sentence for sentence, times in said.items() if times > 1]
