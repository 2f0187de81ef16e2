"""The file that crosses: whole or refused, and read by NumPy alone."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import svgpbench
from svgpbench.errors import UserError
from svgpbench.libraries.whitened import (
    ExportedPosterior,
    TableScaling,
    load_whitened,
    plain_table,
    save_whitened,
    whiten,
    with_positive_diagonal,
)

NEEDS_NUMPY_ALONE = """
import sys

class Others:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "pydantic", "scipy", "autograd"):
            raise ImportError(name)

sys.meta_path.insert(0, Others())
from svgpbench.libraries.whitened import load_whitened
print(load_whitened(sys.argv[1]).kernel)
"""


def one(**changes) -> ExportedPosterior:
    rng = np.random.default_rng(0)
    table = TableScaling(("a", "b"), np.array([1.0, 2.0]), np.array([3.0, 4.0]), 5.0, 6.0, (), 7)
    chol = np.eye(3)[None] + 0.1 * np.tril(rng.normal(size=(1, 3, 3)), -1)
    parameters = {"noise_variance": 0.25}
    numbers = rng.normal(size=(3, 2)), rng.normal(size=(1, 3)), chol
    whole = ExportedPosterior(
        "se", 1.5, np.array([0.5, 2.0]), "gaussian", parameters, 1e-6, *numbers, table
    )
    return whole._replace(**changes)


def test_a_file_comes_back_bit_for_bit(tmp_path) -> None:
    wanted = one()
    found = load_whitened(save_whitened(wanted, tmp_path / "one.npz"))
    for name in set(ExportedPosterior._fields) - {"table"}:
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    for name in TableScaling._fields:
        assert np.array_equal(getattr(found.table, name), getattr(wanted.table, name)), name


def test_a_file_is_read_where_only_numpy_is(tmp_path) -> None:
    path = save_whitened(one(), tmp_path / "one.npz")
    harness = str(Path(svgpbench.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", NEEDS_NUMPY_ALONE, str(path)],
        env={"PYTHONPATH": harness},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("se\n", 0), done.stderr


def test_whitening_undoes_the_factor() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 4))
    K = root @ root.T + np.eye(4)
    L = np.linalg.cholesky(K)
    mean, chol = rng.normal(size=(2, 4)), np.tril(rng.normal(size=(2, 4, 4)))
    found = whiten(K, mean @ L.T, L @ chol)
    np.testing.assert_allclose(found[0], mean)
    np.testing.assert_allclose(found[1], chol, atol=1e-12)


def test_a_matrix_without_a_factor_is_one_line() -> None:
    with pytest.raises(UserError, match=r"K\(Z, Z\) is not positive definite"):
        whiten(-np.eye(2), np.zeros((1, 2)), np.eye(2)[None])


def test_a_factor_gets_a_positive_diagonal_and_keeps_its_product() -> None:
    rng = np.random.default_rng(2)
    chol = np.tril(rng.normal(size=(2, 4, 4)))
    assert (np.diagonal(chol, axis1=-2, axis2=-1) < 0.0).any()
    found = with_positive_diagonal(chol + np.triu(np.ones((4, 4)), 1))
    assert (np.diagonal(found, axis1=-2, axis2=-1) > 0.0).all()
    np.testing.assert_allclose(found @ found.mT, chol @ chol.mT, atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variance": 0.0}, "'variance' holds NaN"),
        ({"Z": np.full((3, 2), np.nan)}, "'Z' holds NaN"),
        ({"Z": np.zeros((3, 4))}, "'Z' is float64 of shape"),
        ({"mean": np.zeros((1, 4))}, "'mean' is float64 of shape"),
        ({"lengthscales": np.ones(3)}, "3 lengthscales"),
        ({"jitter": -1e-6}, "jitter is below 0"),
        ({"chol": -np.eye(3)[None]}, "no lower factor"),
        ({"chol": np.ones((1, 3, 3))}, "no lower factor"),
        ({"likelihood": "student-t"}, "'student-t' is none of"),
        ({"parameters": {"squash": 0.0}}, "parameters of gaussian"),
        ({"likelihood": "softmax", "parameters": {"classes": 3, "samples": 9}}, "1 latents for"),
        ({"table": plain_table(3)}, "'Z' is float64 of shape"),
    ],
)
def test_what_is_no_posterior_is_not_written(change, message, tmp_path) -> None:
    with pytest.raises(UserError, match=message) as error:
        save_whitened(one(**change), tmp_path / "one.npz")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Z": None}, "'Z' is missing"),
        ({"more": np.zeros(1)}, "'more' is missing from a posterior, or no part"),
        ({"mean": np.zeros((1, 3), dtype=np.float32)}, "'mean' is float32"),
        ({"whitened": None}, "it has no 'whitened'"),
        ({"whitened": b"{no"}, "are no JSON"),
        ({"whitened": b"[]"}, "has not the keys"),
        ({"whitened": {"code": "import os"}}, "has not the keys"),
        ({"whitened": {"format": 2}}, "format 2; this version reads 1"),
        ({"whitened": {"kernel": 3}}, "kernel is 3, no str"),
        ({"whitened": {"features": ["a", 3]}}, "are no names"),
        ({"whitened": {"parameters": {"noise_variance": "1"}}}, "parameters of gaussian"),
    ],
)
def test_a_damaged_file_is_one_line(change, message, tmp_path) -> None:
    path = save_whitened(one(), tmp_path / "one.npz")
    with np.load(path) as kept:
        arrays = dict(kept)
    for name, value in change.items():
        if isinstance(value, dict):
            text = json.dumps(json.loads(arrays["whitened"].tobytes()) | value).encode()
        else:
            text = value
        arrays[name] = np.frombuffer(text, dtype=np.uint8) if isinstance(text, bytes) else value
    np.savez(path, **{name: x for name, x in arrays.items() if x is not None})
    with pytest.raises(UserError, match=message) as error:
        load_whitened(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"no archive at all"])
def test_another_file_is_refused(tmp_path, content) -> None:
    path = tmp_path / "one.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"one\.npz"):
        load_whitened(path)


def test_nothing_is_unpickled(tmp_path) -> None:
    path = save_whitened(one(), tmp_path / "one.npz")
    with np.load(path) as kept:
        arrays = dict(kept)
    np.savez(path, **arrays | {"Z": np.array([print], dtype=object)})
    with pytest.raises(UserError, match="holds no exported posterior"):
        load_whitened(path)
