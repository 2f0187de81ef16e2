"""One address over http: time-outs, attempts, bounds, and going on where a transfer broke."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests
from pydantic import ValidationError
from requests.exceptions import InvalidSchema, InvalidURL, RequestException, TooManyRedirects
from urllib3.exceptions import ConnectTimeoutError, HTTPError, MaxRetryError, ProtocolError
from urllib3.util import Retry

from svgpbench_datasets.fetch.limits import Limits
from svgpbench_datasets.fetch.proof import Absent, Refusal
from svgpbench_datasets.files import Strict

_CHUNK = 1 << 16
_ABSENT = (403, 404, 410)  # object stores say 403 of what they do not have
_PASSING = (408, 416, 425, 429, 500, 502, 503, 504)
_LASTING = (TooManyRedirects, InvalidSchema, InvalidURL, ConnectTimeoutError)

Report = Callable[[str, int, int | None], None]


class Origin(Strict):
    """What the server said of the bytes: who vouches that the rest belongs to them."""

    validator: str | None = None  # a strong ETag or a date of last change, for If-Range
    total: int | None = None  # bytes in all


class Partial:
    """The bytes that came from one address so far, under a name that is no data file's.

    Whoever has one holds the lock of its address: it looks at the disk once.
    """

    def __init__(self, cache: Path, url: str) -> None:
        self.url, self.size, self.origin = url, 0, Origin()
        self.body = cache / ".partial" / hashlib.sha256(url.encode()).hexdigest()[:32]
        self._facts = self.body.with_suffix(".json")
        with suppress(FileNotFoundError, ValidationError):
            self.origin = Origin.model_validate_json(self._facts.read_bytes())
            self.size = self.body.stat().st_size
        self.in_pieces = self.size > 0

    def is_complete(self) -> bool:
        """Whether no byte is missing."""
        return self.size == self.origin.total

    def append(self, chunk: bytes) -> None:
        """Add bytes, and with the first of them what the server said: without that none are trusted."""
        with self.body.open("ab") as out:
            out.write(chunk)
        if not self.size:
            self._record()
        self.size += len(chunk)

    def begin(self, origin: Origin) -> None:
        """Forget what is held; the bytes that follow are of this origin."""
        self.drop()
        self.body.parent.mkdir(parents=True, exist_ok=True)
        self.origin = origin

    def end(self) -> None:
        """No byte follows."""
        self.origin = Origin(validator=self.origin.validator, total=self.size)
        self._record()

    def drop(self) -> None:
        """Remove bytes and facts."""
        self.body.unlink(missing_ok=True)
        self._facts.unlink(missing_ok=True)
        self.size, self.origin, self.in_pieces = 0, Origin(), False

    def _record(self) -> None:
        self._facts.write_text(self.origin.model_dump_json(), "utf-8")


class _Broken(Exception):  # noqa: N818 - a transfer, not a program
    """Worth another attempt, after the pause that the server asks for."""

    def __init__(self, why: str, pause_s: float | None = None) -> None:
        super().__init__(why)
        self.pause_s = pause_s or 0.0


def download(partial: Partial, bound: int, limits: Limits, report: Report) -> None:
    """Bring all bytes of an address, from where they stand; they are kept when the transfer breaks.

    `bound` is the most bytes accepted, declared or sent.

    Raises:
        Absent: the server does not have it.
        Refusal: it could not be had, and why.
    """
    retry = Retry(limits.attempts - 1, backoff_factor=limits.pause_s / 2)
    with requests.Session() as session:  # speaks http and https only: file:// is refused
        session.max_redirects = limits.redirects
        while not partial.is_complete():
            try:
                _go_on(session, partial, bound, limits, report)
            except _Broken as broken:
                try:
                    retry = retry.increment(error=broken)
                except MaxRetryError:
                    raise Refusal(f"{broken} (attempts: {limits.attempts})") from None
                pause = min(max(retry.get_backoff_time(), broken.pause_s), limits.longest_pause_s)
                report(f"{broken}; again in {pause:g} s", partial.size, None)
                time.sleep(pause)


def _go_on(
    session: requests.Session, partial: Partial, bound: int, limits: Limits, report: Report
) -> None:
    """Ask for the bytes that are missing, and write them as they come."""
    with _answer(session, partial, limits) as response:
        if response.status_code == requests.codes.partial_content:
            part = rf"bytes {partial.size}-\d+/(\*|{partial.origin.total or '[0-9]+'})"
            found = response.headers.get("Content-Range", "")
            if not partial.size or not re.fullmatch(part, found):
                partial.drop()
                raise _Broken("sent another part than was asked for")
            partial.in_pieces = True
        else:
            origin = _origin(response)
            if origin.total is not None and origin.total > bound:
                declared = f"declares {origin.total:,} bytes"
                raise Refusal(f"{declared} where at most {bound:,} are expected")
            partial.begin(origin)
        for chunk in _pieces(response, limits):
            if partial.size + len(chunk) > bound:
                partial.drop()
                raise Refusal(f"sent more than the {bound:,} bytes expected")
            partial.append(chunk)
            report("downloading", partial.size, partial.origin.total)
    if not partial.size:
        raise _Broken("sent nothing")
    partial.end()


@contextmanager
def _answer(
    session: requests.Session, partial: Partial, limits: Limits
) -> Iterator[requests.Response]:
    """A response with the missing bytes or with all; what else comes, or breaks on the way, is told."""
    headers: dict[str, str | None] = {"Accept-Encoding": "identity", "User-Agent": "svgpbench"}
    if partial.size:
        headers |= {"Range": f"bytes={partial.size}-", "If-Range": partial.origin.validator}
    times = (limits.connect_s, limits.silence_s)
    try:
        with session.get(partial.url, headers=headers, stream=True, timeout=times) as response:
            _check_status(response, partial)
            yield response
    except ProtocolError:  # fewer bytes than declared, a reset connection
        of_all = "" if partial.origin.total is None else f" of {partial.origin.total:,}"
        raise _Broken(f"broke off after {partial.size:,}{of_all} bytes") from None
    except (RequestException, HTTPError) as error:
        wrapped = error.args[0] if error.args else error
        cause = getattr(wrapped, "reason", wrapped)
        what = str(cause.args[-1] if isinstance(cause, Exception) else cause)
        what = re.sub(r"^\w+\(.*?\): ", "", what)  # the connection, which is named before
        lasting = isinstance(error, _LASTING) or isinstance(cause, _LASTING)
        raise (Refusal if lasting else _Broken)(f"connection failed ({what})") from None


def _check_status(response: requests.Response, partial: Partial) -> None:
    status, what = response.status_code, f"HTTP {response.status_code} {response.reason or ''}"
    if status in (requests.codes.ok, requests.codes.partial_content):
        return
    if status == requests.codes.requested_range_not_satisfiable:
        partial.drop()  # the file has changed: all of it is asked for next
    if status in _PASSING:
        raise _Broken(what, Retry().get_retry_after(response.raw))
    raise (Absent if status in _ABSENT else Refusal)(what)


def _origin(response: requests.Response) -> Origin:
    tag, length = (response.headers.get(name, "") for name in ("ETag", "Content-Length"))
    strong = tag if tag.startswith('"') else None  # W/"..." does not vouch for bytes
    total = int(length) if length.isdecimal() else None
    return Origin(validator=strong or response.headers.get("Last-Modified"), total=total or None)


def _pieces(response: requests.Response, limits: Limits) -> Iterator[bytes]:
    """What comes, as it comes: `read1` does not wait for more, so that no trickle outlasts the clock."""
    came, began = 0, time.monotonic()
    while chunk := response.raw.read1(_CHUNK, decode_content=False):
        yield chunk
        came, elapsed = came + len(chunk), time.monotonic() - began
        if elapsed > limits.patience_s and came < limits.slowest * elapsed:
            raise Refusal(f"slower than {limits.slowest:,.0f} bytes a second")
