"""The package, its tests and the README name the same Python versions, and constraints.txt fits each."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_every_version_is_tested_and_told() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    rows = workflow["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert sorted({row["python"] for row in rows}) == PYTHONS
    assert {row["versions"] for row in rows} == {"locked", "newest", "lowest-direct"}
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "README.md").read_text("utf-8")


def pinned(python: str) -> dict[str, list[str]]:
    """The versions that constraints.txt has for each package on one Python on Linux."""
    environment = {"python_version": python, "python_full_version": f"{python}.9"}
    environment |= {"sys_platform": "linux", "platform_machine": "x86_64"}
    found: dict[str, list[str]] = {}
    for pin in PINS:
        if pin.marker is None or pin.marker.evaluate(environment):
            found.setdefault(normal(pin.name), []).append(str(pin.specifier).removeprefix("=="))
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("python", PYTHONS)
def test_constraints_have_one_version_of_each_requirement_and_it_is_allowed(python: str) -> None:
    versions = pinned(python)
    assert all(len(set(found)) == 1 for found in versions.values())
    extras = PROJECT["optional-dependencies"].values()
    for text in [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]:
        requirement = Requirement(text)
        here = requirement.marker is None or requirement.marker.evaluate({"python_version": python})
        if requirement.name != PROJECT["name"] and here:
            (version,) = versions[normal(requirement.name)]
            assert requirement.specifier.contains(version), text


def test_there_is_no_tensorflow_for_3_14() -> None:
    assert "tensorflow-cpu" in pinned("3.13") and "tensorflow-cpu" not in pinned("3.14")


IMPORT_ALL = """
import importlib, pkgutil
from typing import Any
import numpy as np, numpy.typing
from typing_extensions import TypeAliasType, TypeVar

scalar = TypeVar("scalar", bound=np.generic)
array = np.ndarray[tuple[Any, ...], np.dtype[scalar]]
numpy.typing.NDArray = TypeAliasType("NDArray", array, type_params=(scalar,))
import svgpbench, svgpbench_papers

for package in (svgpbench, svgpbench_papers):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not {"libraries", "kit", "peers", "asv_suite", "__main__"} & {*module.name.split(".")}:
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError:  # of an extra that is not installed
                pass
print("all")
"""


def test_every_module_loads_where_an_array_s_type_is_no_class() -> None:
    """From NumPy 2.5 on Python 3.12 `NDArray` is a `TypeAliasType`, of which jaxtyping makes no type."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "all", done.stderr[-2000:]
