"""Records of several forms of the code, and of a plugin's earlier code, are named where they are used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_records import cell, environment, record

from svgpbench.comparison.inputs import folders
from svgpbench.errors import UserError
from svgpbench.experiments.identity import cell_code
from svgpbench.results.duplicates import LocatedRecord, deduplicate
from svgpbench.results.mixtures import several_forms
from svgpbench.results.records import Record, write_record


def made_by(elbo: float, commit: str, status: str = "ok", fold: int = 0, **code: str) -> Record:
    named = {
        f"{part} {name}": value for part, (name, value) in zip(code, _pairs(code), strict=True)
    }
    where = environment({}).model_copy(update={"code": named, "commit": commit})
    return record(cell(fold=fold), elbo, status=status).model_copy(update={"environment": where})


def _pairs(code: dict[str, str]) -> list[list[str]]:
    return [value.split(" ") for value in code.values()]


def test_forms_of_our_code_are_told_with_their_commits() -> None:
    one = made_by(1.0, "a" * 40, method="t-svgp svgpbench:1")
    two = made_by(1.0, "b" * 40, method="t-svgp svgpbench:2")
    (line,) = several_forms([one, two, one])
    assert line == (
        "records were made by 2 forms of the code of method t-svgp (commits aaaaaaaa, bbbbbbbb)"
    )
    assert not list(several_forms([one, one, record(cell(), 1.0)]))


def test_two_folders_say_whose_records_a_plugins_earlier_code_made(tmp_path: Path) -> None:
    now = cell_code(cell())["backend jax"]
    for folder, code in (("old", "acme:1"), ("new", now)):
        for fold in (0, 1):
            made = made_by(float(fold), "c" * 40, fold=fold, backend=f"jax {code}")
            write_record(tmp_path / folder, made.model_copy(update={"cell_id": f"{fold:016x}"}))
    notes = folders(tmp_path / "old", tmp_path / "new").notes
    assert notes == (
        f"{tmp_path}/old: 2 records were made by other code of backend jax of package acme and svgpbench",
    )


def test_a_later_failure_of_other_code_counts_and_a_mixture_is_named() -> None:
    then = made_by(1.0, "c" * 40, method="x acme:1")
    failed = made_by(0.0, "c" * 40, "error", method="x acme:2")
    failed = failed.model_copy(update={"started": then.started.replace(year=2100)})
    located = [LocatedRecord(Path(name), made) for name, made in (("a", then), ("b", failed))]
    (chosen,) = deduplicate(located, newest=True)
    assert chosen.record.status == "error"
    (chosen,) = deduplicate(located)
    assert chosen.record.status == "ok"
    other = made_by(2.0, "c" * 40, method="x acme:2")
    with pytest.raises(UserError, match="made by different code of method x of package acme"):
        deduplicate([located[0], LocatedRecord(Path("c"), other)])
