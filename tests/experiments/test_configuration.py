"""The words of a configuration: which values it takes, and the title of a backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from svgpbench.config import (
    BackendConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    SplitConfig,
    Strict,
)
from svgpbench.errors import UserError
from svgpbench.likelihoods import build_likelihood


@pytest.mark.parametrize(
    ("part", "name", "taken", "refused"),
    [
        (SplitConfig, "fold", [0, 4], [-1]),
        (SplitConfig, "test_fraction", [0.01, 0.99], [0.0, 1.0, 1.5]),
    ],
)
def test_a_number_is_taken_within_its_bounds(
    part: type[Strict], name: str, taken: list[Any], refused: list[Any]
) -> None:
    for value in taken:
        assert getattr(part(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(ValidationError, match=name):
            part(**{name: value})


@pytest.mark.parametrize(
    ("name", "option", "taken", "refused"),
    [
        ("bernoulli-probit", "nodes", [2, 400], [1, 401]),
        ("bernoulli-probit", "squash", [0.0, 0.49], [-0.1, 0.5, 1.0]),
        ("robust-max", "epsilon", [0.1, 0.49], [0.0, 0.5]),
    ],
)
def test_an_option_of_a_likelihood_is_taken_within_its_bounds(
    name: str, option: str, taken: list[Any], refused: list[Any]
) -> None:
    for value in taken:
        built = build_likelihood(LikelihoodConfig.model_validate({"name": name, option: value}))
        assert getattr(built, option) == value
    for value in refused:
        with pytest.raises(UserError, match=option):
            build_likelihood(LikelihoodConfig.model_validate({"name": name, option: value}))


def test_options_may_be_numbers_of_numpy() -> None:
    """As a grid search gives them; a cell is stored and sent as JSON."""
    tables = (
        LikelihoodConfig(name="poisson", nodes=np.int64(5)),
        KernelConfig(name="se", lengthscale=np.array([1.0, 2.0]), period=np.float32(0.5)),
        InducingConfig(init="some", count=np.int64(5), rows=np.int64(9)),
        MethodConfig(name="q-svgp", options={"count": np.int64(3), "whiten": np.bool_(True)}),
    )
    for table in tables:
        assert type(table).model_validate_json(table.model_dump_json()) == table
    assert build_likelihood(tables[0]) == build_likelihood(
        LikelihoodConfig(name="poisson", nodes=5)
    )
    assert [type(x) for x in tables[3].options.values()] == [int, bool]


def test_a_backend_s_title_has_what_is_not_the_default() -> None:
    titles = {
        "numpy": BackendConfig(name="numpy"),
        "jax:eager": BackendConfig(name="jax", mode="eager"),
        "torch float32": BackendConfig(name="torch", dtype="float32"),
        "torch cuda": BackendConfig(name="torch", device="cuda"),
        "jax:eager float32 cuda": BackendConfig(
            name="jax", mode="eager", dtype="float32", device="cuda"
        ),
    }
    assert {title: backend.title for title, backend in titles.items()} == dict(
        zip(titles, titles, strict=True)
    )
