"""A server that misbehaves, an empty cache, and files to want."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from wayward_server import Server, wayward_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with wayward_server() as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
