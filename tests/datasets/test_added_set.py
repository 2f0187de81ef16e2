"""docs/add-a-data-set.md, followed step by step: another package's set is fetched, pinned, audited, run."""

from __future__ import annotations

import hashlib
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
    info = folder / "tides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    named = project.replace('[project.entry-points."svgpbench.datasets"]', "[svgpbench.datasets]")
    (info / "entry_points.txt").write_text(named.replace('"', ""))
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
