"""Command line of svgpbench: `svgpbench list | fetch | data | run | table | claims | check | speed | ...`."""

from svgpbench.cli.application import app, main

__all__ = ["app", "main"]
