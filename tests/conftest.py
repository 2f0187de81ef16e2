"""Environment and fixtures that every test shares: all frameworks in one process, float64, CPU."""

from __future__ import annotations

import os
from pathlib import Path

# before any framework is imported
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MPLBACKEND", "agg")

import pytest
from listed_skips import SkipsAreListed, read_listed

from svgpbench.ops import Ops
from svgpbench.plugins import framework_missing, load_backend

BACKENDS = ("numpy", "jax", "torch", "tensorflow")


def pytest_configure(config: pytest.Config) -> None:
    listed = read_listed(Path(__file__).with_name("skips.toml"))
    config.pluginmanager.register(SkipsAreListed(listed), "skips are listed")


@pytest.fixture(scope="session", params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    """Each backend in float64 on the CPU, in its default mode."""
    if missing := framework_missing(request.param):
        pytest.skip(missing)
    return load_backend(request.param)
