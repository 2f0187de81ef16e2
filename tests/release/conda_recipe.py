"""Write the conda recipe of a package whose sdist lies in a folder.

    python tests/release/conda_recipe.py PYPROJECT DIST > recipe.yaml

The recipe has the format that conda-forge takes (schema 1). Its requirements are those of the pyproject file;
its checksum is that of the sdist, which must be the file that the package index serves.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

OTHER_NAMES = {"matplotlib": "matplotlib-base"}
"""Names that packages of the index have on conda-forge, where they differ."""


def conda(requirement: str) -> str:
    """Return a requirement as conda writes it. Raises `ValueError` for a marker, which it lacks."""
    parsed = Requirement(requirement)
    if parsed.marker or parsed.extras:
        raise ValueError(f"{requirement!r} has a marker or extras; write its line by hand")
    return f"{OTHER_NAMES.get(parsed.name, parsed.name)} {parsed.specifier}".strip()


def recipe(pyproject: Path, dist: Path) -> dict[str, Any]:
    """Return the recipe of a package."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    file = f"{name.replace('-', '_')}-{version}.tar.gz"
    minimum = project["requires-python"].removeprefix(">=")
    programs = project.get("scripts", {})
    build: dict[str, Any] = {
        "number": 0,
        "noarch": "python",
        "script": "${{ PYTHON }} -m pip install . --no-deps --no-build-isolation -vv",
    }
    if programs:
        entry_points = [f"{program} = {function}" for program, function in programs.items()]
        build["python"] = {"entry_points": entry_points}
    return {
        "schema_version": 1,
        "context": {"version": version, "python_min": minimum},
        "package": {"name": name, "version": "${{ version }}"},
        "source": {
            "url": f"https://pypi.org/packages/source/{name[0]}/{name}/{file}",
            "sha256": hashlib.sha256((dist / file).read_bytes()).hexdigest(),
        },
        "build": build,
        "requirements": {
            "host": ["python ${{ python_min }}.*", "pip", "setuptools >=77"],
            "run": ["python >=${{ python_min }}", *map(conda, project["dependencies"])],
        },
        "tests": [
            {
                "python": {
                    "imports": [name.replace("-", "_")],
                    "pip_check": True,
                    "python_version": "${{ python_min }}.*",
                }
            },
            *({"script": [f"{program} --help"]} for program in programs),
        ],
        "about": {
            "summary": project["description"],
            "license": project["license"],
            "license_file": project["license-files"],
        },
    }


if __name__ == "__main__":
    text = yaml.safe_dump(recipe(Path(sys.argv[1]), Path(sys.argv[2])), sort_keys=False)
    sys.stdout.write(text)
