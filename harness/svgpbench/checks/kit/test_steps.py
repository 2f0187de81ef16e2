"""Properties of a whole step: the same bits, no recompilation, its threads, and the reference's numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from svgpbench.backends import load_backend, new_backend
from svgpbench.checks.cases import MatrixCase, small_problem
from svgpbench.checks.evaluate import REFERENCE, evaluate
from svgpbench.checks.kit.numbers import numbers, positive_definite
from svgpbench.checks.kit.programs import CountedPrograms
from svgpbench.checks.matrix import compare
from svgpbench.ops import Array, Ops
from svgpbench.runs.worker_setup import worker_environment

A, B = positive_definite(3, 40, 40), numbers(3, 40, 7)


def solve_and_multiply(ops: Ops) -> Any:
    """Return the results of a Cholesky solve and of a product, as NumPy arrays."""

    def f(a: Array, b: Array) -> tuple[Array, Array]:
        x = ops.solve_triangular(ops.cholesky(a), b)
        return x, ops.sum(ops.matrix_transpose(x) @ x, axis=-1)

    compiled = ops.jit(f)
    return [ops.to_numpy(x) for x in compiled(ops.asarray(A), ops.asarray(B))]


def test_the_same_step_gives_the_same_bits(typed: Ops) -> None:
    again = new_backend(typed.name, typed.mode, typed.dtype, typed.device)
    results = (solve_and_multiply(ops) for ops in (typed, typed, again))
    for first, second, third in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, third)


def test_a_second_call_of_one_shape_compiles_nothing(typed: Ops) -> None:
    product = CountedPrograms(typed, lambda x, rate: x * rate)
    for turn in range(3):
        product(typed.asarray(numbers(2, seed=turn)), typed.asarray(np.float64(turn)))
    product.assert_compiled_once()


CASES = (
    MatrixCase("t-svgp tied-projected", "gaussian", "matern52"),
    MatrixCase("q-svgp natgrad", "bernoulli-logit", "se"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.method)
def test_two_methods_have_the_reference_s_numbers(typed: Ops, case: MatrixCase) -> None:
    case = MatrixCase(case.method, case.likelihood, case.kernel, typed.dtype)
    arrays = {
        ops.name: evaluate(ops, *case.build(), small_problem(), "eager")
        for ops in (load_backend(REFERENCE), typed)
    }
    entries = compare(case, arrays, None)
    assert {entry.group for entry in entries} >= {"values", "e_step"} or typed.name == REFERENCE
    assert [(x.group, x.array, x.worst) for x in entries if not x.ok] == []


IN_A_PROCESS = """
import json, sys
from svgpbench.runs.worker_setup import pin
backend, mode, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
pin(backend, threads, [])
from svgpbench.checks.kit.test_steps import solve_and_multiply
from svgpbench.environment import thread_pools
from svgpbench.backends import load_backend
from svgpbench.plugins import load
dtype = load("svgpbench.backends", backend).capabilities.dtypes[0]
arrays = solve_and_multiply(load_backend(backend, mode, dtype))
pools = [(pool.name, pool.threads) for pool in thread_pools()]
print(json.dumps({"pools": pools, "numbers": [x.tolist() for x in arrays]}))
"""


def in_a_process(ops: Ops, threads: int) -> dict[str, Any]:
    """Run the step in a worker with this number of threads, and return its output."""
    process = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, ops.name, ops.mode, str(threads)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | worker_environment("cpu", threads),
    )
    assert process.returncode == 0, process.stderr
    results: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return results


def test_a_worker_keeps_to_its_threads_and_two_give_the_same_numbers(ops: Ops) -> None:
    single, double = in_a_process(ops, 1), in_a_process(ops, 2)
    assert {threads for _, threads in single["pools"]} <= {1}, single["pools"]
    for x, y in zip(single["numbers"], double["numbers"], strict=True):
        # not bit for bit: two threads add in another order
        np.testing.assert_allclose(x, y, rtol=1e-4 if ops.dtype == "float32" else 1e-11)
