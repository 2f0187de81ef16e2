"""Memory of a step with a large basis for the mean, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

GAMMA, BETA, BATCH, DIMENSIONS, SUBSET = 16384, 128, 1024, 20, 1024

STEP = f"""
import numpy as np
from svgpbench.kernels.bases import Decoupled
from svgpbench.checks.cases import build_model
from svgpbench.runs.worker_setup import peak_memory_bytes
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.methods import build_method
from svgpbench.kernels import Theta, unconstrain
from svgpbench.backends import load_backend
from svgpbench.training.blocks import Batch
from svgpbench.training.steps import compile_steps

ops, rng = load_backend("numpy"), np.random.default_rng(0)
options = dict(coupled="q-svgp natgrad", gamma_rate=0.01, subset={SUBSET})
method, model = build_method("orth", options), build_model("gaussian", "matern52")
steps = compile_steps(ops, model, method, 1, 1, ("kernel",))
kernel = KernelParameters(np.ones(1), np.full((1, {DIMENSIONS}), 4.5))
points = rng.standard_normal(({GAMMA + BETA}, {DIMENSIONS}))
bases = Decoupled(points[{BETA}:], points[:{BETA}])
raw = unconstrain(Theta(kernel, GaussianParameters(np.float64(0.1)), bases))
p = steps.prior(raw)
state = method.initial_state(ops, p, 1, {BATCH})
X, y = rng.standard_normal(({BATCH}, {DIMENSIONS})), rng.standard_normal({BATCH})
batch = Batch(X, y, np.arange({BATCH}), (), rng.choice({GAMMA}, {SUBSET}, replace=False))
f = steps.factor(raw, p, batch)
state = steps.e_phase(raw, f, batch, state, np.float64(0.5), np.float64(9.0))
assert np.all(np.isfinite(state.a)) and np.any(state.a)
print(peak_memory_bytes())
"""


@pytest.mark.long
def test_a_step_of_16384_mean_points_stays_far_below_their_square() -> None:
    """All of K_γ would be 2 GiB; cost and memory are linear in |γ|."""
    done = subprocess.run(
        [sys.executable, "-c", STEP], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) / 2**30 < 1.5
