"""The contract on imports in pyproject.toml is kept, and an import that breaks it is noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = ("harness", "backends", "datasets")


def linted(tree: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on a source tree."""
    path = os.pathsep.join(str(tree / root) for root in ROOTS)
    command = (Path(sys.executable).with_name("lint-imports"), "--no-cache")
    return subprocess.run(
        command,
        check=False,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for root in ROOTS:
        shutil.copytree(ROOT / root, copy / root, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_every_contract_is_kept(tree: Path) -> None:
    done = linted(tree)
    assert done.returncode == 0, done.stdout
    assert "7 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("harness/svgpbench/methods/dual.py", "import svgpbench_backends", "entry points"),
        ("harness/svgpbench/methods/dual.py", "import svgpbench.training", "Arrows"),
        ("harness/svgpbench/papers/forest.py", "import svgpbench_papers", "and papers through"),
        ("harness/svgpbench/kernels/kernels.py", "import svgpbench_datasets", "know no data"),
        ("harness/svgpbench/training/em.py", "import torch", "peer imports"),
        ("harness/svgpbench/new_room.py", "", "Arrows"),
        ("backends/svgpbench_backends/jax_backend.py", "import svgpbench.config", "ops, errors"),
        ("harness/svgpbench/libraries/whitened.py", "import pandas", "that library alone"),
        ("datasets/svgpbench_datasets/splits.py", "import svgpbench.ops", "stand alone"),
    ],
)
def test_a_planted_import_breaks_its_contract(
    tree: Path, file: str, line: str, contract: str
) -> None:
    path = tree / file
    before = path.read_text() if path.exists() else None
    path.write_text(f"{before or ''}\n{line}\n")
    try:
        done = linted(tree)
    finally:
        path.write_text(before) if before is not None else path.unlink()
    assert done.returncode == 1, done.stdout
    broken = [row for row in done.stdout.splitlines() if " BROKEN" in row]
    assert any(contract in row for row in broken), done.stdout
