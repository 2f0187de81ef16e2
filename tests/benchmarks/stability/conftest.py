"""A tiny plan, and the command line that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from surviving import Survive

PLAN = """
steps = 20
check_every = 5
checked_rows = 50
backend = "numpy"

[centre]
rate = 0.1
dtype = "float64"
jitter = 1e-6
inducing = 7

[cuts]
rate = [10.0]

[problems.tiny]
data = { name = "banana" }
kernel = { ard = false }
likelihood = { name = "bernoulli-probit" }
batch_size = 16

[problems.steady]
data = { name = "airfoil" }
kernel = { ard = false }
likelihood = { name = "gaussian", noise_variance = 0.1 }
batch_size = 16
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Two cells a method: one at a rate that lives, one at a rate of 10."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def survive(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Survive:
    monkeypatch.setenv("COLUMNS", "140")
    return Survive(plan, tmp_path / "records", capsys)
