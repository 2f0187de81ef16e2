"""LAPACK calls of one program on several threads of XLA end, and each solves its own system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from svgpbench.backends import load_backend
ops = load_backend("jax")
rng = np.random.default_rng(0)
b = rng.standard_normal((3, 100, 300))
A = np.eye(100) + b @ b.swapaxes(-1, -2) / 300

def program(A, b):
    factors = [ops.cholesky((1.0 + i) * A) for i in range(8)]
    alone = ops.solve_triangular(factors[0][:1], b[:1])
    many = ops.solve_triangular(ops.concat([factors[0]] * 12, axis=0), ops.concat([b] * 12, axis=0))
    return [ops.solve_triangular(L, b) for L in factors], alone, many

for _ in range(5):
    each, alone, many = ops.jit(program)(ops.asarray(A), ops.asarray(b))
    ops.sync([*each, alone, many])
for i, x in enumerate(each):
    L = np.linalg.cholesky((1.0 + i) * A)
    np.testing.assert_allclose(x, np.linalg.solve(L, b), rtol=1e-10, atol=1e-10)
np.testing.assert_allclose(alone, each[0][:1], rtol=1e-10, atol=1e-10)
np.testing.assert_allclose(many, np.concatenate([each[0]] * 12), rtol=1e-10, atol=1e-10)
"""


@pytest.mark.parametrize("threads", ["2", "4"])
def test_many_batched_factors_and_solves_in_one_program_end(threads: str) -> None:
    pytest.importorskip("jax")
    environment = os.environ | {"NPROC": threads}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=60)
