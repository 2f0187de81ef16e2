"""Every backend in every dtype, for the tests of the `Ops` contract."""

from __future__ import annotations

import pytest

from svgpbench.backends import framework_missing, load_backend
from svgpbench.ops import Ops

PRECISIONS = [
    ("numpy", "float64"),
    *[(b, d) for b in ("jax", "torch", "tensorflow") for d in ("float64", "float32")],
]


@pytest.fixture(scope="module", params=PRECISIONS, ids=" ".join)
def typed(request: pytest.FixtureRequest) -> Ops:
    """Each backend in each dtype that it offers."""
    name, dtype = request.param
    if missing := framework_missing(name):
        pytest.skip(missing)
    return load_backend(name, dtype=dtype)
