"""How fast the steps of training are, next to peers: `svgpbench speed`."""

from svgpbench.speed.compare import run_speed
from svgpbench.speed.peers import locate_peers
from svgpbench.speed.report import SpeedReport

__all__ = ["SpeedReport", "locate_peers", "run_speed"]
