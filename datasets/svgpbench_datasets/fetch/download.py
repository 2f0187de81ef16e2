"""Download of one http(s) address by pooch, with a bound on its size."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path

import pooch
import requests
from requests.exceptions import InvalidSchema, InvalidURL, TooManyRedirects
from urllib3.exceptions import ConnectTimeoutError, HTTPError, ProtocolError
from urllib3.util import Retry

from svgpbench_datasets.fetch.limits import DownloadLimits
from svgpbench_datasets.fetch.verification import Absent, Refusal
from svgpbench_datasets.reading.cells import reason

_CHUNK, _NAME = 1 << 16, "served"
# identity: a packed file is hashed as it is stored, so the server must not compress it again
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "svgpbench"}
_NOT_FOUND = (403, 404, 410)  # object stores answer 403 for a missing object
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_PERMANENT = (TooManyRedirects, InvalidSchema, InvalidURL, ConnectTimeoutError)

Report = Callable[[str, int, int | None], None]


class _BrokenError(Exception):
    """Error of a transfer that may succeed later, after the pause that the server asks for."""

    def __init__(self, why: str, pause_s: float = 0.0) -> None:
        super().__init__(why)
        self.pause_s = pause_s


def download(url: str, folder: Path, bound: int, limits: DownloadLimits, report: Report) -> Path:
    """Download an address into a folder, unless it is there already; return the path of its bytes.

    `bound` is the most bytes accepted, declared or sent. A partial download is not kept.

    Raises:
        Absent: the server does not have the file.
        Refusal: the download failed for another reason.
    """

    def attempt(_url: str, output: str, _pooch: object) -> None:
        for attempts in itertools.count(1):
            try:
                return _transfer(url, Path(output), bound, limits, report)
            except _BrokenError as broken:
                if attempts >= limits.attempts:
                    raise Refusal(f"{broken} (attempts: {attempts})") from None
                report(f"{broken}; trying again", 0, None)
                # 1, 2, 3 s, or what the server asks for if that is longer
                time.sleep(min(max(broken.pause_s, attempts), limits.longest_pause_s))

    pooch.get_logger().setLevel("ERROR")  # `report` is called instead
    # pooch gets no hash: what is verified is the content after unpacking
    files = pooch.create(folder, "", registry={_NAME: None}, urls={_NAME: url})
    return Path(files.fetch(_NAME, downloader=attempt))


def _transfer(url: str, output: Path, bound: int, limits: DownloadLimits, report: Report) -> None:
    """Write the bytes of an address to a file; raise `Refusal` or `_BrokenError` on a failure."""
    size, total, times = 0, 0, (limits.connect_s, limits.silence_s)
    with requests.Session() as session, output.open("wb") as out:
        session.max_redirects = limits.redirects
        try:  # a session speaks http and https only: file:// is refused
            with session.get(url, headers=_HEADERS, stream=True, timeout=times) as response:
                status = response.status_code
                what = f"HTTP {status} {response.reason or ''}"
                if status in _TRANSIENT:
                    # urllib3 reads both forms of Retry-After, seconds and a date
                    raise _BrokenError(what, Retry().get_retry_after(response.raw) or 0.0)
                if status != requests.codes.ok:
                    raise (Absent if status in _NOT_FOUND else Refusal)(what)
                length = response.headers.get("Content-Length", "")
                total = int(length) if length.isdecimal() else 0
                if total > bound:
                    declared = f"declares {total:,} bytes"
                    raise Refusal(f"{declared} where at most {bound:,} are expected")
                # `iter_content` would unpack a .gz that its server labels as Content-Encoding: gzip
                for chunk in response.raw.stream(_CHUNK, decode_content=False):
                    size += len(chunk)
                    if size > bound:
                        raise Refusal(f"sent more than the {bound:,} bytes expected")
                    out.write(chunk)
                    report("downloading", size, total or None)
        except ProtocolError:  # fewer bytes than declared, or a reset connection
            raise _BrokenError(
                f"broke off after {size:,}{f' of {total:,}' * (total > 0)} bytes"
            ) from None
        except (requests.RequestException, HTTPError) as error:
            wrapped = error.args[0] if error.args else error
            cause = getattr(wrapped, "reason", wrapped)
            what = str(cause.args[-1] if isinstance(cause, Exception) else cause)
            what = re.sub(r"^\w+\(.*?\): ", "", what)  # drop the repr of the connection
            permanent = isinstance(error, _PERMANENT) or isinstance(cause, _PERMANENT)
            raise (Refusal if permanent else _BrokenError)(f"connection failed ({what})") from None
        except OSError as error:
            if error.errno is not None:  # of the file that is written
                raise
            # requests raises it for certificates that REQUESTS_CA_BUNDLE names and nobody has
            raise Refusal(f"connection failed ({error})") from None
        except (ValueError, OverflowError) as error:  # from libraries that parse a header
            raise Refusal(f"answered with a header that cannot be read ({reason(error)})") from None
    if not size:
        raise _BrokenError("sent nothing")
