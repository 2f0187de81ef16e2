"""One address over http: timeouts, attempts, bounds, and going on where a transfer broke."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import requests
import urllib3

from svgpbench_datasets.fetch.answers import Absent, Refusal
from svgpbench_datasets.fetch.limits import Limits
from svgpbench_datasets.fetch.partial import Origin, Partial

_CHUNK = 1 << 16
_ABSENT = (403, 404, 410)  # object stores say 403 of what they do not have
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_PAUSE_S = 60.0
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

Report = Callable[[str, int, int | None], None]


class _Broken(Refusal):
    """Worth another attempt; `pause_s` is what the server asks for."""

    def __init__(self, why: str, pause_s: float = 0.0) -> None:
        super().__init__(why)
        self.pause_s = pause_s


def download(url: str, partial: Partial, bound: int, limits: Limits, report: Report) -> bool:
    """Bring all bytes of an address into a partial file, from where it stands.

    Args:
        url: http or https.
        partial: receives the bytes; kept when the transfer breaks.
        bound: the most bytes accepted, declared or sent.
        limits: times and attempts.
        report: called with what is done, the bytes there are and the bytes in all.

    Returns:
        True where some bytes were there from an earlier transfer or attempt.

    Raises:
        Absent: the server does not have it.
        Refusal: it could not be had, and why.
    """
    resumed = False
    for attempt in range(1, limits.attempts + 1):
        try:
            resumed |= _attempt(url, partial, bound, limits, report)
            return resumed
        except _Broken as broken:
            if attempt == limits.attempts:
                times = "attempt" if attempt == 1 else "attempts"
                raise Refusal(f"{broken} ({attempt} {times})") from None
            resumed |= partial.origin() is not None
            pause = min(max(limits.pause_s * 2 ** (attempt - 1), broken.pause_s), _LONGEST_PAUSE_S)
            report(f"{broken}; again in {pause:g} s", partial.size(), None)
            time.sleep(pause)
        finally:
            if not partial.size():
                partial.drop()
    raise Refusal("no attempt was allowed")


def _attempt(url: str, partial: Partial, bound: int, limits: Limits, report: Report) -> bool:
    if partial.is_complete():
        return True
    origin = partial.origin()
    held = partial.size() if origin else 0
    with _asked(url, origin, held, limits) as response:
        if response.status_code == requests.codes.partial_content:
            _check_continues(response, origin, held, partial)
        else:
            _check_status(response, partial)
            origin, held = _origin(url, response), 0
            _check_declared(origin.total, bound)
            partial.begin(origin)
        total = origin.total if origin else None
        try:
            size = _receive(response, partial, held, total, bound, limits, report)
        except urllib3.exceptions.ProtocolError:  # fewer bytes than declared, a reset connection
            of_all = "" if total is None else f" of {total:,}"
            raise _Broken(f"broke off after {partial.size():,}{of_all} bytes") from None
    if size == 0:
        raise _Broken("sent nothing")
    partial.record(Origin(url, origin.validator if origin else None, size))
    return held > 0


@contextmanager
def _asked(
    url: str, origin: Origin | None, held: int, limits: Limits
) -> Iterator[requests.Response]:
    """The response to a GET, with what the network does on the way told as a refusal."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "svgpbench"}
    if origin:
        headers["Range"] = f"bytes={held}-"
        if origin.validator:
            headers["If-Range"] = origin.validator
    try:
        with requests.Session() as session:  # speaks http and https only: file:// is refused
            session.max_redirects = limits.redirects
            times = (limits.connect_s, limits.silence_s)
            with session.get(url, headers=headers, stream=True, timeout=times) as response:
                yield response
    except requests.exceptions.TooManyRedirects:
        raise Refusal(f"more than {limits.redirects} redirects") from None
    except (requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL) as error:
        raise Refusal(f"redirects to what is not http: {_short(error)}") from None
    except requests.exceptions.ConnectTimeout:
        raise Refusal(f"no connection within {limits.connect_s:g} s") from None
    except (requests.exceptions.ReadTimeout, urllib3.exceptions.ReadTimeoutError):
        raise _Broken(f"silent for {limits.silence_s:g} s") from None
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        what = f"connection failed ({_short(error)})"
        if isinstance(_cause(error), urllib3.exceptions.NewConnectionError):
            raise Refusal(what) from None  # no network here, no server: more of it costs only time
        raise _Broken(what) from None


def _check_status(response: requests.Response, partial: Partial) -> None:
    status = response.status_code
    if status == requests.codes.ok:
        return
    what = f"HTTP {status} {response.reason or ''}".strip()
    if status == requests.codes.requested_range_not_satisfiable:
        partial.drop()
        raise _Broken(what)
    if status in _ABSENT:
        raise Absent(what)
    if status in _PASSING:
        asked = response.headers.get("Retry-After", "")
        raise _Broken(what, float(asked) if asked.isdecimal() else 0.0)
    raise Refusal(what)


def _check_continues(
    response: requests.Response, origin: Origin | None, held: int, partial: Partial
) -> None:
    """The part that came must be the one asked for, of a whole of the same size."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    same = (
        found is not None
        and origin is not None
        and int(found[1]) == held
        and (found[2] == "*" or origin.total in (None, int(found[2])))
    )
    if not same:
        partial.drop()
        raise _Broken("sent another part than was asked for")


def _origin(url: str, response: requests.Response) -> Origin:
    tag = response.headers.get("ETag", "")
    strong = tag if tag.startswith('"') else None  # W/"..." does not vouch for bytes
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    return Origin(url, strong or response.headers.get("Last-Modified"), total)


def _check_declared(total: int | None, bound: int) -> None:
    if total is not None and total > bound:
        raise Refusal(f"declares {total:,} bytes where at most {bound:,} are expected")


def _receive(
    response: requests.Response,
    partial: Partial,
    size: int,
    total: int | None,
    bound: int,
    limits: Limits,
    report: Report,
) -> int:
    """Append what comes to the partial file; the size that it has then."""
    start, began = size, time.monotonic()
    with partial.body.open("ab") as out:
        # read1 returns what has come, so that a trickle cannot outlast the clock
        while chunk := response.raw.read1(_CHUNK, decode_content=False):
            size += len(chunk)
            if size > bound:
                partial.drop()
                raise Refusal(f"sent more than the {bound:,} bytes expected")
            out.write(chunk)
            report("downloading", size, total)
            elapsed = time.monotonic() - began
            if elapsed > limits.patience_s and size - start < limits.slowest * elapsed:
                raise Refusal(f"slower than {limits.slowest:,.0f} bytes a second")
    return size


def _cause(error: Exception) -> object:
    """What the network libraries wrap."""
    reason = error.args[0] if error.args else error
    return getattr(reason, "reason", reason)


def _short(error: Exception) -> str:
    """The cause in one line, without the connection that it names first."""
    text = " ".join(str(_cause(error)).split())
    return re.sub(r"^\w+\(.*?\): ", "", text)
