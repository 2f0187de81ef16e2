"""Try wheels and sdists as a user gets them: each alone in a new environment, from an empty folder.

    python tests/release/try_distributions.py dist/*

The environments have the Python that runs this script, and of the package index the newest versions that
the distribution allows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]

FIT = """
import numpy as np
from svgpbench.api import fit

X = np.linspace(0.0, 1.0, 60)[:, None]
y = np.sin(6.0 * X[:, 0])
rmse = fit(X, y, inducing=10).score(X, y)["rmse"]
assert rmse < 0.05, rmse
"""
VERSION = """
import importlib.metadata, pathlib, sys
name, module, version, folder = sys.argv[1:]
assert importlib.metadata.version(name) == version
where = pathlib.Path(__import__(module).__file__)
assert pathlib.Path(folder) in where.parents, where
"""


def documented_adapter() -> str:
    """Return the adapter that docs/check-your-library.md calls complete."""
    page = (ROOT / "docs/check-your-library.md").read_text("utf-8")
    return page.split("```python\n", 1)[1].split("```", 1)[0]


def commands(name: str) -> list[list[str]]:
    """Return the commands with which a package is tried; each is a program of the environment."""
    if name == "svgp-reference":
        return [["pytest", "--pyargs", "svgp_reference", "--adapter", "adapter.py"]]
    return [
        ["svgpbench", "list"],
        ["python", "-c", FIT],
        # dense algebra beside the reference backend, which needs no framework
        ["svgpbench", "check", "--quick", "--backend", "numpy"],
    ]


def try_distribution(file: Path) -> None:
    """Install a file alone and run its commands. Raises `CalledProcessError` if one of them fails."""
    found = re.match(r"(.+?)-(\d[^-]*?)(-py3-none-any\.whl|\.tar\.gz)$", file.name)
    if found is None:
        raise SystemExit(f"{file}: neither a wheel nor an sdist")
    name, version = found[1].replace("_", "-"), found[2]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        environment = work / "environment"
        venv.create(environment, with_pip=True)
        programs = environment / ("Scripts" if os.name == "nt" else "bin")
        # the checkout must not be found in place of what was installed
        clean = {key: x for key, x in os.environ.items() if not key.startswith("PYTHON")}
        (work / "adapter.py").write_text(documented_adapter(), "utf-8")

        def run(program: str, *arguments: str) -> None:
            subprocess.run([programs / program, *arguments], cwd=work, env=clean, check=True)

        run("python", "-m", "pip", "install", "--quiet", str(file.resolve()))
        run("python", "-c", VERSION, name, name.replace("-", "_"), version, str(environment))
        for command in commands(name):
            run(*command)
    print(f"{file.name}: works alone on Python {sys.version.split()[0]}", flush=True)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        try_distribution(Path(argument))
