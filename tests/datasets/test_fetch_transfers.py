"""One address that misbehaves: what is tried again, given up, refused."""

from __future__ import annotations

import gzip
import hashlib
import re
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Server
from wanted_files import CONTENT, FAST, IMPATIENT, answers, fetch_file, left_in, wanted

from svgpbench_datasets.fetch.limits import DownloadLimits, Progress

SIZE = len(CONTENT)


def why(cache: Path, *urls: str, limits: DownloadLimits = FAST, **more: Any) -> str:
    """What the last place answered."""
    return answers(cache, wanted(*urls, **more), limits=limits)[-1]


def test_a_file_is_fetched_once_and_then_needs_no_server(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT))
    seen: list[Progress] = []
    path = fetch_file(file, cache=cache, on_progress=seen.append)
    assert path == cache / "set/data.txt"
    assert path.read_bytes() == CONTENT
    assert left_in(cache) == {"set/data.txt"}
    assert path.stat().st_mode & 0o044 == 0o044 & ~_umask()
    assert seen[-1] == Progress("set/data.txt", "downloading", SIZE, SIZE)
    server.behaviours.clear()
    assert fetch_file(file, cache=cache) == path
    assert len(server.requests) == 1


def _umask() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    raise AssertionError("no umask")


def test_a_changed_byte_in_the_cache_is_noticed_and_replaced(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT))
    path = fetch_file(file, cache=cache)
    path.write_bytes(CONTENT[:-1] + b"x" * (CONTENT[-1:] != b"x"))
    assert fetch_file(file, cache=cache).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_wrong_bytes_are_refused_and_nothing_is_left(server: Server, cache: Path) -> None:
    other = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    answer = why(cache, server.serve("/f", other))
    assert answer == (
        f"wrong content: expected sha256 {hashlib.sha256(CONTENT).hexdigest()} (300,000 bytes), "
        f"got {hashlib.sha256(other).hexdigest()} (300,000 bytes)"
    )
    assert len(server.requests) == 1


def test_a_web_page_in_place_of_the_file_is_called_one(server: Server, cache: Path) -> None:
    assert why(cache, server.serve("/f", b"<!DOCTYPE html><p>moved")).endswith(", a web page")


def test_a_published_checksum_is_checked_too(server: Server, cache: Path) -> None:
    url = server.serve("/f", CONTENT)
    right, wrong = hashlib.md5(CONTENT).hexdigest(), "0" * 32
    assert f"expected md5 {wrong} (300,000 bytes), got {right}" in why(cache, url, md5=wrong)
    fetch_file(wanted(url, md5=right), cache=cache)


