"""Pages of `docs/` as a program: their blocks become files of a package, their commands are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


class Guide:
    """Pages, followed in a folder; the package that they describe is installed there."""

    def __init__(self, folder: Path, *pages: str) -> None:
        self.folder = folder
        blocks = [
            block for page in pages for block in BLOCK.findall((DOCS / page).read_text("utf-8"))
        ]
        self.commands = [
            line.split()[1:] for kind, text in blocks if kind == "sh" for line in text.splitlines()
        ]
        for kind, text in blocks:
            if kind != "sh":
                self._write(*re.match(r"# (\S+)\n(.*)", text, re.DOTALL).groups())  # type: ignore[union-attr]

    def _write(self, name: str, text: str) -> None:
        if name == "pyproject.toml":
            name = f"{self.package}-1.0.dist-info/entry_points.txt"
            text = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", text).replace('"', "")
            metadata = f"Metadata-Version: 2.1\nName: {self.package}\nVersion: 1.0\n"
            self._write(f"{self.package}-1.0.dist-info/METADATA", metadata)
        (self.folder / name).parent.mkdir(exist_ok=True)
        with (self.folder / name).open("a", encoding="utf-8") as file:  # pages add entry points
            file.write(text)

    @property
    def package(self) -> str:
        """The package whose modules came before."""
        (name,) = {path.parent.name for path in self.folder.glob("*/*.py")}
        return name

    def run(self, *arguments: str, program: str = "") -> subprocess.CompletedProcess[str]:
        """The command line, or a program, with the package installed."""
        what = ["-c", program] if program else ["-m", "svgpbench.cli", *arguments]
        path = f"{self.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        return subprocess.run(
            [sys.executable, *what],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "160"},
        )
