"""Download from one http(s) address, with time-outs, retries, size bounds and resumed transfers."""

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
_ABSENT = (403, 404, 410)  # object stores answer 403 for a missing object
_PASSING = (408, 416, 425, 429, 500, 502, 503, 504)
_LASTING = (TooManyRedirects, InvalidSchema, InvalidURL, ConnectTimeoutError)

Report = Callable[[str, int, int | None], None]


class Origin(Strict):
    """Validator and size that the server sent, to check that a resumed transfer is of the same file."""

    validator: str | None = None  # a strong ETag or Last-Modified, for If-Range
    total: int | None = None  # size in bytes


class Partial:
    """Bytes received so far from one address, stored in the cache outside its data files.

    The disk is read only on construction, so the caller must hold the lock of the address.
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
        """Return True if all bytes have been received."""
        return self.size == self.origin.total

    def append(self, chunk: bytes) -> None:
        """Append bytes; with the first of them record the origin, without which they are not reused."""
        with self.body.open("ab") as out:
            out.write(chunk)
        if not self.size:
            self._record()
        self.size += len(chunk)

    def begin(self, origin: Origin) -> None:
        """Remove all bytes and start a transfer from `origin`."""
        self.drop()
        self.body.parent.mkdir(parents=True, exist_ok=True)
        self.origin = origin

    def end(self) -> None:
        """Record that all bytes have been received."""
        self.origin = Origin(validator=self.origin.validator, total=self.size)
        self._record()

    def drop(self) -> None:
        """Remove the bytes and the record of their origin."""
        self.body.unlink(missing_ok=True)
        self._facts.unlink(missing_ok=True)
        self.size, self.origin, self.in_pieces = 0, Origin(), False

    def _record(self) -> None:
        self._facts.write_text(self.origin.model_dump_json(), "utf-8")


class _Broken(Exception):  # noqa: N818 - a transfer, not a program
    """Error of a transfer to be tried again, after the pause that the server asks for."""

    def __init__(self, why: str, pause_s: float | None = None) -> None:
        super().__init__(why)
        self.pause_s = pause_s or 0.0


def download(partial: Partial, bound: int, limits: Limits, report: Report) -> None:
    """Download all missing bytes of an address; received bytes are kept if the transfer breaks.

    `bound` is the most bytes accepted, declared or sent.

    Raises:
        Absent: the server does not have the file.
        Refusal: the download failed for another reason.
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
    """Request the missing bytes and store them as they arrive."""
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
    """Yield a response with the missing or with all bytes; raise `Refusal` or `_Broken` on a failure."""
    headers: dict[str, str | None] = {"Accept-Encoding": "identity", "User-Agent": "svgpbench"}
    if partial.size:
        headers |= {"Range": f"bytes={partial.size}-", "If-Range": partial.origin.validator}
    times = (limits.connect_s, limits.silence_s)
    try:
        with session.get(partial.url, headers=headers, stream=True, timeout=times) as response:
            _check_status(response, partial)
            yield response
    except ProtocolError:  # fewer bytes than declared, or a reset connection
        of_all = "" if partial.origin.total is None else f" of {partial.origin.total:,}"
        raise _Broken(f"broke off after {partial.size:,}{of_all} bytes") from None
    except (RequestException, HTTPError) as error:
        wrapped = error.args[0] if error.args else error
        cause = getattr(wrapped, "reason", wrapped)
        what = str(cause.args[-1] if isinstance(cause, Exception) else cause)
        what = re.sub(r"^\w+\(.*?\): ", "", what)  # drop the repr of the connection
        lasting = isinstance(error, _LASTING) or isinstance(cause, _LASTING)
        raise (Refusal if lasting else _Broken)(f"connection failed ({what})") from None


def _check_status(response: requests.Response, partial: Partial) -> None:
    status, what = response.status_code, f"HTTP {response.status_code} {response.reason or ''}"
    if status in (requests.codes.ok, requests.codes.partial_content):
        return
    if status == requests.codes.requested_range_not_satisfiable:
        partial.drop()  # the file has changed: request all of it next
    if status in _PASSING:
        raise _Broken(what, Retry().get_retry_after(response.raw))
    raise (Absent if status in _ABSENT else Refusal)(what)


def _origin(response: requests.Response) -> Origin:
    tag, length = (response.headers.get(name, "") for name in ("ETag", "Content-Length"))
    strong = tag if tag.startswith('"') else None  # W/"..." does not identify bytes
    total = int(length) if length.isdecimal() else None
    return Origin(validator=strong or response.headers.get("Last-Modified"), total=total or None)


def _pieces(response: requests.Response, limits: Limits) -> Iterator[bytes]:
    """Yield bytes as they arrive; raise `Refusal` if the transfer is too slow.

    `read1` does not wait for a full chunk, so that the speed of a slow transfer is checked in time.
    """
    came, began = 0, time.monotonic()
    while chunk := response.raw.read1(_CHUNK, decode_content=False):
        yield chunk
        came, elapsed = came + len(chunk), time.monotonic() - began
        if elapsed > limits.patience_s and came < limits.slowest * elapsed:
            raise Refusal(f"slower than {limits.slowest:,.0f} bytes a second")
