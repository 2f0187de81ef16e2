"""A package beside its pyproject, as if pip had installed it: on a path, with metadata as pip writes it."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

from interpreter import Done, python

HERE = Path(__file__).parent


def register(source: Path, into: Path) -> None:
    """The metadata of the package of `source`, in the folder `into`."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    info = into / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head, "utf-8")
    groups = project["entry-points"].items()
    points = ["\n".join([f"[{g}]", *(f"{k} = {v}" for k, v in p.items())]) for g, p in groups]
    (info / "entry_points.txt").write_text("\n".join(points) + "\n", "utf-8")


class Place:
    """A folder to work in, and packages that are installed there."""

    def __init__(self, folder: Path, *sources: Path) -> None:
        self.folder = folder
        metadata = folder / "installed"
        for source in sources:
            register(source, metadata)
        code = [source / "src" if (source / "src").is_dir() else source for source in sources]
        paths = [*map(str, code), str(metadata), os.environ.get("PYTHONPATH", "")]
        self.path = os.pathsep.join(filter(None, paths))

    def python(self, *arguments: str, **variables: str) -> Done:
        """The interpreter with the packages."""
        environment = {**os.environ, "PYTHONPATH": self.path, "COLUMNS": "160", **variables}
        return python(*arguments, cwd=self.folder, env=environment)

    def run(self, *arguments: str, **variables: str) -> Done:
        """The command line with the packages."""
        return self.python("-m", "svgpbench.cli", *arguments, **variables)

    def json(self, *arguments: str, **variables: str) -> object:
        """What a command that ends well prints as JSON."""
        done = self.run(*arguments, "--json", **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)
