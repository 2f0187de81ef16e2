"""The command line: `svgpbench list | fetch | data | run | table | plot | check | doctor`."""

from svgpbench.cli.application import app, main

__all__ = ["app", "main"]
