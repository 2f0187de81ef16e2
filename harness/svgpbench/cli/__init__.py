"""The command line: `svgpbench list | fetch | data | run | table | plot | check | speed | cost | doctor`."""

from svgpbench.cli.application import app, main

__all__ = ["app", "main"]
