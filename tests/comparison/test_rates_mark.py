"""What an experiment file says of its rates: checked against its methods, and no part of a cell."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from svgpbench.comparison.advice import marks
from svgpbench.experiments import Experiment, resolve, shipped_experiments


def file_of(name: str, **changes: Any) -> Experiment:
    parts = tomllib.loads(shipped_experiments()[name].read_text("utf-8"))
    return Experiment.model_validate_json(json.dumps(parts | changes))


def test_a_mark_that_the_methods_fit_is_taken() -> None:
    assert file_of("adam2021-rates").rates == "searched"
    assert file_of("cheng2017-table2").rates == "searched"
    assert file_of("kobe2021-optima").rates == "none needed"
    assert file_of("adam2021-fig3").rates == "as printed"


@pytest.mark.parametrize(
    ("name", "mark", "why"),
    [
        ("kobe2021-fig4.7", "searched", "has one rate"),
        ("beyond", "searched", "has one rate"),
        ("beyond", "none needed", "is trained with a rate"),
        ("cheng2017-table2", "none needed", "is trained with a rate"),
        ("kobe2021-fig4.1", "none needed", "method 'Adam.*' is trained with a rate"),
    ],
)
def test_a_mark_that_a_method_contradicts_is_refused(name: str, mark: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        file_of(name, rates=mark)


def test_the_mark_is_no_part_of_a_cell() -> None:
    with_mark, without = file_of("adam2021-rates"), file_of("adam2021-rates", rates="as printed")
    assert resolve(with_mark, "quick") == resolve(without, "quick")


def test_an_experiment_of_the_users_own_has_its_mark_from_its_file() -> None:
    own = file_of("adam2021-rates").model_copy(update={"name": "own"})
    assert marks([own])["own"] == "searched"
    assert "own" not in marks([])
