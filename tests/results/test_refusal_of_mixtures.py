"""Records of one row must agree in every setting but those that make replicates; walked by introspection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hand_records import cell, record
from pydantic import BaseModel, ValidationError

from svgpbench.config import CellConfig, DataConfig, SplitConfig
from svgpbench.errors import UserError
from svgpbench.results.mixtures import refuse_mixture
from svgpbench.results.records import Record

REPLICATES = {
    "experiment",
    "seed",
    "perturbation",
    "split.fold",
    "backend.name",
    "backend.mode",
    "backend.dtype",
    "backend.device",
    "data.path",  # what is in the file counts
}
"""In these the cells of one row may differ."""

OTHER_ROW = {"data.name", "data.factors", "method.label"}
"""What differs in these is another row."""

OWN_FILE = DataConfig(name="rows", path="rows.csv", target="y", task="regression")
BASE = cell().model_copy(update={"data": OWN_FILE})
ANY: tuple[Any, ...] = (
    True,
    False,
    7,
    0.25,
    "other",
    ("kernel",),
    ("x1", "x2"),
    (0.25,),
    (("N", 10.0),),
    {"tying": "untied"},
    {"M": 7.0},
    {"count": 7},
)
WITH_ITS_NAME = {"kernel.parts"}
"""What is valid with another name alone."""


def others_of(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, BaseModel]]:
    """The dotted name of every setting, and the model with another valid value there."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            for key, changed in others_of(value, f"{prefix}{name}."):
                yield key, model.model_copy(update={name: changed})
            continue
        if f"{prefix}{name}" in WITH_ITS_NAME:
            continue
        candidates = (*words_of(field.annotation), *ANY)
        made = [other for x in candidates if (other := _with(model, name, x))]
        assert made, f"none of the candidates fits {prefix}{name}: add one to ANY"
        yield f"{prefix}{name}", made[0]


def words_of(annotation: Any) -> Iterator[Any]:
    """The words of a `Literal`, at whatever depth of an annotation."""
    for part in get_args(annotation):
        yield from words_of(part) if get_args(part) else (part,)


def _with(model: BaseModel, name: str, candidate: Any) -> BaseModel | None:
    try:
        made = type(model).model_validate(dict(model) | {name: candidate})
    except ValidationError:
        return None
    return made if getattr(made, name) != getattr(model, name) else None


OTHERS: dict[str, Any] = dict(others_of(BASE))


def refused(*records: Record) -> str:
    with pytest.raises(UserError) as caught:
        refuse_mixture(records)
    return str(caught.value)


def test_the_walk_reaches_every_depth() -> None:
    assert {"jitter", "measures", "kernel.variance", "training.online.decay"} <= OTHERS.keys()
    assert set(OTHERS) >= REPLICATES | OTHER_ROW
    assert all(isinstance(changed, CellConfig) and changed != BASE for changed in OTHERS.values())


@pytest.mark.parametrize("key", sorted(OTHERS.keys() - REPLICATES - OTHER_ROW))
def test_a_setting_that_differs_within_a_row_is_refused_by_name(key: str) -> None:
    message = refused(record(BASE, -1.0), record(OTHERS[key], -2.0))
    # options are told one by one
    assert message.startswith(f"records of rows, A differ in {key}"), message


@pytest.mark.parametrize("key", sorted(REPLICATES | OTHER_ROW))
def test_replicates_and_other_rows_may_stand_together(key: str) -> None:
    refuse_mixture([record(BASE, -1.0), record(OTHERS[key], -2.0)])


def test_the_message_names_both_values_and_a_later_record_is_looked_at_too() -> None:
    records = [record(cell(fold=fold), -1.0) for fold in range(3)]
    odd = record(cell(fold=3, jitter=1e-5), -1.0)
    assert "differ in jitter (1e-06 and 1e-05)" in refused(*records, odd)
    # a row is held to its own first record and not to another row's
    refuse_mixture([*records, record(cell("boston", jitter=1e-5), -1.0)])


def test_the_numbers_of_the_data_must_be_the_same() -> None:
    other = record(cell(fold=1), -1.0, data={"fingerprint": "of other data"})
    message = refused(record(cell(), -1.0), other)
    assert "differ in data.fingerprint (of the data and of other data)" in message


def test_seeds_of_random_splits_are_replicates_and_those_of_folds_are_not() -> None:
    def of(kind: str, seed: int, **changes: Any) -> Record:
        split = SplitConfig.model_validate({"kind": kind, "seed": seed} | changes)
        return record(cell(split=split), -1.0)

    refuse_mixture([of("random", 0), of("random", 1)])
    assert "split.seed" in refused(of("k-fold", 0), of("k-fold", 1))
    assert "split.test_fraction" in refused(of("random", 0), of("random", 1, test_fraction=0.2))
    assert "split.kind" in refused(of("random", 0), of("k-fold", 0))
