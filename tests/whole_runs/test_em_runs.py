"""The EM loop against the second program, number by number."""

from __future__ import annotations

import pytest
from both_sides import compare, package_run, program_of
from cases import CASES

from svgpbench.backends import load_backend
from svgpbench.ops import Ops


@pytest.fixture(scope="module")
def numpy() -> Ops:
    return load_backend("numpy")


@pytest.mark.parametrize("name", CASES)
def test_numpy_runs_as_the_second_program_does(numpy: Ops, name: str) -> None:
    compare(package_run(numpy, CASES[name]), program_of(name), CASES[name].tolerance)


IN_CHUNKS = [
    name for name, case in CASES.items() if case.settings["batch_size"] or case.method == "sgpr"
]


@pytest.mark.parametrize("name", IN_CHUNKS)
def test_numpy_in_chunks_runs_as_the_second_program_does(
    numpy: Ops, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 7)
    trainer = package_run(numpy, CASES[name])
    assert len(list(trainer.batches.chunks(trainer.state.raw.inducing))) == 6
    compare(trainer, program_of(name), CASES[name].tolerance)
