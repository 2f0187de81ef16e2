"""A suite of two tiny problems and two entrants with two pairs of rates each, on the reference backend."""

from __future__ import annotations

from pathlib import Path

from svgpbench.suite.schema import Suite, load_suite

TEXT = """
version = "small"
date = 2026-01-01

[protocol]
backend = "numpy"
batch_size = 32
full_batch_below = 200
folds = 2
split_seed = 0
held_out = 0.2
trial_shares = [0.25, 0.5]
kept = 1
cool_down = 0.5
evaluations = 4
evaluated_rows = 60
tested_rows = 40
jitter = 1e-6
kernel = { name = "matern52", init = "root-dimension" }

[[sizes]]
rows_below = 200
inducing = 5
seconds = 1.0

[[sizes]]
rows_below = 2000
inducing = 6
seconds = 2.0

[[entrants]]
label = "tied"
name = "t-svgp"
e_rates = [0.5, 1.0]
m_rates = [0.02]

[[entrants]]
label = "adam"
name = "q-svgp"
options = { whiten = true, optimiser = "adam" }
joint = true
e_rates = [0.02]
m_rates = [0.02, 0.1]

[[entrants]]
label = "reference"
name = "sgpr"
reference = true
likelihoods = ["gaussian"]
rows_below = 150

[[problems]]
data = "thesis-sinusoid"
likelihood = { name = "gaussian", noise_variance = 0.1 }
why = "a hundred rows, full batch"

[[problems]]
name = "banana, probit"
data = "banana"
likelihood = { name = "bernoulli-probit", integrals = "fixed" }
why = "labels, minibatches"
lite = true
"""

BUDGETS = {
    ("thesis-sinusoid", "tied"): 8,
    ("thesis-sinusoid", "adam"): 12,
    ("thesis-sinusoid", "reference"): 6,
    ("banana, probit", "tied"): 8,
    ("banana, probit", "adam"): 12,
}
MS = {key: 1.0 + i for i, key in enumerate(BUDGETS)}


def write_suite(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the suite's file with some of its text replaced."""
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def small_suite(folder: Path) -> Suite:
    return load_suite(write_suite(folder))
