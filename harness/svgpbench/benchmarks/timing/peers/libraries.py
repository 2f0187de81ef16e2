"""Peers that come with svgpbench."""

from __future__ import annotations

from pathlib import Path

from svgpbench.benchmarks.timing.peers.peer import Peer

LIBRARIES = Path(__file__).parents[3] / "libraries"
CONSTRAINTS = Path(__file__).parent
"""Folder of the files that `uv pip compile --universal` wrote from the requirements below."""

GPFLOW = Peer(
    distribution="gpflow",
    module="gpflow",
    requirements=(
        "gpflow==2.11.2",
        "tensorflow==2.21.0",
        "tensorflow-cpu==2.21.0",
        "tensorflow-probability==0.25.0",
        "tf-keras==2.21.0",
        "numpy==1.26.4",
        "setuptools<81",  # it imports pkg_resources
    ),
    script=LIBRARIES / "gpflow.py",
    methods={"natgrad": "q-svgp", "natgrad retraced": "q-svgp"},
    variable="SVGPBENCH_GPFLOW_PYTHON",
    constraints=CONSTRAINTS / "gpflow.txt",
    # NumPy 1.26.4 has wheels for Python 3.12 and earlier
    pythons=("3.12", "3.11"),
)

GPYTORCH = Peer(
    distribution="gpytorch",
    module="gpytorch",
    requirements=(
        "gpytorch==1.15.2",
        "linear_operator==0.6.1",
        "torch==2.13.0",
        "numpy==2.4.6",
    ),
    script=LIBRARIES / "gpytorch.py",
    methods={"ngd": "q-svgp", "tril-ngd": "q-svgp"},
    variable="SVGPBENCH_GPYTORCH_PYTHON",
    constraints=CONSTRAINTS / "gpytorch.txt",
    pythons=("3.13", "3.12", "3.11", "3.14"),
)

GPJAX = Peer(
    distribution="gpjax",
    module="gpjax",
    requirements=(
        "gpjax==1.0.0",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "equinox==0.13.8",
        "lineax==0.1.1",
        "numpyro==0.22.0",
        "optax==0.2.8",
        "numpy==2.4.6",
    ),
    script=LIBRARIES / "gpjax.py",
    methods={"whitened": "q-svgp", "dual": "t-svgp"},
    variable="SVGPBENCH_GPJAX_PYTHON",
    constraints=CONSTRAINTS / "gpjax.txt",
    pythons=("3.13", "3.12", "3.11", "3.14"),
)
