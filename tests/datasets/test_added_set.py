"""docs/add-a-data-set.md, followed step by step: another package's set is fetched, pinned, audited, run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from wayward_server import Server

DOCUMENT = Path(__file__).parents[2] / "docs" / "add-a-data-set.md"
ZEROS = "0" * 64
Command = Callable[..., subprocess.CompletedProcess[str]]


def table() -> bytes:
    rng = np.random.default_rng(0)
    rows = [f"{day},{hour},{rng.normal():.3f}" for day in range(10) for hour in range(24)]
    lines = [f"{row},{float(row.rpartition(',')[2]) * 2:.3f}" for row in rows]
    return ("\n".join(["day,hour,wind,height", *lines]) + "\n").encode()


@pytest.fixture
def command(tmp_path: Path) -> Command:
    kept = {k: v for k, v in os.environ.items() if k not in ("SVGPBENCH_MIRROR", "SVGPBENCH_DATA")}
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    more = {"PYTHONPATH": path, "NO_PROXY": "127.0.0.1", "SVGPBENCH_DATA": str(tmp_path / "cache")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "svgpbench.cli", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
            env=kept | more | {"COLUMNS": "160"},
        )

    return run


def entry_point(folder: Path, text: str) -> None:
    """What pip writes for a package."""
    info = folder / "tides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(text)


def install(folder: Path, address: str) -> Path:
    """The package as the document has it, but for what only the file's owner knows."""
    blocks = re.findall(r"```\w+\n# (\S+)\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (registry, declared), (module, code), (_, project) = blocks
    content = table()
    declared = declared.replace(ZEROS, hashlib.sha256(content).hexdigest(), 1)
    declared = declared.replace("bytes = 100", f"bytes = {len(content)}")
    declared = declared.replace("https://example.org/tides.csv", address, 1)
    for name, text in ((registry, declared), (module, code)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    named = project.replace('[project.entry-points."svgpbench.datasets"]', "[svgpbench.datasets]")
    entry_point(folder, named.replace('"', ""))
    return folder / registry


def test_the_document_is_true(server: Server, tmp_path: Path, command: Command) -> None:
    registry = install(tmp_path, server.serve("/tides.csv", table()))
    done = command("fetch", "tides", "tides:wind")
    assert (done.returncode, done.stdout.count("was fetched")) == (0, 2), done.stderr
    refused = command("data", "show", "tides")
    assert refused.returncode == 2
    assert f"where sha256:{ZEROS} is declared" in refused.stderr
    pinned = command("data", "pin", str(registry), "--write")
    assert (pinned.returncode, pinned.stdout.count("DIFFERS")) == (0, 2), pinned.stderr
    assert ZEROS not in registry.read_text("utf-8")
    audited = command("data", "audit", "tides", "tides:wind")
    assert audited.returncode == 0, audited.stderr
    plain, _, leaky = audited.stdout.partition("tides:wind")
    assert "LEAK" not in plain
    assert "LEAK wind alone determines the target" in leaky
    assert command("data", "split", "tides", "--folds", "4").returncode == 0
    assert len(server.requests) == 1


def test_a_registry_that_is_not_installed_is_not_pinned(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "registry.toml"
    file.write_text(f'[tides]\nfingerprint = "sha256:{ZEROS}"\n', "utf-8")
    refused = command("data", "pin", str(file))
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: unknown data set 'tides'")


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


def test_an_object_with_three_functions_is_a_registry(tmp_path: Path, command: Command) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    (tmp_path / "waves.toml").write_text(EXPERIMENT)
    entry_point(tmp_path, "[svgpbench.datasets]\nbare = bare:SETS\n")
    ran = command("run", "waves.toml", "--jobs", "1")
    assert ran.returncode == 0, ran.stderr
    assert "waves" in command("table", "waves.toml").stdout
    for arguments in (("list", "datasets"), ("data", "table"), ("fetch", "waves"), ("doctor",)):
        done = command(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    assert command("data", "split", "waves").stdout.count("sha256:") == 5
    audited = command("data", "audit", "waves", "--json")
    (facts,) = json.loads(audited.stdout)
    assert (facts["rows"], facts["features"], facts["flags"]) == (500, 2, [SUM_TELLS])
    refused = command("data", "show", "waves", "--declared")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: the registry of 'waves' declares no more of it")
    assert "| `waves` | 500 | 2 | regression | none declared |" in command("data", "table").stdout
