"""Bytes of an address kept between attempts, under a name that is no data file's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

FOLDER = ".partial"


class Origin(NamedTuple):
    """What the server said of the bytes: who vouches that the rest belongs to them."""

    url: str
    validator: str | None  # a strong ETag or a date of last change, for If-Range
    total: int | None  # bytes in all


class Partial:
    """The bytes that came from one address so far, and what the server said of them."""

    def __init__(self, cache: Path, url: str) -> None:
        self.key = hashlib.sha256(url.encode()).hexdigest()[:32]
        self.body = cache / FOLDER / self.key
        self._facts = cache / FOLDER / f"{self.key}.json"
        self._url = url

    def origin(self) -> Origin | None:
        """What is known of the bytes held; None where there are none that can be trusted."""
        try:
            origin = Origin(**json.loads(self._facts.read_text("utf-8")))
            held = self.size()
            fits = origin.url == self._url and 0 < held <= (origin.total or held)
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return origin if fits else None

    def size(self) -> int:
        """How many bytes are held."""
        try:
            return self.body.stat().st_size
        except FileNotFoundError:
            return 0

    def begin(self, origin: Origin) -> None:
        """Forget what is held; the bytes that follow are of this origin."""
        self.drop()
        self.body.parent.mkdir(parents=True, exist_ok=True)
        self.record(origin)

    def record(self, origin: Origin) -> None:
        """Write down what is known of the bytes."""
        self._facts.write_text(json.dumps(origin._asdict()), "utf-8")

    def is_complete(self) -> bool:
        """Whether no byte is missing."""
        origin = self.origin()
        return origin is not None and origin.total == self.size()

    def drop(self) -> None:
        """Remove bytes and facts."""
        self.body.unlink(missing_ok=True)
        self._facts.unlink(missing_ok=True)
