"""The equivalence check: all backends must give the same numbers before any of them is timed."""

from svgpbench.checks.quick import QuickReport, quick_check
from svgpbench.checks.report import Report
from svgpbench.checks.run import run_checks

__all__ = ["QuickReport", "Report", "quick_check", "run_checks"]
