"""Entry point of `python -m svgpbench.cli`."""

from svgpbench.cli import main

main()
