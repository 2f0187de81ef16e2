"""docs/add-a-data-set.md, followed step by step: another package's set is fetched, pinned, audited, run."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guide import Guide

ZEROS = "0" * 64


def table() -> bytes:
    rng = np.random.default_rng(0)
    rows = [f"{day},{hour},{rng.normal():.3f}" for day in range(10) for hour in range(24)]
    lines = [f"{row},{float(row.rpartition(',')[2]) * 2:.3f}" for row in rows]
    return ("\n".join(["day,hour,wind,height", *lines]) + "\n").encode()


class Server(ThreadingHTTPServer):
    """The page's address: a folder, and the requests for its files."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=folder))


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *what: Any) -> None:
        self.server.requests.append(format % what)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "tides.csv").write_bytes(table())
    with Server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guide:
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return Guide(tmp_path, "add-a-data-set.md")


def test_the_document_is_true(server: Server, guide: Guide) -> None:
    registry, content = guide.folder / "tides" / "registry.toml", table()
    guide.changed(
        "tides/registry.toml",
        (f'sha256 = "{ZEROS}"', f'sha256 = "{hashlib.sha256(content).hexdigest()}"'),
        ("bytes = 100", f"bytes = {len(content)}"),
        ("https://example.org/", f"http://127.0.0.1:{server.server_port}/"),
    )
    done, *refused = guide.run_each(
        ["fetch", "tides", "tides:wind"], ["data", "show", "tides"], ["data", "show", "tides:wind"]
    )
    assert (done.returncode, done.stdout.count("was fetched")) == (0, 2), done.stderr
    declared = registry.read_text("utf-8")
    for shown in refused:  # the fingerprints in their order in the file
        assert shown.returncode == 2
        named = re.search("zeros; write (sha256:[0-9a-f]{64}) in their place", shown.stderr)
        assert named is not None
        declared = declared.replace(f"sha256:{ZEROS}", named[1], 1)
    assert ZEROS not in declared
    registry.write_text(declared, "utf-8")
    audited, split = guide.run_each(
        ["data", "audit", "tides", "tides:wind"], ["data", "split", "tides", "--folds", "4"]
    )
    assert audited.returncode == 0, audited.stderr
    plain, _, leaky = audited.stdout.partition("tides:wind")
    assert "LEAK" not in plain
    assert "LEAK wind alone determines the target" in leaky
    assert split.returncode == 0
    assert len(server.requests) == 1


SUM_TELLS = {
    "kind": "sum-determines-target",
    "leak": True,
    "text": "a + b determines the target",
}
BARE = """
from types import SimpleNamespace

import numpy as np

from svgpbench_datasets import Dataset

X = np.random.default_rng(0).uniform(size=(500, 2))

class Sets:
    def names(self):
        return ("waves",)

    def describe(self, name):
        return SimpleNamespace(
            name=name, title="Waves", task="regression", rows=500, features=("a", "b"), target="y",
            files=(), splits=None, fingerprint=None, made=None, generated=None,
        )

    def load(self, name):
        return Dataset(name, "regression", X, np.sin(4 * X.sum(axis=1)), ("a", "b"), "y", "here")

SETS = Sets()
"""

EXPERIMENT = """
name = "waves"
backends = ["numpy"]
[kernel]
name = "se"
[inducing]
count = 10
[training]
em_iterations = 2
m_steps = 2
[[problems]]
data = ["waves"]
likelihood = { name = "gaussian" }
[[methods]]
name = "t-svgp"
"""


def test_an_object_with_three_functions_is_a_registry(guide: Guide) -> None:
    (guide.folder / "bare.py").write_text(BARE)
    (guide.folder / "waves.toml").write_text(EXPERIMENT)
    guide.changed(
        "tides-1.0.dist-info/entry_points.txt", ("tides = tides:SETS", "bare = bare:SETS")
    )
    *listed, ran, tabled, split, audited, refused = guide.run_each(
        ["data", "table"],
        ["list", "datasets"],
        ["fetch", "waves"],
        ["doctor"],
        ["run", "waves.toml", "--jobs", "1"],
        ["table", "waves.toml"],
        ["data", "split", "waves"],
        ["data", "audit", "waves", "--json"],
        ["data", "show", "waves", "--declared"],
    )
    for done in (*listed, ran):
        assert done.returncode == 0, (done.args, done.stderr)
    assert "| `waves` | 500 | 2 | regression | none declared |" in listed[0].stdout
    assert "waves" in tabled.stdout
    assert split.stdout.count("sha256:") == 5
    (facts,) = json.loads(audited.stdout)
    assert (facts["rows"], facts["features"], facts["flags"]) == (500, 2, [SUM_TELLS])
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: the registry of 'waves' declares no more of it")
