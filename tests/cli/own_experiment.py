"""A user's experiment on a user's table, small enough to run in a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np

EXPERIMENT = """
name = "mine"
backends = ["numpy"]

[kernel]
lengthscale = 1.0

[inducing]
count = 5

[split]
folds = 4
run_folds = [0, 1]

[training]
em_iterations = 2
m_steps = 2

[[problems]]
data = [{ name = "rows", path = "rows.csv", target = "y", task = "regression" }]
likelihood = { name = "gaussian" }

[[methods]]
label = "t-SVGP"
name = "t-svgp"
"""


def write_own(folder: Path, *changes: tuple[str, str]) -> Path:
    """mine.toml with some of its text replaced, and rows.csv beside it."""
    text = EXPERIMENT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "mine.toml").write_text(text)
    write_rows(folder)
    return folder / "mine.toml"


def write_rows(folder: Path) -> None:
    """Write 40 rows of x, z, y."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (40, 2))
    y = np.sin(3.0 * x[:, 0]) + 0.1 * rng.standard_normal(40)
    lines = ["x,z,y", *(f"{a:.6f},{b:.6f},{c:.6f}" for (a, b), c in zip(x, y, strict=True))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
