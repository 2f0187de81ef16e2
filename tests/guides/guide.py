"""Pages of `docs/` as a program: their blocks become files of a package, their commands are run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from svgpbench.cli.application import exit_code

for arguments in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as error:
            code = exit_code(arguments)
    print(json.dumps((code, out.getvalue(), error.getvalue())))
"""

Done = subprocess.CompletedProcess[str]


class Guide:
    """Pages, followed in a folder; the package that they describe is installed there.

    Other packages, of other pages, may be there too.
    """

    def __init__(self, folder: Path, *pages: str) -> None:
        self.folder = folder
        blocks = [
            block for page in pages for block in BLOCK.findall((DOCS / page).read_text("utf-8"))
        ]
        self.commands = [
            line.split()[1:] for kind, text in blocks if kind == "sh" for line in text.splitlines()
        ]
        files = [
            re.match(r"# (\S+)\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
            for kind, text in blocks
            if kind != "sh"
        ]
        self.package = next(name for name, _ in files if name.endswith(".py")).split("/")[0]
        for name, text in files:
            self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        if name == "pyproject.toml":
            info = f"{self.package.removesuffix('.py')}-1.0.dist-info"
            name = f"{info}/entry_points.txt"
            groups = tomllib.loads(text)["project"]["entry-points"]
            text = "".join(
                f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
                for group, entries in groups.items()
            )
            metadata = f"Metadata-Version: 2.1\nName: {self.package}\nVersion: 1.0\n"
            self._write(f"{info}/METADATA", metadata)
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("a", encoding="utf-8") as file:  # pages add entry points
            file.write(text)

    def changed(self, name: str, *changes: tuple[str, str], to: str = "") -> str:
        """Replace texts, all of which are there, in a file of the pages; `to` names a copy instead."""
        text = (self.folder / name).read_text("utf-8")
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (self.folder / (to or name)).write_text(text, "utf-8")
        return to or name

    def run(self, *arguments: str, program: str = "", told: str | None = None) -> Done:
        """The command line, or a program, with the package installed."""
        what = ["-c", program] if program else ["-m", "svgpbench.cli", *arguments]
        path = f"{self.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        return subprocess.run(
            [sys.executable, *what],
            input=told,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "160"},
        )

    def run_each(self, *commands: Sequence[str]) -> list[Done]:
        """Command lines one after another, in one process: it takes seconds to start."""
        ran = self.run(program=ONE_AFTER_ANOTHER, told=json.dumps(commands))
        assert ran.returncode == 0, ran.stderr
        outcomes = [json.loads(line) for line in ran.stdout.splitlines()]
        return [Done(line, *one) for line, one in zip(commands, outcomes, strict=True)]


GROUPS = ("backends", "datasets", "frameworks", "inducing", "kernels", "likelihoods", "methods")


def install_broken(folder: Path) -> None:
    """Install the package `shaky` 0.3, whose every plugin `shaky` raises when it is imported."""
    info = folder / "shaky-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shaky\nVersion: 0.3\n")
    points = "".join(f"[svgpbench.{group}]\nshaky = shaky:{group}\n" for group in GROUPS)
    (info / "entry_points.txt").write_text(points)
    (folder / "shaky.py").write_text('raise RuntimeError("needs libshaky 7\\nand more")\n')
