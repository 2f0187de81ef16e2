"""A package whose every plugin raises when it is imported."""

from __future__ import annotations

from pathlib import Path

GROUPS = ("backends", "datasets", "frameworks", "inducing", "kernels", "likelihoods", "methods")


def install_broken(folder: Path) -> None:
    """The package `shaky` 0.3, with a plugin `shaky` in every group."""
    info = folder / "shaky-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shaky\nVersion: 0.3\n")
    points = "".join(f"[svgpbench.{group}]\nshaky = shaky:{group}\n" for group in GROUPS)
    (info / "entry_points.txt").write_text(points)
    (folder / "shaky.py").write_text('raise RuntimeError("needs libshaky 7\\nand more")\n')
