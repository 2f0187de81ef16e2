"""A transfer that broke off: it goes on where its bytes can be trusted, and begins anew where not."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from wanted_files import CONTENT, FAST, fetch_file, left_in, wanted
from wayward_server import Server

from svgpbench_datasets.fetch.limits import Progress
from svgpbench_datasets.fetch.places import Unavailable

SIZE = len(CONTENT)
OLD = bytes(reversed(CONTENT))
TAG, OLD_TAG = (f'"{hashlib.md5(body).hexdigest()}"' for body in (CONTENT, OLD))
DATE = "Sat, 01 Mar 2025 10:00:00 GMT"
REST = "bytes=100000-"
WHOLE = (None, None, 200)

BROKEN = {  # how it is served, after the first 100,000 bytes; each request's Range, If-Range, status
    "twice": (
        {"breaks": 2},
        [WHOLE, (REST, TAG, 206), ("bytes=200000-", TAG, 206)],
    ),
    "by a date": (
        {"validator": None, "modified": DATE},
        [WHOLE, (REST, DATE, 206)],
    ),
    "without ranges": ({"ranges": False}, [WHOLE, (REST, TAG, 200)]),
    "without an ETag": ({"validator": None}, [WHOLE, (REST, None, 206)]),
    "by a weak ETag, which does not vouch for bytes": (
        {"validator": 'W/"1"'},
        [WHOLE, (REST, None, 206)],
    ),
    "and changed": ({"body": OLD, "after_change": CONTENT}, [WHOLE, (REST, OLD_TAG, 200)]),
    "and changed unnoticed: pieces that do not fit": (
        {"body": OLD, "after_change": CONTENT, "validator": None},
        [WHOLE, (REST, None, 206), WHOLE],
    ),
    "and has fewer bytes now": (
        {"body": CONTENT * 2, "break_after": SIZE, "after_change": CONTENT, "validator": None},
        [WHOLE, (f"bytes={SIZE}-", None, 416), WHOLE],
    ),
}


@pytest.mark.parametrize(("how", "requests"), BROKEN.values(), ids=BROKEN)
def test_a_transfer_that_broke_goes_on_or_begins_anew(
    server: Server,
    cache: Path,
    how: dict[str, Any],
    requests: list[tuple[str | None, str | None, int]],
) -> None:
    served = {"body": CONTENT, "break_after": 100_000, **how}
    file = wanted(server.serve("/f", **served))
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert [(one.range, one.if_range, one.status) for one in server.requests] == requests
    assert left_in(cache) == {"set/data.txt"}
    if all(status == 206 for _, _, status in requests[1:]):
        assert server.sent("/f") == SIZE


@pytest.mark.parametrize(
    "how",
    [{"wrong_range": True}, {"body": OLD + b"x", "after_change": CONTENT, "validator": None}],
    ids=["elsewhere", "of another whole"],
)
def test_another_part_than_asked_for_is_not_appended(
    server: Server, cache: Path, how: dict[str, Any]
) -> None:
    file = wanted(server.serve("/f", **{"body": CONTENT, "break_after": 100_000, **how}))
    seen: list[Progress] = []
    path = fetch_file(file, cache=cache, limits=FAST, on_progress=seen.append)
    assert path.read_bytes() == CONTENT
    assert [request.status for request in server.requests] == [200, 206, 200]
    broke, other = dict.fromkeys(each.doing for each in seen if each.doing != "downloading")
    assert re.fullmatch(r"broke off after 100,000 of 300,00[01] bytes; again in 0 s", broke)
    assert other == "sent another part than was asked for; again in 0.01 s"


def broken_off(cache: Path, url: str) -> Path:
    """The facts of the 70,000 bytes that came in one attempt."""
    with pytest.raises(
        Unavailable, match=r"broke off after 70,000 of 300,000 bytes \(attempts: 1\)"
    ):
        fetch_file(wanted(url), cache=cache, limits=replace(FAST, attempts=1))
    (facts,) = (cache / ".partial").glob("*.json")
    assert left_in(cache) == {f".partial/{name}" for name in (facts.stem, facts.name)}
    return facts


def test_a_later_run_goes_on_where_an_earlier_one_broke(server: Server, cache: Path) -> None:
    url = server.serve("/f", CONTENT, break_after=70_000)
    broken_off(cache, url)
    assert fetch_file(wanted(url), cache=cache, limits=FAST).read_bytes() == CONTENT
    assert server.sent("/f") == SIZE


@pytest.mark.parametrize("damage", ["facts", "odd facts", "few facts", "body", "no facts"])
def test_a_damaged_partial_file_is_never_taken_for_the_file(
    server: Server, cache: Path, damage: str
) -> None:
    url = server.serve("/f", CONTENT, break_after=70_000)
    facts = broken_off(cache, url)
    if damage == "facts":
        facts.write_text("{")
    elif damage == "odd facts":
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"total": "many"}))
    elif damage == "few facts":
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"total": 69_999}))
    elif damage == "no facts":
        facts.unlink()
    else:
        facts.with_suffix("").write_bytes(b"x" * SIZE)  # as long as the whole, and wrong
    assert fetch_file(wanted(url), cache=cache, limits=FAST).read_bytes() == CONTENT
    assert server.requests[-1].range is None
    assert left_in(cache) == {"set/data.txt"}
