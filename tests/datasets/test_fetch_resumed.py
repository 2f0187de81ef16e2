"""A transfer that broke off: it goes on where its bytes can be trusted, and begins anew where not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from wanted_files import CONTENT, FAST, fetch_file, left_in, wanted
from wayward_server import Server

from svgpbench_datasets.fetch import Progress, Unavailable

SIZE = len(CONTENT)


def test_a_broken_transfer_goes_on_where_it_broke(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=100_000, breaks=2))
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    first, second, third = server.asked("/f")
    tag = f'"{hashlib.md5(CONTENT).hexdigest()}"'
    assert (first.range, second.range, third.range) == (None, "bytes=100000-", "bytes=200000-")
    assert second.if_range == third.if_range == tag
    assert (first.status, second.status, third.status) == (200, 206, 206)
    assert server.sent("/f") == SIZE
    assert left_in(cache) == {"set/data.txt"}


def test_a_later_run_goes_on_where_an_earlier_one_broke(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=70_000))
    with pytest.raises(
        Unavailable, match=r"broke off after 70,000 of 300,000 bytes \(attempts: 1\)"
    ):
        fetch_file(file, cache=cache, limits=replace(FAST, attempts=1))
    kept = left_in(cache)
    assert len(kept) == 2
    assert all(name.startswith(".partial/") for name in kept)
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert server.sent("/f") == SIZE


def test_without_range_support_the_whole_comes_again(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=100_000, ranges=False))
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert server.sent("/f") == SIZE + 100_000


def test_a_server_without_etag_is_resumed_too(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=100_000, validator=None))
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert [request.if_range for request in server.asked("/f")] == [None, None]
    assert server.sent("/f") == SIZE


def test_a_weak_etag_does_not_vouch_for_bytes(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=100_000, validator='W/"1"'))
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert [request.if_range for request in server.asked("/f")] == [None, None]


def test_a_file_that_changed_upstream_in_between_is_not_pieced_together(
    server: Server, cache: Path
) -> None:
    old = bytes(reversed(CONTENT))
    file = wanted(server.serve("/f", old, break_after=100_000, after_change=CONTENT))
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert [request.status for request in server.asked("/f")] == [200, 200]


def test_pieces_that_do_not_fit_are_dropped_and_all_is_fetched_anew(
    server: Server, cache: Path
) -> None:
    old = bytes(reversed(CONTENT))
    url = server.serve("/f", old, break_after=100_000, after_change=CONTENT, validator=None)
    assert fetch_file(wanted(url), cache=cache, limits=FAST).read_bytes() == CONTENT
    assert [request.status for request in server.asked("/f")] == [200, 206, 200]
    assert left_in(cache) == {"set/data.txt"}


def test_another_part_than_asked_for_is_not_appended(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=100_000, wrong_range=True))
    seen: list[Progress] = []
    path = fetch_file(file, cache=cache, limits=FAST, on_progress=seen.append)
    assert path.read_bytes() == CONTENT
    assert "sent another part than was asked for; again in 0.01 s" in {p.doing for p in seen}
    assert [request.status for request in server.asked("/f")] == [200, 206, 200]


@pytest.mark.parametrize("damage", ["facts", "odd facts", "body", "no facts", "other url"])
def test_a_damaged_partial_file_is_never_taken_for_the_file(
    server: Server, cache: Path, damage: str
) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=70_000))
    with pytest.raises(Unavailable):
        fetch_file(file, cache=cache, limits=replace(FAST, attempts=1))
    (facts,) = (cache / ".partial").glob("*.json")
    body = facts.with_suffix("")
    if damage == "facts":
        facts.write_text("{")
    elif damage == "odd facts":
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"total": "many"}))
    elif damage == "no facts":
        facts.unlink()
    elif damage == "other url":
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"url": "http://other/"}))
    else:
        body.write_bytes(b"x" * SIZE)  # as long as the whole, and wrong
    assert fetch_file(file, cache=cache, limits=FAST).read_bytes() == CONTENT
    assert server.requests[-1].range is None
    assert left_in(cache) == {"set/data.txt"}
