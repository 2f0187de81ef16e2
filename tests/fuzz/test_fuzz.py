"""A slice of `make fuzz`: files made wrong are refused in one line, by every parser, and touch nothing."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from campaign import run_campaign
from parsers import parsers
from watching import Door, watched

MUTATIONS = int(os.environ.get("SVGPBENCH_FUZZ", "240"))
PARSERS = dict(parsers())
UNSTRUCTURED = ("tables", "arguments")


@pytest.mark.parametrize("name", PARSERS)
def test_a_file_made_wrong_is_read_or_refused_in_one_line(name: str) -> None:
    parser = PARSERS[name]
    share = parser.share / sum(one.share for one in PARSERS.values())
    counts = run_campaign(name, parser, range(max(5, round(MUTATIONS * share))), seed=1)
    assert counts.failures == []
    if name not in UNSTRUCTURED:
        assert counts.reached >= 0.3 * counts.mutations


@pytest.mark.parametrize("name", [x for x in PARSERS if x not in UNSTRUCTURED])
def test_a_file_that_is_not_made_wrong_is_accepted(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("mutations.CHANGES", (lambda *_: None,))
    monkeypatch.setattr("campaign.UNREADABLE", 0.0)
    for module in ("mutated_text", "own_files"):
        monkeypatch.setattr(f"{module}.WHOLE_FILES", 0.0)
        monkeypatch.setattr(f"{module}.bytes_mutated", lambda raw, rng: raw)
    counts = run_campaign(name, PARSERS[name], range(4))
    assert (counts.failures, counts.accepted, counts.reached) == ([], 4, 4)


@pytest.mark.parametrize(("arguments", "may"), [(["--out", "x"], True), (["--json"], False)])
def test_a_command_writes_where_it_is_told_to_alone(
    tmp_path: Path, arguments: list[str], may: bool
) -> None:
    (tmp_path / "arguments.json").write_text(json.dumps(["data", "split", "pima", *arguments]))
    assert PARSERS["arguments"].writes(tmp_path) is may


def raises(folder: Path) -> None:
    raise KeyError("a key")


def hangs(folder: Path) -> None:
    while True:
        pass


def leaves_a_file(folder: Path) -> None:
    (folder / "left").write_text("")


def writes_elsewhere(folder: Path) -> None:
    (folder.parent / f"{folder.name} elsewhere").write_text("")


def says_two_lines(folder: Path) -> None:
    from svgpbench_datasets import DataError

    raise DataError("one\ntwo")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (raises, "KeyError: 'a key'"),
        (hangs, "HangsError: more than"),
        (leaves_a_file, "it wrote in the folder"),
        (writes_elsewhere, 'it wrote ["open '),
        (says_two_lines, "['one', 'two']"),
    ],
)
def test_each_kind_of_failure_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: object, why: str
) -> None:
    monkeypatch.setattr("watching.LIMIT_S", 0.1)
    folder = tmp_path / "files"
    folder.mkdir()
    door = Door(random, "random")
    try:
        outcome = watched(fault, folder, door)  # type: ignore[arg-type]
    finally:
        door.close()
    assert (outcome.end, outcome.reached) == ("failed", False)
    assert outcome.why.startswith(why)