def test_a_declared_size_that_does_not_fit_is_refused(server: Server, cache: Path) -> None:
    url = server.serve("/f", CONTENT)
    assert why(cache, url, bytes=SIZE + 1) == "300,000 bytes where 300,001 are declared"
    assert why(cache, url, bytes=SIZE - 1) == "more than the 299,999 bytes declared"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which nobody waits for."""
    made: list[float] = []
    monkeypatch.setattr("time.sleep", made.append)
    return made


def test_500_twice_then_fine(server: Server, cache: Path, pauses: list[float]) -> None:
    file = wanted(server.serve("/f", CONTENT, failures=[500, 503]))
    seen: list[Progress] = []
    fetch_file(file, cache=cache, limits=DownloadLimits(), on_progress=seen.append)
    assert [request.status for request in server.asked("/f")] == [500, 503, 200]
    assert [each.doing for each in seen][:2] == [
        "HTTP 500 Internal Server Error; trying again",
        "HTTP 503 Service Unavailable; trying again",
    ]
    assert pauses == [1, 2]


@pytest.mark.parametrize(("asked", "given"), [("1", 1.0), ("86400", 60.0)])
def test_a_server_may_ask_for_a_pause_and_not_for_a_day(
    server: Server, cache: Path, pauses: list[float], asked: str, given: float
) -> None:
    file = wanted(server.serve("/f", CONTENT, failures=[429], retry_after=asked))
    seen: list[Progress] = []
    fetch_file(file, cache=cache, on_progress=seen.append)
    assert pauses[0] == given
    assert seen[0].doing == "HTTP 429 Too Many Requests; trying again"


@pytest.mark.parametrize("how", [{}, {"chunked": True}])
def test_a_transfer_that_broke_begins_again(
    server: Server, cache: Path, pauses: list[float], how: dict[str, Any]
) -> None:
    of_all = "" if how else " of 300,000"
    url = server.serve("/g", CONTENT, break_after=0, breaks=9, **how)
    assert why(cache, url) == f"broke off after 0{of_all} bytes (attempts: 2)"
    file = wanted(server.serve("/f", CONTENT, break_after=100_000, breaks=2, **how))
    seen: list[Progress] = []
    path = fetch_file(file, cache=cache, limits=DownloadLimits(), on_progress=seen.append)
    assert path.read_bytes() == CONTENT
    assert server.sent("/f") == SIZE + 200_000
    broke, _ = (each.doing for each in seen if each.doing != "downloading")
    assert re.fullmatch(rf"broke off after [0-9,]+{of_all} bytes; trying again", broke)
    assert left_in(cache) == {"set/data.txt"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_what_will_not_pass_is_not_tried_again(server: Server, cache: Path, status: int) -> None:
    assert why(cache, server.serve("/f", failures=[status] * 9)).startswith(f"HTTP {status} ")
    assert len(server.requests) == 1


def test_a_silent_server_times_out(server: Server, cache: Path) -> None:
    url = server.serve("/f", CONTENT, delay_s=60)
    began = time.monotonic()
    assert why(cache, url, limits=IMPATIENT) == "connection failed (Read timed out.) (attempts: 1)"
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("how", "refusal"),
    [
        ({"failures": [500] * 9}, "HTTP 500 Internal Server Error (attempts: 2)"),
        ({}, "sent nothing (attempts: 2)"),
    ],
)
def test_what_does_not_pass_is_given_up(
    server: Server, cache: Path, pauses: list[float], how: dict[str, Any], refusal: str
) -> None:
    assert why(cache, server.serve("/f", **how)) == refusal
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://127.0.0.1:9/f", "connection failed (Failed to establish a new connection: "),
        ("http://nowhere.invalid/f", "connection failed (Failed to resolve 'nowhere.invalid' "),
    ],
    ids=["no server", "no network"],
)
def test_where_nobody_answers_nobody_waits(
    cache: Path, monkeypatch: pytest.MonkeyPatch, url: str, refusal: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    began = time.monotonic()
    assert why(cache, url).startswith(refusal)
    assert time.monotonic() - began < 1


def test_certificates_that_are_not_there_are_no_fault_of_the_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    answer = why(cache, "https://127.0.0.1:9/f")
    assert answer.startswith("connection failed (Could not find a suitable TLS CA certificate")


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue drops connections on Linux")
def test_a_connection_that_is_not_made_times_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as deaf, ExitStack() as queue:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/f"
        limits = replace(FAST, connect_s=0.2)
        assert why(cache, url, limits=limits) == (
            "connection failed (Connection to 127.0.0.1 timed out. (connect timeout=0.2))"
        )


def test_redirects_are_followed(server: Server, cache: Path) -> None:
    server.serve("/there", CONTENT)
    file = wanted(server.serve("/f", location="/there"))
    assert fetch_file(file, cache=cache).read_bytes() == CONTENT
    assert server.sent("/there") == SIZE


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_a_redirect_away_from_http_is_refused(
    server: Server, cache: Path, tmp_path: Path, scheme: str
) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    answer = why(cache, server.serve("/f", location=f"{scheme}://{tmp_path}/f"))
    assert answer.startswith(f"connection failed (No connection adapters were found for '{scheme}:")
    assert len(server.requests) == 1


def test_a_redirect_loop_is_refused(server: Server, cache: Path) -> None:
    server.serve("/b", location="/f")
    assert (
        why(cache, server.serve("/f", location="/b")) == "connection failed (Exceeded 5 redirects.)"
    )


@pytest.mark.parametrize(
    "how",
    [
        {"location": "http://[bad/"},
        {"location": "http://\xff/"},
        {"declared": "9" * 5000},
        {"failures": [503], "retry_after": "9" * 5000},
        {"failures": [503], "retry_after": "Fri, 31 Dec 9999999999 23:59:59 GMT"},
    ],
    ids=["brackets", "bytes", "length", "pause", "date"],
)
def test_a_header_of_nonsense_is_an_answer_and_the_next_place_is_asked(
    server: Server, cache: Path, how: dict[str, Any]
) -> None:
    answer = why(cache, server.serve("/f", CONTENT, **how))
    assert answer.startswith("answered with a header that cannot be read (")
    assert len(server.requests) == 1
    file = wanted(server.serve("/f", CONTENT, **how), server.serve("/g", CONTENT))
    assert fetch_file(file, cache=cache).read_bytes() == CONTENT


def test_ten_declared_gigabytes_are_refused_before_they_are_read(
    server: Server, cache: Path
) -> None:
    url = server.serve("/f", CONTENT, declared=10_000_000_000)
    alone, archive = why(cache, url), why(cache, url, member="data.txt")
    assert alone == "declares 10,000,000,000 bytes where at most 1,354,576 are expected"
    assert archive == "declares 10,000,000,000 bytes where at most 1,073,741,824 are expected"
    assert len(server.requests) == 2


def test_a_length_that_is_not_declared_is_bounded_too(server: Server, cache: Path) -> None:
    url = server.serve("/f", CONTENT * 200, chunked=True)
    assert why(cache, url) == "sent more than the 1,354,576 bytes expected"
    assert server.sent("/f") < 20_000_000  # what the sockets hold


def test_chunked_bytes_are_a_file_too(server: Server, cache: Path) -> None:
    url = server.serve("/f", CONTENT, chunked=True)
    assert fetch_file(wanted(url), cache=cache).read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_a_gzip_bomb_stops_at_the_declared_size(server: Server, cache: Path) -> None:
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < 1 << 20
    began = time.monotonic()
    answer = why(cache, server.serve("/f.gz", bomb))
    assert answer == "more than the 300,000 bytes declared"
    assert time.monotonic() - began < 1


def test_a_content_encoding_that_nobody_asked_for_is_undone(server: Server, cache: Path) -> None:
    url = server.serve("/f", gzip.compress(CONTENT), encoding="gzip")
    assert fetch_file(wanted(url), cache=cache).read_bytes() == CONTENT
