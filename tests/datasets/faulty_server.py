"""A real HTTP server on loopback that misbehaves on purpose, and counts what it sent."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Behaviour:
    """How one path is served."""

    body: bytes = b""
    break_after: int | None = None  # cut the first `breaks` connections after so many bytes
    breaks: int = 1
    failures: list[int] = field(default_factory=list)  # statuses of the first answers
    retry_after: str | None = None  # sent along with a failure
    declared: int | None = None  # a Content-Length other than the true one
    chunked: bool = False  # send no Content-Length
    location: str | None = None  # redirect there
    delay_s: float = 0.0  # before each piece of `piece` bytes
    piece: int = 1 << 16
    encoding: str | None = None  # a Content-Encoding
    gate: threading.Event | None = None  # the body waits for it


@dataclass
class Request:
    """One request that came, and how many bytes of a body went back."""

    path: str
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
        request = Request(self.path)
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
        request.status = 200
        self.send_response(200)
        if how.encoding is not None:
            self.send_header("Content-Encoding", how.encoding)
        if how.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(how.declared or len(how.body)))
        self.end_headers()
        self._write(request, how)

    def _write(self, request: Request, how: Behaviour) -> None:
        limit = len(how.body)
        cut = how.break_after is not None and how.breaks > 0
        if cut:
            how.breaks -= 1
            limit = min(limit, how.break_after or 0)
        if how.gate is not None:
            how.gate.wait(20)
        for at in range(0, limit, how.piece):
            if how.delay_s and self.server.stopping.wait(how.delay_s):
                break
            piece = how.body[at : min(at + how.piece, limit)]
            framed = b"%x\r\n%s\r\n" % (len(piece), piece) if how.chunked else piece
            self.wfile.write(framed)
            request.sent += len(piece)
        if cut or how.declared:
            self.close_connection = True
        elif how.chunked:
            self.wfile.write(b"0\r\n\r\n")


@contextmanager
def faulty_server() -> Iterator[Server]:
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
