"""The tests do not depend on what else is installed: with another package's plugins present they pass too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

MODULE = '''
import dataclasses
from typing import ClassVar

from svgpbench.methods.dual import DualSVGP
from svgpbench_backends.numpy_backend import NumpyOps
from svgpbench_datasets import REGISTRY as OURS


class Ops(NumpyOps):
    name = "theirs"


@dataclasses.dataclass(frozen=True)
class Method(DualSVGP):
    """A method of another package."""

    name: ClassVar[str] = "theirs"


class Sets:
    def names(self):
        return ("theirs",)

    def describe(self, name):
        return OURS.describe("airfoil").model_copy(update={"name": name})

    def load(self, name):
        return dataclasses.replace(OURS.load("airfoil"), name=name)


REGISTRY = Sets()
'''

ENTRY_POINTS = """
[svgpbench.backends]
theirs = theirs:Ops
[svgpbench.methods]
theirs = theirs:Method
[svgpbench.datasets]
theirs = theirs:REGISTRY
"""

SENSITIVE = (
    "theirs or every_method_of or every_method_that or every_variant or every_data_set or full_matrix"
    " or listing or doctor or at_hand or leaves_it_out"
)
"""What runs over all that is installed: the parameters that the package adds, and tests of whole tables."""

ROOMS = ("ops", "methods", "likelihoods", "training", "experiments", "cost", "checks", "cli")


def test_another_package_s_plugins_break_no_test(tmp_path: Path) -> None:
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "theirs.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    folders = [str(TESTS / name) for name in ROOMS]
    # -rA names what ran: the parameters that the package added are among it, or it was not seen
    options = ["-rA", "--show-capture=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-k", SENSITIVE, *folders],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "[theirs" in done.stdout
