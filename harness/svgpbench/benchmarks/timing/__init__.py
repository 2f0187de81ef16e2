"""How fast the steps of training are, next to peers: `svgpbench speed`."""

from svgpbench.benchmarks.timing.compare import run_speed
from svgpbench.benchmarks.timing.peers import locate_peers
from svgpbench.benchmarks.timing.report import SpeedReport

__all__ = ["SpeedReport", "locate_peers", "run_speed"]
