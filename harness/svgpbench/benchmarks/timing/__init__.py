"""Times of the steps of training beside peers, measured by `svgpbench speed`."""

from svgpbench.benchmarks.timing.compare import run_speed
from svgpbench.benchmarks.timing.peers import locate_peers
from svgpbench.benchmarks.timing.report import SpeedReport

__all__ = ["SpeedReport", "locate_peers", "run_speed"]
