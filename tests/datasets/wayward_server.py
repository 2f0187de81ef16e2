"""A real HTTP server on loopback that misbehaves on purpose, and counts what it sent."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Behaviour:
    """How one path is served.

    Attributes:
        body: the bytes.
        break_after: cut each of the first `breaks` connections after so many bytes sent.
        breaks: how many connections are cut.
        failures: statuses of the first answers, one each.
        retry_after: sent along with a failure.
        ranges: whether `Range` is understood.
        validator: an ETag; None sends none, "size" one made from the bytes.
        modified: a Last-Modified.
        after_change: the bytes (and their ETag) from the second request on.
        wrong_range: answers a `Range` with another part.
        declared: a Content-Length other than the true one.
        chunked: send no Content-Length.
        location: redirect there.
        delay_s: before each piece of `piece` bytes.
        piece: bytes written at a time.
        encoding: a Content-Encoding.
        gate: the body waits for it.
    """

    body: bytes = b""
    break_after: int | None = None
    breaks: int = 1
    failures: list[int] = field(default_factory=list)
    retry_after: str | None = None
    ranges: bool = True
    validator: str | None = "size"
    modified: str | None = None
    after_change: bytes | None = None
    wrong_range: bool = False
    declared: int | None = None
    chunked: bool = False
    location: str | None = None
    delay_s: float = 0.0
    piece: int = 1 << 16
    encoding: str | None = None
    gate: threading.Event | None = None


@dataclass
class Request:
    """One request that came, and how many bytes of a body went back."""

    path: str
    range: str | None
    if_range: str | None
    status: int = 0
    sent: int = 0


class Server(ThreadingHTTPServer):
    """Serves what `behaviours` says and 404 for the rest."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviours: dict[str, Behaviour] = {}
        self.requests: list[Request] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def serve(self, path: str, body: bytes = b"", **behaviour: Any) -> str:
        """Serve a path from now on; its address."""
        self.behaviours[path] = Behaviour(body, **behaviour)
        return self.url + path

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def sent(self, path: str) -> int:
        return sum(request.sent for request in self.asked(path))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        request = Request(self.path, self.headers.get("Range"), self.headers.get("If-Range"))
        self.server.requests.append(request)
        how = self.server.behaviours.get(self.path)
        if how is None:
            self._empty(request, 404)
        elif how.failures:
            self._empty(request, how.failures.pop(0), retry_after=how.retry_after)
        elif how.location is not None:
            self._empty(request, 302, location=how.location)
        else:
            self._body(request, how)

    def _empty(
        self,
        request: Request,
        status: int,
        location: str | None = None,
        retry_after: str | None = None,
    ) -> None:
        request.status = status
        self.send_response(status)
        for name, value in (("Location", location), ("Retry-After", retry_after)):
            if value is not None:
                self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _body(self, request: Request, how: Behaviour) -> None:
        body = how.body
        if how.after_change is not None and len(self.server.asked(request.path)) > 1:
            body = how.after_change
        tag = f'"{hashlib.md5(body).hexdigest()}"' if how.validator == "size" else how.validator
        start = self._start(request, how, tag)
        if start is not None and start >= len(body):
            self._empty(request, 416)
            return
        request.status = 200 if start is None else 206
        self.send_response(request.status)
        headers = {"ETag": tag, "Last-Modified": how.modified, "Content-Encoding": how.encoding}
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        if start is not None:
            start = start // 2 if how.wrong_range else start
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        rest = body[start or 0 :]
        if how.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(how.declared or len(rest)))
        self.end_headers()
        self._write(request, how, rest)

    def _start(self, request: Request, how: Behaviour, tag: str | None) -> int | None:
        if request.range is None or not how.ranges:
            return None
        if request.if_range not in (None, tag, how.modified):
            return None
        return int(request.range.removeprefix("bytes=").removesuffix("-"))

    def _write(self, request: Request, how: Behaviour, rest: bytes) -> None:
        limit = len(rest)
        cut = how.break_after is not None and how.breaks > 0
        if cut:
            how.breaks -= 1
            limit = min(limit, how.break_after or 0)
        if how.gate is not None:
            how.gate.wait(20)
        for at in range(0, limit, how.piece):
            if how.delay_s and self.server.stopping.wait(how.delay_s):
                break
            piece = rest[at : min(at + how.piece, limit)]
            framed = b"%x\r\n%s\r\n" % (len(piece), piece) if how.chunked else piece
            self.wfile.write(framed)
            request.sent += len(piece)
        if cut or how.declared:
            self.close_connection = True
        elif how.chunked:
            self.wfile.write(b"0\r\n\r\n")


@contextmanager
def wayward_server() -> Iterator[Server]:
    """A server in a thread of its own for as long as the block lasts."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


def until(condition: Any, within_s: float = 10.0) -> bool:
    """Wait for what another process does."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if condition():
                return True
        time.sleep(0.01)
    return False
