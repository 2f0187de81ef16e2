"""Records to tables and figures."""

from svgpbench.report.collect import Collected, collect
from svgpbench.report.figure import draw_figure
from svgpbench.report.layout import ResultTable
from svgpbench.report.table import build_table

__all__ = ["Collected", "ResultTable", "build_table", "collect", "draw_figure"]
